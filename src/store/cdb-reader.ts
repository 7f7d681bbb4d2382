import { closeSync, fstatSync, openSync, readSync } from 'node:fs'
import { openAddon } from '../../native/mapped/mapped.js'
import type { MappedFile } from '../../native/mapped/mapped-file.js'
import { type CdbHeader, headerBytes, readHeader } from '../format/cdb64.js'
import { CdbLookup } from '../format/cdb64-lookup.js'
import { isMissing } from './blobs.js'

/** A CDB64 file that is open: two small reads a search, its header in memory. */
export interface CdbFile {
  readonly file: number
  readonly sizeBytes: number
  readonly inode: bigint
  readonly modifiedNs: bigint
  readonly header: CdbHeader
  /** Undefined where the file is only read. */
  readonly pages: SeenPages | undefined
}

/**
 * Opens a file. `missing`: there is none. `broken`: it is none of this format. Throws where the disk refuses. `mapped`: what was
 * read once is then read in place, four times as fast. Only for files that nobody changes or cuts: where a mapped file shrinks,
 * the kernel ends the process.
 */
export function openCdb(path: string, mapped = false): CdbFile | 'missing' | 'broken' {
  let file: number
  try {
    file = openSync(path, 'r')
  } catch (error) {
    if (isMissing(error)) return 'missing'
    throw error
  }
  try {
    const found = fstatSync(file, { bigint: true })
    const sizeBytes = Number(found.size)
    const bytes = Buffer.alloc(headerBytes)
    const header =
      readSync(file, bytes, 0, headerBytes, 0) === headerBytes ? readHeader(bytes, sizeBytes) : undefined
    if (header !== undefined) {
      const { ino: inode, mtimeNs: modifiedNs } = found
      const pages = mapped ? pagesOf(path, inode, sizeBytes) : undefined
      return { file, sizeBytes, inode, modifiedNs, header, pages }
    }
  } catch (error) {
    closeSync(file)
    throw error
  }
  closeSync(file)
  return 'broken'
}

/** Lets go of a file; nothing that was found in it may be read any more. */
export function closeCdb({ file, pages }: CdbFile): void {
  pages?.close()
  closeSync(file)
}

/** The mapping of the file that was just opened at `path`; undefined where there can be none, and plain reads do. */
function pagesOf(path: string, inode: bigint, sizeBytes: number): SeenPages | undefined {
  let mapping: MappedFile | undefined
  try {
    mapping = openAddon(path)
  } catch {
    // No address space, or no descriptor, is left: plain reads need none.
    return undefined
  }
  if (mapping === undefined) return undefined
  const bytes = mapping.view(0, mapping.sizeBytes)
  if (mapping.inode === inode && mapping.sizeBytes === sizeBytes && bytes.length === sizeBytes) {
    return new SeenPages(mapping, bytes)
  }
  // Another file came to lie there, or one too large for one view.
  mapping.close()
  return undefined
}

const pageBits = 12

/**
 * A mapped file and its recently read pages. A page is first read from the file, and afterwards from the mapping. So a search
 * never waits for the disk inside the mapping. There the kernel would fetch two megabytes around each byte, and a disk that
 * fails would end the process.
 */
export class SeenPages {
  readonly view: DataView
  /** A bit for each page. */
  readonly #seen: Int32Array

  constructor(
    private readonly mapping: MappedFile,
    readonly bytes: Uint8Array,
  ) {
    this.view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length)
    this.#seen = new Int32Array((bytes.length >> (pageBits + 5)) + 1)
  }

  has(position: number, length: number): boolean {
    const first = position >> pageBits
    const last = (position + length - 1) >> pageBits
    for (let page = first; page <= last; page += 1) {
      if ((((this.#seen[page >> 5] as number) >> (page & 31)) & 1) === 0) return false
    }
    return true
  }

  /** These bytes were just read. */
  note(position: number, length: number): void {
    const last = (position + length - 1) >> pageBits
    for (let page = position >> pageBits; page <= last; page += 1) {
      this.#seen[page >> 5] = (this.#seen[page >> 5] as number) | (1 << (page & 31))
    }
  }

  /** From now on nothing is believed to be in memory. */
  forget(): void {
    this.#seen.fill(0)
  }

  close(): void {
    this.mapping.close()
  }
}

/** One search after another in open files. One a thread. */
export class CdbSearch {
  readonly #lookup = new CdbLookup({ slotBytes: 128, recordBytes: 128 })

  /**
   * Looks for `key`. `found`: the value is in `bytes` from `start` to `end`, until the next search or until the file is closed.
   * `broken`: the file is not what it should be, or the disk failed; never throws.
   */
  find({ file, header, sizeBytes, pages }: CdbFile, key: Uint8Array): 'found' | 'absent' | 'broken' {
    const lookup = this.#lookup
    let step: ReturnType<CdbLookup['step']> = lookup.begin(header, sizeBytes, key)
    while (step === 'read') {
      const { position, length } = lookup
      if (pages?.has(position, length) === true) lookup.lie(pages.bytes, pages.view, position)
      else if (filled(file, lookup)) pages?.note(position, length)
      else return 'broken'
      step = lookup.step()
    }
    return step
  }

  get bytes(): Uint8Array {
    return this.#lookup.bytes
  }

  get start(): number {
    return this.#lookup.valueStart
  }

  get end(): number {
    return this.#lookup.valueEnd
  }
}

function filled(file: number, { buffer, length, position }: CdbLookup): boolean {
  try {
    return readSync(file, buffer, 0, length, position) === length
  } catch {
    // A disk that fails is as good as a file that lies: the search goes on elsewhere, and the caller counts it.
    return false
  }
}
