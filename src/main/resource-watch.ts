import { readdir, statfs } from 'node:fs/promises'
import type { Clock, Timer } from '../actor/clock.js'
import type { Log } from '../actor/log.js'
import type { Meters } from '../actor/meter.js'
import { descriptorLimit } from './descriptors.js'

const lookMs = 10_000

/** Shows what the system leaves this process: room on the disk of DATA_PATH, and descriptors. On the main thread, every 10 s. */
export class ResourceWatch {
  readonly #timer: Timer
  /** A failure is logged once. */
  #isSaid = false
  #looking: Promise<void> | undefined

  constructor(
    private readonly folder: string,
    private readonly meters: Meters,
    private readonly log: Pick<Log, 'warn'>,
    clock: Clock,
  ) {
    this.meters.of('process_max_fds').set(descriptorLimit() ?? 0)
    this.#timer = clock.every(lookMs, () => void this.look())
    void this.look()
  }

  /** Never rejects. While a call does not return (a hanging disk), no other one is made. */
  look(): Promise<void> {
    this.#looking ??= this.#look().finally(() => {
      this.#looking = undefined
    })
    return this.#looking
  }

  async #look(): Promise<void> {
    try {
      const { bavail, blocks, bsize } = await statfs(this.folder)
      this.meters.of('data_disk_free_bytes').set(bavail * bsize)
      this.meters.of('data_disk_size_bytes').set(blocks * bsize)
      this.meters.of('process_open_fds').set((await readdir('/proc/self/fd')).length)
    } catch (error) {
      if (!this.#isSaid) this.log.warn({ err: error }, 'free disk space and open files cannot be measured')
      this.#isSaid = true
    }
  }

  close(): void {
    this.#timer.cancel()
  }
}
