import { FairSlots } from '../../actor/fair-slots.js'
import { bundleCountSize, bundleEntrySize, readBundleCount } from '../../format/bundle.js'
import type { Id } from '../../format/id.js'
import { isRefusal, type Refusal, refuse } from '../../format/refusal.js'
import { unknownEverywhere } from '../refusals.js'
import { BundleDirectory } from './bundle-directory.js'
import { type RootBytes, readAll } from './root-bytes.js'

/** A bundle: the root's data, or the payload of an item in it. */
export interface Bundle {
  readonly id: Id
  /** Where it starts in the root's data. */
  readonly start: number
  readonly sizeBytes: number
  /** Root first, itself last. */
  readonly path: readonly Id[]
}

/** All of a root's data as a bundle. */
export function topBundle({ id, sizeBytes }: RootBytes): Bundle {
  return { id, start: 0, sizeBytes, path: [id] }
}

export interface DirectoryNeeds {
  readonly root: RootBytes
  /** Larger bundle headers (64 bytes an item) are not read. */
  readonly limits: { readonly headerMaxBytes: number }
  readonly signal: AbortSignal
  /** Address of who asks; absent: this program itself. */
  readonly client?: string | undefined
}

const entriesMax = 1_000_000
/** Memory of all directories that are kept: of 1,700,000 entries. */
const usualMemoryBytes = 32 * 1024 * 1024
/** Directories of one entry take some hundred bytes beside it. */
const overheadBytes = 512

/** Parts of searches that begin in one turn of the event loop: below a millisecond together. */
const partsEachTurn = 8
/** Parts that wait, of all clients and of one. */
const [waitingMax, eachMax] = [8192, 1024]

/**
 * Directories of bundles: each is read once for all who look for items of it at a time, and kept while there is memory for it. So
 * a search costs the same however many entries a bundle has.
 *
 * Reading them, headers of items and the bytes that a signature covers is work that strangers can set in motion. It is done in
 * parts, some in each turn of the event loop, by turns of the clients (`turn`).
 */
export class Directories {
  readonly #known = new Map<string, BundleDirectory>()
  readonly #reading = new Map<string, Promise<unknown>>()
  readonly #slots = new FairSlots({ max: partsEachTurn, waitingMax, eachMax, isBrief: true })
  #memoryBytes = 0

  constructor(private readonly memoryMaxBytes = usualMemoryBytes) {}

  /** Resolves when the next part of a client's search may run. The refusal: too many parts of this client wait. */
  async turn(client = 'own'): Promise<Refusal | undefined> {
    const slot = await this.#slots.wait(client)
    if (isRefusal(slot)) return slot
    setImmediate(slot)
    return undefined
  }

  /** The directory of a bundle, perhaps only of its first entries (`cut`). A refusal: none of them could be had. */
  async open(needs: DirectoryNeeds, bundle: Bundle): Promise<BundleDirectory | Refusal> {
    const key = keyOf(needs.root, bundle.start)
    if (key === undefined) return this.#read(needs, bundle)
    for (;;) {
      const known = this.#find(key)
      if (known !== undefined) return known
      const reading = this.#reading.get(key)
      if (reading === undefined) break
      await reading
      if (needs.signal.aborted) return refuse('late', 'client', 'nobody waits for the item')
    }
    const reading = this.#read(needs, bundle)
    this.#reading.set(key, reading)
    const read = await reading.finally(() => this.#reading.delete(key))
    // What could not be had now may be had the next time.
    if (!isRefusal(read) && (read.cut === undefined || read.cut.refused === 'malformed'))
      this.#keep(key, read)
    return read
  }

  async #read(
    { root, limits, signal, client }: DirectoryNeeds,
    { start, sizeBytes }: Bundle,
  ): Promise<BundleDirectory | Refusal> {
    if (sizeBytes < bundleCountSize) return unknownEverywhere()
    const first = await readAll(root, start, start + bundleCountSize, signal)
    if (isRefusal(first)) return first
    // Data that is no bundle, or a bundle with too many items: only of the first is it known that nothing lies in it.
    const count = readBundleCount(first, { itemsMax: Number.MAX_SAFE_INTEGER, sizeBytes })
    if (isRefusal(count)) return count
    const headerBytes = count * bundleEntrySize
    if (count > entriesMax || headerBytes > limits.headerMaxBytes)
      return refuse('too-large', 'upstream', 'the bundle header is too large')
    const directory = new BundleDirectory(count, sizeBytes)
    const from = start + bundleCountSize
    for await (const piece of root.stream(from, from + headerBytes, signal)) {
      const refusal = isRefusal(piece) ? piece : await this.turn(client)
      if (refusal !== undefined) {
        directory.cut = refusal
        break
      }
      if (!isRefusal(piece) && !directory.add(piece)) break
    }
    return directory
  }

  #find(key: string): BundleDirectory | undefined {
    const found = this.#known.get(key)
    if (found === undefined) return undefined
    // The one that is used last is removed last.
    this.#known.delete(key)
    this.#known.set(key, found)
    return found
  }

  #keep(key: string, directory: BundleDirectory): void {
    this.#known.set(key, directory)
    this.#memoryBytes += directory.memoryBytes + overheadBytes
    for (const [oldest, { memoryBytes }] of this.#known) {
      if (this.#memoryBytes <= this.memoryMaxBytes) break
      this.#known.delete(oldest)
      this.#memoryBytes -= memoryBytes + overheadBytes
    }
  }
}

/** Undefined: what others state of a root may be another thing the next time. */
function keyOf({ id, sizeBytes, digest, proven }: RootBytes, start: number): string | undefined {
  const bytes = digest === undefined ? (proven ? id : undefined) : Buffer.from(digest).toString('base64url')
  return bytes === undefined ? undefined : `${bytes} ${sizeBytes} ${start}`
}
