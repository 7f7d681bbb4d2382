import { closeSync, fstatSync, openSync, readSync } from 'node:fs'
import {
  type PackedHead,
  packedHeadBytes,
  type Resolved,
  readPackedHead,
  refusalOf,
  resolvePacked,
} from '../format/packed-manifest.js'
import { isRefusal, type Refusal } from '../format/refusal.js'
import { isMissing } from './blobs.js'

/** A packed manifest on disk, open: each path costs two or three reads of at most 3 KiB. */
export class PackedFile {
  #file: number | undefined

  private constructor(
    file: number,
    private readonly head: PackedHead,
  ) {
    this.#file = file
  }

  /**
   * Opens the packed manifest at `path`. A refusal: the text was parsed and is no manifest that can be resolved. Undefined: there
   * is no such file, or it is not what it should be.
   */
  static open(path: string): PackedFile | Refusal | undefined {
    let file: number
    try {
      file = openSync(path, 'r')
    } catch (error) {
      if (isMissing(error)) return undefined
      throw error
    }
    const opened = openedFile(file)
    if (opened === undefined || isRefusal(opened)) closeSync(file)
    return opened === undefined || isRefusal(opened) ? opened : new PackedFile(file, opened)
  }

  /** What `path` (percent-decoded, without a slash at its start) leads to. `broken`: the file is damaged, or closed by now. */
  resolve(path: string): Resolved | 'absent' | 'broken' {
    const file = this.#file
    if (file === undefined) return 'broken'
    return resolvePacked(this.head, (position, length) => readAt(file, position, length), path)
  }

  close(): void {
    if (this.#file !== undefined) closeSync(this.#file)
    this.#file = undefined
  }
}

function openedFile(file: number): PackedHead | Refusal | undefined {
  const bytes = readAt(file, 0, packedHeadBytes)
  const head = bytes === undefined ? undefined : readPackedHead(bytes, fstatSync(file).size)
  if (head === undefined) return undefined
  return refusalOf(head, (position, length) => readAt(file, position, length)) ?? head
}

function readAt(file: number, position: number, length: number): Buffer | undefined {
  const bytes = Buffer.allocUnsafe(length)
  try {
    return readSync(file, bytes, 0, length, position) === length ? bytes : undefined
  } catch {
    // A disk that fails is as good as a damaged file: whoever asks has it made again, and hears of the disk then.
    return undefined
  }
}
