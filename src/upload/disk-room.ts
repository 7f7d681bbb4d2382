import { statfsSync } from 'node:fs'
import type { Clock } from '../actor/clock.js'
import { textAnswer, type UploadAnswer } from './answers.js'

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

  /** What uploaders are told; undefined where there is room for so many bytes more. */
  full(bytes = 0): UploadAnswer | undefined {
    const now = this.clock.monotonic()
    if (now - this.#lookedMs > lookEachMs) {
      this.#lookedMs = now
      const { bavail, bsize } = statfsSync(this.folder)
      this.#freeBytes = bavail * bsize
    }
    if (this.#freeBytes - bytes >= this.minBytes) return undefined
    return textAnswer(
      503,
      'The disk of this service is nearly full: no uploads are taken',
      '\r\nRetry-After: 60',
    )
  }
}
