import type { Cell } from '../actor/shared.js'

/**
 * Rules out what is certainly not blocked, on every thread, in some tens of nanoseconds: a Bloom filter in shared
 * memory, four bits of one word for each entry. Everything else is looked up on disk, so false positives cost time
 * but are never wrong answers. Entries are never removed. With a million entries one unblocked id in ten thousand is
 * looked up in vain, with a hundred million every second one. Ids and hashes are distributed evenly, so they need no
 * hash function; somebody who searches for an id with a false positive only causes one look-up.
 */
const words = 2 ** 23
const head = 3

/** Cell of the number of entries added so far and cell of the state. */
const added = 0
const state = 1
/** Cell with flags: which kinds of entries were added. */
const contents = 2
const anyId = 1
const anyHash = 2
/** A hash of content whose size is not known. */
const anyUnsized = 4

/** The filter of the block list in shared memory: one thread adds entries, any thread excludes what is not in the list. */
export class BlockFilter {
  readonly #cells: Int32Array

  /** 32 MiB of addresses; memory pages are used as entries are added. */
  static readonly bytes: number = (head + words) * 4

  /** `memory` of `BlockFilter.bytes` bytes, the same on every thread. */
  constructor(readonly memory: SharedArrayBuffer = new SharedArrayBuffer(BlockFilter.bytes)) {
    this.#cells = new Int32Array(memory)
    if (this.#cells.length !== head + words) throw new RangeError('the filter has another size')
  }

  /** Additions so far, modulo 2^32. */
  get version(): number {
    return Atomics.load(this.#cells, added)
  }

  /** Where that stands. */
  get versionCell(): Cell {
    return { cells: this.#cells, at: added }
  }

  /** Ids or hashes were added, not names alone. */
  get holdsContents(): boolean {
    return Atomics.load(this.#cells, contents) !== 0
  }

  /** Hashes were added. */
  get holdsHashes(): boolean {
    return (Atomics.load(this.#cells, contents) & anyHash) !== 0
  }

  /** False until everything that is on disk was added. */
  get isFilled(): boolean {
    return Atomics.load(this.#cells, state) === 1
  }

  /** Only the keeper calls this. */
  fill(): void {
    Atomics.store(this.#cells, state, 1)
  }

  /** Adds an id by its 32 bytes. Only the keeper calls this. */
  addId(bytes: Uint8Array): void {
    Atomics.or(this.#cells, contents, anyId)
    this.#add(cellOf(bytes), bitsOf(bytes))
  }

  /** Adds a hash by its 32 bytes, and the size of the content that has it, where that is known. Only the keeper calls this. */
  addHash(bytes: Uint8Array, sizeBytes: number | undefined): void {
    Atomics.or(this.#cells, contents, sizeBytes === undefined ? anyHash | anyUnsized : anyHash)
    if (sizeBytes !== undefined) this.#addText(sizeText(sizeBytes))
    this.#add(cellOf(bytes), bitsOf(bytes))
  }

  /** Adds a name. Only the keeper calls this. */
  addName(name: string): void {
    this.#addText(name)
  }

  /** False: certainly not added. `id` is canonical. */
  mayHoldId(id: string): boolean {
    const place = (sextet(id, 0) << 18) | (sextet(id, 1) << 12) | (sextet(id, 2) << 6) | sextet(id, 3)
    const mask =
      (1 << (sextet(id, 4) & 31)) |
      (1 << (sextet(id, 5) & 31)) |
      (1 << (sextet(id, 6) & 31)) |
      (1 << (sextet(id, 7) & 31))
    return this.#holds(place >> 1, mask)
  }

  mayHold(bytes: Uint8Array): boolean {
    return this.#holds(cellOf(bytes), bitsOf(bytes))
  }

  mayHoldName(name: string): boolean {
    return this.#holdsText(name)
  }

  /** False: no content of this size has a hash that was added. */
  mayHoldSize(sizeBytes: number): boolean {
    return (Atomics.load(this.#cells, contents) & anyUnsized) !== 0 || this.holdsSize(sizeBytes)
  }

  /** False: no hash was added whose content is known to have this size. */
  holdsSize(sizeBytes: number): boolean {
    return this.#holdsText(sizeText(sizeBytes))
  }

  #addText(text: string): void {
    const first = mix(text, seed)
    this.#add(first >>> 9, bits(mix(text, first)))
  }

  #holdsText(text: string): boolean {
    const first = mix(text, seed)
    return this.#holds(first >>> 9, bits(mix(text, first)))
  }

  #add(cell: number, mask: number): void {
    Atomics.or(this.#cells, head + cell, mask)
    // After the bits, so that a thread that sees the new version also sees the bits.
    Atomics.add(this.#cells, added, 1)
  }

  #holds(cell: number, mask: number): boolean {
    return (Atomics.load(this.#cells, head + cell) & mask) === mask
  }
}

function cellOf(bytes: Uint8Array): number {
  return (((bytes[0] ?? 0) << 16) | ((bytes[1] ?? 0) << 8) | (bytes[2] ?? 0)) >> 1
}

function bitsOf(bytes: Uint8Array): number {
  return bits(((bytes[3] ?? 0) << 16) | ((bytes[4] ?? 0) << 8) | (bytes[5] ?? 0))
}

/** Four bits of a word, chosen by 24 bits as four characters of base64url spell them. */
function bits(from: number): number {
  return (
    (1 << ((from >>> 18) & 31)) |
    (1 << ((from >>> 12) & 31)) |
    (1 << ((from >>> 6) & 31)) |
    (1 << (from & 31))
  )
}

const seed = 0x811c9dc5

/** Cannot be equal to a name, because names have no blank. */
function sizeText(sizeBytes: number): string {
  return `size ${sizeBytes}`
}

/** FNV-1a with a mixing step at the end, so that the upper bits depend on every character. */
function mix(text: string, seed: number): number {
  let hash = seed
  for (let at = 0; at < text.length; at += 1) hash = Math.imul(hash ^ text.charCodeAt(at), 0x01000193)
  hash = Math.imul(hash ^ (hash >>> 15), 0x2c1b3c6d)
  return (hash ^ (hash >>> 13)) >>> 0
}

const sextets = new Uint8Array(128)
for (const [value, letter] of [
  ...'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_',
].entries()) {
  sextets[letter.charCodeAt(0)] = value
}

function sextet(id: string, at: number): number {
  return sextets[id.charCodeAt(at)] ?? 0
}
