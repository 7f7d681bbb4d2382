import { once } from 'node:events'
import { Redis } from 'ioredis'
import { type Clock, withinTime } from '../actor/clock.js'
import type { Log } from '../actor/log.js'
import { expected } from '../format/bug.js'

const reconnectMaxMs = 2000
const answerMs = 1000

/** How Redis answers: the time of its last answer in milliseconds, or why there was none. */
export type NewsHealth = number | string

/**
 * Tells other machines at once, over Redis, that something has changed. A message says nothing but that: who hears it looks into
 * the database. Messages that are lost cost time only, because everybody looks now and then.
 */
export class ClusterNews {
  readonly #speaking: Redis
  readonly #hearing: Redis
  #isLogged = false

  /** `channel`: another one for each cluster. `onNews` is called for the messages of this machine, too. */
  constructor(
    url: string,
    private readonly channel: string,
    onNews: () => void,
    private readonly clock: Clock,
    private readonly log: Pick<Log, 'warn' | 'info'>,
  ) {
    const open = (): Redis =>
      new Redis(url, {
        maxRetriesPerRequest: 0,
        connectTimeout: answerMs,
        commandTimeout: answerMs,
        retryStrategy: (times) => Math.min(times * 100, reconnectMaxMs),
        // It would subscribe once more, and nobody would hear that this failed: the thread would end.
        autoResubscribe: false,
      })
    this.#speaking = open()
    this.#hearing = open()
    for (const redis of [this.#speaking, this.#hearing])
      redis.on('error', (error: Error) => this.#failed(error))
    this.#hearing.on('message', onNews)
    this.#hearing.on('ready', () => {
      if (this.#isLogged) log.info('Redis (news of the cluster) answers again')
      this.#isLogged = false
      this.#hearing.subscribe(this.channel).catch((error: Error) => this.#failed(error))
      // What was announced meanwhile was not heard.
      onNews()
    })
  }

  /** Never waits, and never fails: the others look by themselves. */
  announce(): void {
    if (this.#speaking.status !== 'ready') return
    this.#speaking.publish(this.channel, '').catch((error: Error) => this.#failed(error))
  }

  /** Never rejects. */
  async health(): Promise<NewsHealth> {
    if (this.#speaking.status !== 'ready') return 'no connection'
    const begun = this.clock.monotonic()
    const answer = this.#speaking.ping().then(
      (): NewsHealth => Math.round(this.clock.monotonic() - begun),
      (error: unknown): NewsHealth => expected(error).message,
    )
    return withinTime<NewsHealth, NewsHealth>(this.clock, answerMs, answer, 'no answer')
  }

  /** The same, a moment after the start: waits for the connection. */
  async firstHealth(): Promise<NewsHealth> {
    if (this.#speaking.status !== 'ready')
      await withinTime(
        this.clock,
        answerMs,
        once(this.#speaking, 'ready').catch(() => undefined),
        undefined,
      )
    return this.health()
  }

  close(): void {
    this.#speaking.disconnect()
    this.#hearing.disconnect()
  }

  /** Logged once until Redis answers again. */
  #failed(error: Error): void {
    if (this.#isLogged) return
    this.#isLogged = true
    this.log.warn(
      { reason: error.message },
      'Redis (news of the cluster) does not answer: changes of others come later',
    )
  }
}
