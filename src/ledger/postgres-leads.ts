import { Client } from 'pg'
import type { Clock, Timer } from '../actor/clock.js'
import { postgresFault } from './postgres-session.js'

/** Any number of ours: the first half of these locks, so that they are not those of others. */
const lockClass = 718_281_829

/** A connection that is silent for so long is ended by the server; while it holds a lock it asks three times as often. */
const silentMs = 9000

/** Since version 14 the server can do that; an older one waits until the connection breaks. */
const endSilent = `SELECT set_config('idle_session_timeout', $1, false)
  WHERE current_setting('server_version_num')::int >= 140000`

/**
 * Works that one process of all on a database does: session locks on a connection of their own. The server frees them with the
 * connection, so that a process that died, or lost the database, is followed at once. One that stands still is followed within
 * ten seconds, by the clock of the server alone; when it goes on its connection is gone, and it leads no more.
 */
export class PostgresLeads {
  #client: Promise<Client> | undefined
  /** That client, while it is connected. */
  #open: Client | undefined
  readonly #led = new Set<string>()
  readonly #timer: Timer
  #isClosed = false

  constructor(
    private readonly url: string,
    private readonly answerMs: number,
    clock: Clock,
    private readonly endSilentMs = silentMs,
  ) {
    this.#timer = clock.every(endSilentMs / 3, () => void this.#stay())
  }

  /** Rejects where the database cannot be reached. */
  async leads(work: string): Promise<boolean> {
    if (this.#isClosed) return false
    try {
      const client = await this.#connected()
      if (this.#led.has(work)) {
        // Whether the connection is there still decides.
        await client.query('SELECT 1')
        return this.#led.has(work)
      }
      const { rows } = await client.query<{ led: boolean }>(
        'SELECT pg_try_advisory_lock($1, hashtext($2)) AS led',
        [lockClass, work],
      )
      if (rows[0]?.led === true) this.#led.add(work)
      return rows[0]?.led === true
    } catch (error) {
      await this.#drop()
      throw postgresFault(error)
    }
  }

  async close(): Promise<void> {
    this.#isClosed = true
    this.#timer.cancel()
    await this.#drop()
  }

  /** Shows the server that this process goes on. */
  async #stay(): Promise<void> {
    if (this.#led.size === 0) return
    try {
      await (await this.#client)?.query('SELECT 1')
    } catch {
      // The locks went with the connection: the next question begins anew.
      await this.#drop()
    }
  }

  #connected(): Promise<Client> {
    this.#client ??= this.#connect()
    return this.#client
  }

  async #connect(): Promise<Client> {
    const { url: connectionString, answerMs } = this
    const client = new Client({
      connectionString,
      keepAlive: true,
      connectionTimeoutMillis: Math.min(10_000, answerMs),
      query_timeout: answerMs,
    })
    // Between two queries nothing else notices that it has ended. One that leads nothing is silent, and is ended each time: the
    // next question has another connection.
    client.on('error', () => undefined)
    client.on('end', () => this.#ended(client))
    this.#open = client
    await client.connect()
    await client.query(endSilent, [String(this.endSilentMs)])
    return client
  }

  /** The locks went with the connection, unless another one took its place meanwhile. */
  #ended(client: Client): void {
    if (this.#open !== client) return
    this.#open = undefined
    this.#client = undefined
    this.#led.clear()
  }

  /** A connection that failed is never used again. */
  async #drop(): Promise<void> {
    const before = this.#client
    this.#client = undefined
    this.#open = undefined
    this.#led.clear()
    const client = await before?.catch(() => undefined)
    await client?.end().catch(() => undefined)
  }
}
