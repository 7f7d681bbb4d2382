import { statfsSync } from 'node:fs'
import type { Clock } from '../actor/clock.js'
import { textAnswer, type UploadAnswer } from './answers.js'

/** A look costs some microseconds, but there may be thousands of uploads a second. */
const lookEachMs = 200

/** Whether the disk has room for more uploads: they stop before it is full, so that everything else goes on. */
export class DiskRoom {
  #lookedMs = Number.NEGATIVE_INFINITY
  #isFull = false

  constructor(
    private readonly folder: string,
    private readonly minBytes: number,
    private readonly clock: Clock,
  ) {}

  /** What uploaders are told; undefined where there is room. */
  full(): UploadAnswer | undefined {
    const now = this.clock.monotonic()
    if (now - this.#lookedMs > lookEachMs) {
      this.#lookedMs = now
      const { bavail, bsize } = statfsSync(this.folder)
      this.#isFull = bavail * bsize < this.minBytes
    }
    if (!this.#isFull) return undefined
    return textAnswer(
      503,
      'The disk of this service is nearly full: no uploads are taken',
      '\r\nRetry-After: 60',
    )
  }
}
