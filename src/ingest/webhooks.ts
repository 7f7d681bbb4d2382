import { createHash } from 'node:crypto'
import type { ItemFilter } from '../../config/item-filter.js'
import type { Clock } from '../actor/clock.js'
import type { Log } from '../actor/log.js'
import type { Meters } from '../actor/meter.js'
import { Upstream } from '../http/upstream.js'
import { type Environment, openEnvironment } from '../store/lmdb.js'
import { Agenda } from './agenda.js'
import type { WebhookEvent } from './webhook-events.js'
import { type DeliveryOptions, WebhookTarget } from './webhook-target.js'

export interface WebhookOptions {
  /** Receivers' addresses. */
  readonly servers: readonly string[]
  /** Transactions and items that are reported. */
  readonly index: ItemFilter
  /** Whether blocks are reported. */
  readonly blocks: boolean
  /** Whether newly cached content is reported. */
  readonly cached: boolean
  /** Whether accepted and permanent uploads are reported. */
  readonly uploads: boolean
  /** Events that wait for one receiver at most: some KiB each on disk, and some 33 KiB where tags are long. */
  readonly waitingMax: number
  readonly delivery: DeliveryOptions
}

/**
 * Sends events to receivers. Events are on disk before they are sent, so a kill loses nothing; an event may be sent
 * twice, with the same id. Where an agenda is full, new events are dropped, counted and logged.
 */
export class Webhooks {
  readonly #environment: Environment
  readonly #agendas: readonly Agenda[]
  readonly #targets: readonly WebhookTarget[]
  readonly #upstream = new Upstream({ connect: { timeout: 5000 } })
  #isFull = false

  /** `path` is the folder of its own environment. */
  constructor(
    path: string,
    readonly options: WebhookOptions,
    private readonly parts: { readonly meters: Meters; readonly clock: Clock; readonly log: Log },
  ) {
    const { servers, waitingMax, delivery } = options
    // Receivers that were taken out of the settings keep their two tables: room for a few generations of them.
    const environment = openEnvironment(path, 256)
    this.#environment = environment
    this.#agendas = servers.map((url) => new Agenda(environment, nameOf(url), waitingMax))
    this.#targets = servers.map((url, at) => {
      const agenda = this.#agendas[at]
      if (agenda === undefined) throw new Error('a receiver without agenda')
      return new WebhookTarget({ ...parts, url, agenda, upstream: this.#upstream }, delivery)
    })
  }

  /** On disk for every receiver when this returns. */
  announce(events: readonly WebhookEvent[]): void {
    if (events.length === 0) return
    const tasks = events.map(({ key, body }) => ({ key, value: body }))
    const refused = this.#agendas.reduce((sum, one) => sum + one.put(tasks, this.parts.clock.now()), 0)
    if (refused > 0) {
      this.parts.meters.of('webhooks_total', { outcome: 'dropped' }).add(refused)
      if (!this.#isFull)
        this.parts.log.error({ refused }, 'the queue of webhooks is full: events are not sent')
    }
    this.#isFull = refused > 0
  }

  async run(): Promise<void> {
    await Promise.all(this.#targets.map((target) => target.run()))
  }

  async stop(): Promise<void> {
    await Promise.all(this.#targets.map((target) => target.stop()))
    await this.#upstream.destroy()
    await this.#environment.close()
  }
}

function nameOf(url: string): string {
  return createHash('sha256').update(url).digest('hex').slice(0, 16)
}
