import { randomBytes } from 'node:crypto'
import { type BundleEntry, bundleCountSize, bundleEntrySize } from '../../format/bundle.js'
import { type Id, idBytes, idOfBytes } from '../../format/id.js'
import { isRefusal, type Refusal, refuse } from '../../format/refusal.js'

/** An item as the header of its bundle (ANS-104) lists it: its offset counts from the bundle's start. */
export type DirectoryEntry = BundleEntry

/** Bytes `start` to `end` (exclusive) of a bundle. */
export type ReadBundle = (start: number, end: number) => Promise<Uint8Array | Refusal>

/** The offset of one entry in so many is kept; the others are added up from the sizes in between. */
const stride = 64
/** Headers up to this size stay in memory. Larger ones are read again where an entry is wanted. */
const headerKeptBytes = 256 * 1024
/** Numbers of a slot: entry and one, and two of the hash. */
const slotNumbers = 3

/** Random for each process, so that nobody can choose ids that fall into one place. */
const seed = randomBytes(8)
const [seedLow, seedHigh] = [seed.readUInt32LE(0), seed.readUInt32LE(4)]

/**
 * The entries of a bundle's header, found by id or by place in constant time and some 18 bytes of memory each. Of entries with
 * one id the first counts. Bytes are added as they come (`add`), a piece at a time, because a header may have a million entries.
 */
export class BundleDirectory {
  /** Entries that were read. */
  count = 0
  /** Why the rest was not read; undefined: all were. */
  cut: Refusal | undefined
  /** Those of the first `examined` entries that are bundles, by their own headers; undefined: nobody has looked. */
  bundles: { readonly examined: number; readonly entries: readonly DirectoryEntry[] } | undefined
  /** Where the next item starts. */
  #end: number
  readonly #slots: Uint32Array
  readonly #offsets: Float64Array
  readonly #header: Uint8Array | undefined
  #rest: Uint8Array = new Uint8Array(0)
  readonly #slotCount: number

  /** For a bundle of `sizeBytes` whose header lists `announced` items. */
  constructor(
    readonly announced: number,
    private readonly sizeBytes: number,
  ) {
    this.#slotCount = Math.ceil(announced * 1.5) + 1
    this.#slots = new Uint32Array(this.#slotCount * slotNumbers)
    this.#offsets = new Float64Array(Math.ceil(announced / stride))
    this.#end = bundleCountSize + announced * bundleEntrySize
    const headerBytes = announced * bundleEntrySize
    this.#header = headerBytes <= headerKeptBytes ? new Uint8Array(headerBytes) : undefined
  }

  /** What it takes in memory, in bytes. */
  get memoryBytes(): number {
    return this.#slots.byteLength + this.#offsets.byteLength + (this.#header?.length ?? 0)
  }

