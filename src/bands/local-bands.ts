import { readdirSync, readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import type { Clock } from '../actor/clock.js'
import { isRefusal } from '../format/refusal.js'
import { isMissing } from '../store/blobs.js'
import { type CdbFile, CdbSearch, closeCdb, openCdb } from '../store/cdb-reader.js'
import { bandManifestMaxBytes, manifestName, readIndexManifest } from './index-manifest.js'
import { type RootRecord, readPlace } from './root-record.js'

/** Next look where some folders were left out. */
const lookSoonMs = 100

/** Partitions that one thread keeps open: a descriptor and 4 KiB each. Eight whole bands. */
const openMax = 2048

/** An index on this machine: one file, or one for each first byte of keys. */
export interface LocalIndex {
  /** Where it lies; two of one path are the same. */
  readonly path: string
  /** Path of the file that may hold keys with this first byte. */
  fileOf(first: number): string | undefined
  /** Up to which height, and from which; an index that follows the tip, or has no range, comes first. */
  readonly range: readonly [number, number]
}

/** Folders of indexes that are looked at below one path. */
const foldersMax = 4096
/** Manifests that one look reads: each takes up to some milliseconds of a thread that serves requests. */
const readEachLook = 16

/** Indexes in folders, each read once: until its manifest is another file. */
export class IndexFolders {
  /** What the last look found; what was not there then is forgotten. */
  #known = new Map<string, { readonly file: string; readonly index: LocalIndex | undefined }>()
  #seen = new Map<string, { readonly file: string; readonly index: LocalIndex | undefined }>()
  #reads = 0
  /** Some manifests were left for the next look. */
  isBehind = false

  /** A new look at all folders begins. */
  begin(): void {
    this.#known = new Map([...(this.isBehind ? this.#known : []), ...this.#seen])
    this.#seen = new Map()
    this.#reads = 0
    this.isBehind = false
  }

  /** The index in a folder with a manifest, or undefined where it is none that can be read. */
  at(folder: string): LocalIndex | undefined {
    const path = join(folder, manifestName)
    const found = statSync(path, { throwIfNoEntry: false, bigint: true })
    if (found === undefined || found.size > BigInt(bandManifestMaxBytes)) return undefined
    const file = `${found.ino} ${found.mtimeNs} ${found.size}`
    let known = this.#known.get(folder)
    if (known?.file !== file) {
      if (this.#reads >= readEachLook) {
        this.isBehind = true
        return undefined
      }
      this.#reads += 1
      known = { file, index: partitionedIndex(folder) }
    }
    this.#seen.set(folder, known)
    return known.index
  }
}

function partitionedIndex(folder: string): LocalIndex | undefined {
  let bytes: Buffer
  try {
    bytes = readFileSync(join(folder, manifestName))
  } catch (error) {
    if (isMissing(error)) return undefined
    throw error
  }
  const manifest = readIndexManifest(bytes)
  if (isRefusal(manifest)) return undefined
  const files = new Map<number, string>()
  for (const { prefix, location } of manifest.partitions) {
    if (location.type === 'file') files.set(Number.parseInt(prefix, 16), join(folder, location.filename))
  }
  const heightRange: unknown = manifest.metadata?.heightRange
  const [from, to] = Array.isArray(heightRange) ? (heightRange as unknown[]) : []
  const height = (value: unknown, none: number): number => (typeof value === 'number' ? value : none)
  return {
    path: folder,
    fileOf: (first) => files.get(first),
    range: [height(from, 0), height(to, Number.MAX_SAFE_INTEGER)],
  }
}

/** One file with keys of any kind. */
export function singleIndex(path: string): LocalIndex {
  return { path, fileOf: () => path, range: [0, Number.MAX_SAFE_INTEGER] }
}

/**
 * The indexes at a path: a file, a folder with a manifest, or a folder whose files and folders are such. What is half written
 * has a name that ends in `.tmp` or begins with a dot, and is not looked at.
 */
export function indexesAt(path: string, folders: IndexFolders): LocalIndex[] {
  const found = statSync(path, { throwIfNoEntry: false })
  if (found === undefined) return []
  if (found.isFile()) return [singleIndex(path)]
  const whole = folders.at(path)
  if (whole !== undefined) return [whole]
  const names = readdirSync(path, { withFileTypes: true }).slice(0, foldersMax)
  return names.flatMap((entry) => {
    const inner = join(path, entry.name)
    if (entry.name.startsWith('.') || /\.tmp(\.\d+)?$/.test(entry.name)) return []
    if (entry.isDirectory()) return folders.at(inner) ?? []
    return entry.isFile() && entry.name.endsWith('.cdb') ? [singleIndex(inner)] : []
  })
}

/** Newest first: by the end of the heights, then by their start. */
function newestFirst(one: LocalIndex, other: LocalIndex): number {
  return other.range[1] - one.range[1] || other.range[0] - one.range[0]
}

/** A partition that is open, or known to be broken. */
interface OpenBand {
  readonly file: CdbFile | undefined
  /** Path of the index that it is of. */
  readonly index: string
  /** Number of the last look at which the file at its path was still the one that is open. */
  look: number
}

/**
 * Indexes below some paths of this machine, searched synchronously with two small reads each. One instance for each
 * thread.
 */
export class LocalBands {
  /** Files that were not what they should be. */
  broken = 0
  readonly #search = new CdbSearch()
  /** In order of last use. */
  readonly #open = new Map<string, OpenBand>()
  #looks = 0
  readonly #folders = new IndexFolders()
  #indexes: readonly LocalIndex[] = []
  #lookAgain = Number.NEGATIVE_INFINITY

  /**
   * New indexes below `paths` are found within `watchMs`; undefined: only those at the first look are used. `mapped`:
   * only where this program alone puts files there, whole and by renaming, and never changes them.
   */
  constructor(
    private readonly paths: readonly string[],
    private readonly clock: Clock,
    private readonly watchMs: number | undefined,
    private readonly mapped = false,
  ) {}

  /** The place of an item (32 bytes of id) in the newest index that knows it, in memory of its own. Never throws. */
  find(id: Uint8Array): RootRecord | undefined {
    this.#look()
    for (const index of this.#indexes) {
      const path = index.fileOf(id[0] as number)
      const file = path === undefined ? undefined : this.#fileAt(path, index.path)
      if (file === undefined) continue
      const outcome = this.#search.find(file, id)
      if (outcome === 'broken') this.broken += 1
      if (outcome !== 'found') continue
      const value = ownedValue(this.#search)
      const place = readPlace(value, 0, value.length)
      if (place !== undefined) return place
      this.broken += 1
    }
    return undefined
  }

  #look(): void {
    const now = this.clock.monotonic()
    if (now < this.#lookAgain) return
    this.#lookAgain = this.watchMs === undefined ? Number.POSITIVE_INFINITY : now + this.watchMs
    this.#folders.begin()
    try {
      this.#indexes = this.paths.flatMap((path) => indexesAt(path, this.#folders)).sort(newestFirst)
      if (this.#folders.isBehind) this.#lookAgain = now + lookSoonMs
    } catch {
      // A folder that went away while it was read: the next look sees what is there then.
      this.#lookAgain = now + 1000
    }
    // Closes files that are gone, were broken, or were not used since the last look.
    const there = new Set(this.#indexes.map(({ path }) => path))
    for (const [path, opened] of this.#open) {
      if (opened.file === undefined || opened.look !== this.#looks || !there.has(opened.index))
        this.#letGo(path, opened)
    }
    this.#looks += 1
  }

  #fileAt(path: string, index: string): CdbFile | undefined {
    let opened = this.#open.get(path)
    if (opened !== undefined && opened.look !== this.#looks) opened = this.#stillThere(path, opened)
    if (opened === undefined) return this.#opened(path, index)
    if (this.#open.size > openMax / 2) {
      this.#open.delete(path)
      this.#open.set(path, opened)
    }
    return opened.file
  }

  /** Once a look a file that is open is compared with what lies at its path. */
  #stillThere(path: string, opened: OpenBand): OpenBand | undefined {
    const { file } = opened
    if (file === undefined || !isThere(path, file)) {
      this.#letGo(path, opened)
      return undefined
    }
    file.pages?.forget()
    opened.look = this.#looks
    return opened
  }

  #opened(path: string, index: string): CdbFile | undefined {
    let file: ReturnType<typeof openCdb>
    try {
      file = openCdb(path, this.mapped)
    } catch {
      // Counted as a file that is no good: the search goes on, and the next look tries again.
      file = 'broken'
    }
    if (file === 'broken') this.broken += 1
    if (this.#open.size >= openMax) {
      for (const [oldest, old] of this.#open) {
        this.#letGo(oldest, old)
        break
      }
    }
    const kept = typeof file === 'string' ? undefined : file
    this.#open.set(path, { file: kept, index, look: this.#looks })
    return kept
  }

  #letGo(path: string, { file }: OpenBand): void {
    this.#open.delete(path)
    if (file !== undefined) closeCdb(file)
  }

  close(): void {
    for (const [path, opened] of this.#open) this.#letGo(path, opened)
  }
}

/** Whether what lies at `path` is still the file that is open. */
function isThere(path: string, file: CdbFile): boolean {
  try {
    const { ino, mtimeNs, size } = statSync(path, { bigint: true })
    return ino === file.inode && mtimeNs === file.modifiedNs && size === BigInt(file.sizeBytes)
  } catch {
    // It is gone, or the disk fails: opening it again shows which.
    return false
  }
}

/** A copy of what was found. In a loop, because for some fifty bytes that is faster than a call of the engine. */
function ownedValue({ bytes, start, end }: CdbSearch): Buffer {
  const value = Buffer.allocUnsafe(end - start)
  for (let at = 0; at < value.length; at += 1) value[at] = bytes[start + at] as number
  return value
}
