import { createHmac } from 'node:crypto'
import type { Clock } from '../actor/clock.js'
import type { Log } from '../actor/log.js'
import type { Meters } from '../actor/meter.js'
import { expected } from '../format/bug.js'
import type { Asks } from '../http/upstream.js'
import { diskOutage } from '../store/disk-error.js'
import { writePatiently } from '../store/patient-write.js'
import { type Agenda, pauseMs, type Task } from './agenda.js'
import { allEnded, Rounds } from './rounds.js'

export interface DeliveryOptions {
  /** 24 to 64 bytes: the receiver has them too. */
  readonly secret: Uint8Array
  readonly release: string
  /** Longest time of one whole exchange. */
  readonly timeoutMs: number
  /** Events sent to one receiver at once. */
  readonly atOnce: number
  readonly retryMs: number
  readonly retryMaxMs: number
  /** Then the event is given up. */
  readonly attemptsMax: number
}

export interface TargetParts {
  readonly url: string
  readonly agenda: Agenda
  readonly upstream: Asks
  readonly meters: Meters
  readonly clock: Clock
  readonly log: Log
}

const lookEveryMs = 1000

/**
 * Sends the events on the agenda of one receiver, each at least once, signed by Standard Webhooks: headers
 * `webhook-id`, `webhook-timestamp` (seconds) and `webhook-signature: v1,<base64 of HMAC-SHA-256 over
 * "id.timestamp.body">`. A receiver that does not answer does not delay the others.
 */
export class WebhookTarget {
  readonly #rounds: Rounds
  #isAway = false
  /** The receiver as the log has it: its path and query may hold secrets. */
  readonly #receiver: string

  constructor(
    private readonly parts: TargetParts,
    private readonly options: DeliveryOptions,
  ) {
    this.#receiver = new URL(parts.url).origin
    this.#rounds = new Rounds((signal) => this.#round(signal), diskOutage(parts.log, 'events of webhooks'))
  }

  run(): Promise<void> {
    return this.#rounds.run()
  }

  stop(): Promise<void> {
    return this.#rounds.stop()
  }

  async #round(signal: AbortSignal): Promise<number> {
    const { agenda, clock } = this.parts
    const tasks = agenda.due(clock.now(), this.options.atOnce)
    await allEnded(tasks.map((task) => this.#deliver(task, signal)))
    return tasks.length === 0 ? lookEveryMs : 0
  }

  async #deliver(task: Task, signal: AbortSignal): Promise<void> {
    const { agenda, clock, log, meters } = this.parts
    const fault = await this.#send(task, signal)
    if (signal.aborted && fault !== undefined) return
    const last = task.attempts + 1 >= this.options.attemptsMax
    const { retryMs, retryMaxMs } = this.options
    const write = (): void => {
      if (fault === undefined || fault.final || last) agenda.done(task)
      else agenda.later(task, clock.now() + pauseMs(task.attempts, retryMs, retryMaxMs))
    }
    // Begun anew, the round would send the event again each time.
    if (!(await writePatiently(write, signal, log))) return
    if (fault === undefined) {
      meters.of('webhooks_total', { outcome: 'told' }).add(1)
      if (this.#isAway) log.info({ receiver: this.#receiver }, 'a webhook receiver answers again')
      this.#isAway = false
      return
    }
    meters.of('webhooks_total', { outcome: fault.final || last ? 'given-up' : 'put-off' }).add(1)
    // Logged once, not for every event.
    if (!this.#isAway)
      log.warn({ receiver: this.#receiver, reason: fault.reason }, 'a webhook receiver does not take events')
    this.#isAway = true
  }

  /** What went wrong; `final`: trying again would not help. */
  async #send(task: Task, signal: AbortSignal): Promise<{ reason: string; final: boolean } | undefined> {
    const { upstream, clock, url } = this.parts
    const late = new AbortController()
    const timer = clock.after(this.options.timeoutMs, () => late.abort())
    const { origin, pathname, search } = new URL(url)
    try {
      const { statusCode, body } = await upstream.request({
        origin,
        path: pathname + search,
        method: 'POST',
        headers: { ...this.#signed(task), 'content-type': 'application/json' },
        body: task.value,
        signal: AbortSignal.any([signal, late.signal]),
      })
      await body.dump({ limit: 65_536 })
      if (statusCode >= 200 && statusCode < 300) return undefined
      return { reason: `status ${statusCode}`, final: statusCode === 410 }
    } catch (error) {
      const { message } = expected(error)
      return { reason: late.signal.aborted ? 'no answer in time' : message, final: false }
    } finally {
      timer.cancel()
    }
  }

  #signed({ key, value }: Task): Record<string, string> {
    const id = `evt_${Buffer.from(key).toString('hex')}`
    const seconds = String(Math.floor(this.parts.clock.now() / 1000))
    const signature = createHmac('sha256', this.options.secret).update(`${id}.${seconds}.`).update(value)
    return {
      'user-agent': this.options.release,
      'webhook-id': id,
      'webhook-timestamp': seconds,
      'webhook-signature': `v1,${signature.digest('base64')}`,
    }
  }
}
