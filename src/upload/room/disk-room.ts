import { statfsSync } from 'node:fs'
import type { Clock } from '../../actor/clock.js'
import { textAnswer, type UploadAnswer } from '../requests/upload-answers.js'

/** A look costs some microseconds, but there may be thousands of uploads a second. */
const lookEachMs = 200

/** Whether the disk has room for more uploads: they stop before it is full, so that everything else goes on. */
export class DiskRoom {
  #lookedMs = Number.NEGATIVE_INFINITY
  #freeBytes = 0

  constructor(
    private readonly folder: string,
    private readonly minBytes: number,
    private readonly clock: Clock,
  ) {}

  /** Bytes that may still be taken; below 0 where there are fewer than are to stay free. */
  get leftBytes(): number {
    const now = this.clock.monotonic()
    if (now - this.#lookedMs > lookEachMs) {
      this.#lookedMs = now
      const { bavail, bsize } = statfsSync(this.folder)
      this.#freeBytes = bavail * bsize
    }
    return this.#freeBytes - this.minBytes
  }

  /** So many bytes are being removed: they are counted as free before the next look. */
  expect(bytes: number): void {
    this.#freeBytes += bytes
  }

  /** The refusal for uploaders; undefined where there is room for this many more bytes. */
  noRoomFor(bytes = 0): UploadAnswer | undefined {
    return this.leftBytes >= bytes ? undefined : fullDisk
  }
}

const fullDisk = textAnswer(
  503,
  'The disk of this service is nearly full: no uploads are taken',
  '\r\nRetry-After: 60',
)
