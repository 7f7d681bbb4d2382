import { readdir, statfs } from 'node:fs/promises'
import { join } from 'node:path'
import type { Clock, Timer } from '../actor/clock.js'
import type { Log } from '../actor/log.js'
import type { Meters } from '../actor/meter.js'
import type { Generations } from '../catalog/generations.js'
import { diskErrors } from '../store/disk-errors.js'
import { descriptorLimit } from './descriptors.js'

const lookMs = 10_000

/**
 * Shows what the system leaves this process: room on the disk of DATA_PATH, and descriptors; and whether the catalog there can be
 * read. On the main thread, every 10 s.
 */
export class ResourceWatch {
  readonly #timer: Timer
  /** A failure is logged once. */
  #isLogged = false
  #isDamageLogged = false
  #looking: Promise<void> | undefined
  #diskErrors = 0

  constructor(
    private readonly folder: string,
    private readonly meters: Meters,
    private readonly log: Pick<Log, 'warn' | 'error'>,
    clock: Clock,
    private readonly catalog: Pick<Generations, 'isDamaged'>,
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

  #lookAtCatalog(): void {
    if (this.#isDamageLogged || !this.catalog.isDamaged) return
    this.#isDamageLogged = true
    this.meters.of('catalog_damaged').set(1)
    this.log.error(
      { path: join(this.folder, 'catalog') },
      'the catalog is damaged: what its pages held is fetched anew, not kept. See "A database is broken" in deploy/OPERATING.md',
    )
  }

  #countDiskErrors(): void {
    const { count } = diskErrors()
    this.meters.of('disk_errors_total').add(count - this.#diskErrors)
    this.#diskErrors = count
  }

  async #look(): Promise<void> {
    this.#lookAtCatalog()
    this.#countDiskErrors()
    try {
      const { bavail, blocks, bsize } = await statfs(this.folder)
      this.meters.of('data_disk_free_bytes').set(bavail * bsize)
      this.meters.of('data_disk_size_bytes').set(blocks * bsize)
      this.meters.of('process_open_fds').set((await readdir('/proc/self/fd')).length)
    } catch (error) {
      if (!this.#isLogged) this.log.warn({ err: error }, 'free disk space and open files cannot be measured')
      this.#isLogged = true
    }
  }

  close(): void {
    this.#timer.cancel()
  }
}