  /** Takes the next bytes of the header behind the count. False: the rest is of no use (`cut`). */
  add(piece: Uint8Array): boolean {
    const bytes = this.#rest.length === 0 ? piece : Buffer.concat([this.#rest, piece])
    const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length)
    let at = 0
    for (; at + bundleEntrySize <= bytes.length && this.count < this.announced; at += bundleEntrySize) {
      const size = sizeAt(view, at)
      if (size === undefined || this.#end + size > this.sizeBytes) {
        this.cut = refuse('malformed', 'upstream', `item ${this.count} of the bundle ends after its end`)
        return false
      }
      if (this.count % stride === 0) this.#offsets[this.count / stride] = this.#end
      this.#header?.set(bytes.subarray(at, at + bundleEntrySize), this.count * bundleEntrySize)
      this.#put(view, at + 32)
      this.count += 1
      this.#end += size
    }
    this.#rest = Uint8Array.from(bytes.subarray(at))
    return true
  }

  /** The first entry with this id; undefined: none of those that were read has it. */
  async find(id: Id, read: ReadBundle): Promise<DirectoryEntry | Refusal | undefined> {
    const bytes = idBytes(id)
    const place = this.#slotOf(new DataView(bytes.buffer, bytes.byteOffset, bytes.length), 0)
    const number = this.#slots[place] ?? 0
    if (number === 0) return undefined
    const entry = await this.#entry(number - 1, read)
    return isRefusal(entry) || entry.id === id ? entry : undefined
  }

  /** The entry whose item holds the byte at `offset` of the bundle. */
  async covering(offset: number, read: ReadBundle): Promise<DirectoryEntry | Refusal | undefined> {
    if (offset >= this.#end || offset < (this.#offsets[0] ?? Number.POSITIVE_INFINITY)) return undefined
    let [low, high] = [0, Math.ceil(this.count / stride)]
    while (high - low > 1) {
      const middle = (low + high) >> 1
      if ((this.#offsets[middle] ?? 0) <= offset) low = middle
      else high = middle
    }
    const entries = await this.#entries(low * stride, Math.min(this.count, (low + 1) * stride), read)
    if (isRefusal(entries)) return entries
    return entries.find((entry) => entry.offset <= offset && offset < entry.offset + entry.sizeBytes)
  }

  /** The first `max` entries. */
  first(max: number, read: ReadBundle): Promise<readonly DirectoryEntry[] | Refusal> {
    return this.#entries(0, Math.min(max, this.count), read)
  }

  async #entry(index: number, read: ReadBundle): Promise<DirectoryEntry | Refusal> {
    const entries = await this.#entries(index - (index % stride), index + 1, read)
    if (isRefusal(entries)) return entries
    return entries.at(-1) ?? refuse('defect', 'self', 'an entry of a directory is missing')
  }

  /** Entries `from` (a multiple of the stride) to `to`. */
  async #entries(from: number, to: number, read: ReadBundle): Promise<DirectoryEntry[] | Refusal> {
    const [start, end] = [from * bundleEntrySize, to * bundleEntrySize]
    const bytes =
      this.#header?.subarray(start, end) ?? (await read(bundleCountSize + start, bundleCountSize + end))
    if (isRefusal(bytes)) return bytes
    const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length)
    let offset = this.#offsets[from / stride] ?? 0
    return Array.from({ length: to - from }, (_, at) => {
      const idAt = at * bundleEntrySize + 32
      const entry = {
        id: idOfBytes(bytes.subarray(idAt, idAt + 32)),
        sizeBytes: sizeAt(view, at * bundleEntrySize) ?? 0,
        offset,
      }
      offset += entry.sizeBytes
      return entry
    })
  }

  #put(view: DataView, at: number): void {
    const place = this.#slotOf(view, at)
    // An earlier entry with the same id counts.
    if (this.#slots[place] !== 0) return
    this.#slots[place] = this.count + 1
    this.#slots[place + 1] = mixed(view, at, seedLow)
    this.#slots[place + 2] = mixed(view, at, seedHigh)
  }

  /** Place of the slot with the id at `at`, or of the free one where it would be. */
  #slotOf(view: DataView, at: number): number {
    const [low, high] = [mixed(view, at, seedLow), mixed(view, at, seedHigh)]
    let slot = Math.floor((low / 2 ** 32) * this.#slotCount)
    for (;;) {
      const place = slot * slotNumbers
      const isSame = this.#slots[place + 1] === low && this.#slots[place + 2] === high
      if (this.#slots[place] === 0 || isSame) return place
      slot = slot + 1 === this.#slotCount ? 0 : slot + 1
    }
  }
}

/** A 32-byte little-endian number; undefined beyond 2^53. */
function sizeAt(view: DataView, at: number): number | undefined {
  for (let word = 8; word < 32; word += 4) if (view.getUint32(at + word) !== 0) return undefined
  const size = view.getUint32(at, true) + view.getUint32(at + 4, true) * 2 ** 32
  return size > Number.MAX_SAFE_INTEGER ? undefined : size
}

/** 32 bits of all 32 bytes at `at`, and of a seed. */
function mixed(view: DataView, at: number, seed: number): number {
  let hash = seed
  for (let word = 0; word < 32; word += 4) {
    hash = Math.imul(hash ^ view.getUint32(at + word, true), 0x9e37_79b1)
    hash ^= hash >>> 15
  }
  hash = Math.imul(hash ^ (hash >>> 13), 0x85eb_ca6b)
  return (hash ^ (hash >>> 16)) >>> 0
}
