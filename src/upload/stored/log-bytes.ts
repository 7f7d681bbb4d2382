import { closeSync, openSync, readSync } from 'node:fs'
import { codeOf } from '../../store/blobs.js'
import { cutLogError, type LogPlace, logFileName } from '../../store/segments/log-file.js'
import { recordSlotBytes } from '../../store/segments/segment-record.js'

/**
 * Copies items out of the log, each to its offset. They were written a moment ago, so the kernel has them in memory. Returns the
 * system's error for each item that cannot be read, by its number: the disk fails, or a file is cut.
 */
export function readLogInto(
  folder: string,
  items: readonly { readonly place: LogPlace }[],
  offsets: readonly number[],
  into: Uint8Array,
): ReadonlyMap<number, unknown> {
  const errors = new Map<number, unknown>()
  let [file, handle] = [-1, -1]
  const close = (): void => {
    if (handle >= 0) closeSync(handle)
    file = -1
    handle = -1
  }
  const read = (place: LogPlace, offset: number): void => {
    if (place.file !== file) {
      close()
      handle = openSync(`${folder}/${logFileName(place.file)}`, 'r')
      file = place.file
    }
    for (let at = 0; at < place.sizeBytes; ) {
      const bytes = readSync(handle, into, offset + at, place.sizeBytes - at, place.offset + at)
      if (bytes === 0) throw cutLogError(file)
      at += bytes
    }
  }
  try {
    for (const [at, { place }] of items.entries()) {
      try {
        read(place, offsets[at] ?? 0)
      } catch (error) {
        if (codeOf(error) === undefined) throw error
        errors.set(at, error)
      }
    }
  } finally {
    close()
  }
  return errors
}

/** Which places of the log have an item. */
export class PlacesSeen {
  /** A bit for each place where a record may begin. */
  readonly #files = new Map<number, Uint8Array>()

  add({ file, offset }: LogPlace): void {
    const slot = slotOf(offset)
    let bits = this.#files.get(file) ?? new Uint8Array(64)
    if (slot >> 3 >= bits.length) {
      const longer = new Uint8Array(Math.max((slot >> 3) + 1, 2 * bits.length))
      longer.set(bits)
      bits = longer
    }
    bits[slot >> 3] = (bits[slot >> 3] ?? 0) | (1 << (slot & 7))
    this.#files.set(file, bits)
  }

  has({ file, offset }: LogPlace): boolean {
    const slot = slotOf(offset)
    return (((this.#files.get(file)?.[slot >> 3] ?? 0) >> (slot & 7)) & 1) === 1
  }
}

function slotOf(offset: number): number {
  return Math.floor(offset / recordSlotBytes)
}
