import { closeSync, fstatSync, openSync, readSync } from 'node:fs'
import { type CdbHeader, headerBytes, readHeader } from '../format/cdb64.js'
import { CdbLookup } from '../format/cdb64-lookup.js'
import { isMissing } from './blobs.js'

/** A CDB64 file that is open: two small reads a search, its header in memory. */
export interface CdbFile {
  readonly file: number
  readonly sizeBytes: number
  readonly header: CdbHeader
}

/** Opens a file. `missing`: there is none. `broken`: it is none of this format. Throws where the disk refuses. */
export function openCdb(path: string): CdbFile | 'missing' | 'broken' {
  let file: number
  try {
    file = openSync(path, 'r')
  } catch (error) {
    if (isMissing(error)) return 'missing'
    throw error
  }
  try {
    const sizeBytes = fstatSync(file).size
    const bytes = Buffer.alloc(headerBytes)
    const header =
      readSync(file, bytes, 0, headerBytes, 0) === headerBytes ? readHeader(bytes, sizeBytes) : undefined
    if (header !== undefined) return { file, sizeBytes, header }
  } catch (error) {
    closeSync(file)
    throw error
  }
  closeSync(file)
  return 'broken'
}

/** One search after another in open files. One a thread. */
export class CdbSearch {
  readonly #lookup = new CdbLookup({ slotBytes: 128, recordBytes: 128 })

  /**
   * Looks for `key`. `found`: the value is in `bytes` from `start` to `end`, until the next search. `broken`: the file is not
   * what it should be, or the disk failed; never throws.
   */
  find({ file, header, sizeBytes }: CdbFile, key: Uint8Array): 'found' | 'absent' | 'broken' {
    const lookup = this.#lookup
    let step: ReturnType<CdbLookup['step']> = lookup.begin(header, sizeBytes, key)
    while (step === 'read') {
      if (!filled(file, lookup)) return 'broken'
      step = lookup.step()
    }
    return step
  }

  get bytes(): Buffer {
    return this.#lookup.buffer
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
