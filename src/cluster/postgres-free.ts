import { type Clock, type Timer, withinTime } from '../actor/clock.js'
import type { Log } from '../actor/log.js'
import { Outage } from '../actor/outage.js'
import { type AskDatabase, PostgresSessions } from '../ledger/postgres-session.js'
import { sha256 } from '../proof/digest.js'
import { DatabaseCalls } from './database-calls.js'
import type { FreeElsewhere, FreeVerdict, FreeWish, OwnFreeCounts } from './free-elsewhere.js'

export interface PostgresFreeOptions {
  readonly databaseUrl: string
  /** A UUID of the disk with the counts of this machine. */
  readonly store: string
  readonly own: OwnFreeCounts
  /** The counts here are written by another thread, which gives them to the database. */
  readonly isReading?: true
  readonly clock: Clock
  readonly log: Pick<Log, 'warn' | 'info'>
  /** An uploader does not wait longer: 400 unless given. */
  readonly patienceMs?: number
  /** After a failure there are no requests for so long: 3,000 unless given. */
  readonly restMs?: number
}

/** Not flushed: what a crash of the database takes is compared anew, because the tables of each machine have it. */
const begin = 'BEGIN ISOLATION LEVEL READ COMMITTED; SET LOCAL synchronous_commit TO off'
const down = 'the free bytes of other machines are not known: uploads are free by what this machine knows'
const connectionsMax = 2
const answerMs = 3000
/** Takes in one transaction; each locks four counts at most. */
const takesMax = 100
const looksMax = 200
/** Any number of ours: the first half of the locks of counts. */
const lockClass = 718_281_831
const flushMs = 1000
/** Counts that are written or compared in one statement. */
const atOnce = 1000
/** Counts that wait to be written. Beyond it all are compared. */
const changedMax = 50_000
const compareMs = 3_600_000
/** Counts that have refused somebody are looked at again at most so often, and so many of them. */
const [againMs, lookedAgainMax] = [5000, 10_000] as const

interface Count {
  readonly key: string
  readonly used: string
}

/**
 * Free bytes that each machine has given, in PostgreSQL: a row for each count and disk; their sum is what counts. Each machine
 * writes its own rows as whole numbers, out of its own tables. So a write may be repeated, and after a kill, or with older data
 * of the database, a comparison makes the rows right.
 */
export class PostgresFree implements FreeElsewhere {
  readonly #sessions: PostgresSessions
  readonly #take: (wishes: readonly FreeWish[]) => Promise<FreeVerdict | undefined>
  readonly #look: (keys: readonly string[]) => Promise<ReadonlyMap<string, number> | undefined>
  readonly #changed = new Set<string>()
  readonly #lookedAgain = new Set<string>()
  readonly #calls: DatabaseCalls
  readonly #timers: readonly Timer[]
  #isCompared = false
  #isFlushing = false
  readonly #outage: Outage
  #isClosed = false

  constructor(private readonly options: PostgresFreeOptions) {
    const { databaseUrl, clock, log, patienceMs = 400, restMs = 3000 } = options
    this.#sessions = new PostgresSessions(databaseUrl, connectionsMax, answerMs, answerMs)
    this.#outage = new Outage(log, down, 'the free bytes of the cluster are counted again')
    this.#calls = new DatabaseCalls({
      clock,
      limitMs: patienceMs,
      restMs,
      onFailed: (error) => this.#failed(error),
      // Who writes knows more: a database may be read that takes no rows.
      onWell: () => options.isReading === true && this.#outage.well(),
    })
    this.#take = this.#calls.grouped((takes) => this.#takeAll(takes), takesMax)
    this.#look = this.#calls.grouped((looks) => this.#lookAll(looks), looksMax)
    this.#timers = [
      ...(options.isReading === true ? [] : [clock.every(flushMs, () => void this.flush())]),
      clock.every(againMs, () => this.#lookedAgain.clear()),
      clock.every(compareMs, () => {
        this.#isCompared = false
      }),
    ]
  }

  async take(wishes: readonly FreeWish[]): Promise<FreeVerdict | undefined> {
    const verdict = this.#isClosed ? undefined : await this.#take(wishes)
    // Whatever becomes of the question: the count here includes what was taken.
    if (verdict === undefined) this.changed(wishes.map(({ key }) => key))
    return verdict
  }

  async look(keys: readonly string[]): Promise<ReadonlyMap<string, number> | undefined> {
    return this.#isClosed ? undefined : this.#look(keys)
  }

  lookAgain(keys: readonly string[]): Promise<ReadonlyMap<string, number> | undefined> | undefined {
    const due = keys.filter((key) => !this.#lookedAgain.has(key))
    if (due.length === 0 || this.#lookedAgain.size > lookedAgainMax) return undefined
    for (const key of due) this.#lookedAgain.add(key)
    return this.look(due)
  }

  changed(keys: readonly string[]): void {
    for (const key of keys) this.#changed.add(key)
    if (this.#changed.size < changedMax) return
    this.#changed.clear()
    this.#isCompared = false
  }

  /** Writes what has changed, and compares all where that is due. Never rejects. */
  async flush(): Promise<void> {
    if (this.#isFlushing || this.#isClosed || this.#calls.isPaused) return
    this.#isFlushing = true
    try {
      if (!this.#isCompared) {
        await this.#compare()
        this.#isCompared = true
      }
      while (this.#changed.size > 0) {
        const keys = [...this.#changed].slice(0, atOnce)
        for (const key of keys) this.#changed.delete(key)
        try {
          await this.#write(
            this.#sessions.ask,
            keys.map((key) => [key, this.options.own.own(key)] as const),
          )
        } catch (error) {
          this.changed(keys)
          throw error
        }
      }
      this.#outage.well()
    } catch (error) {
      this.#calls.failed(error)
    } finally {
      this.#isFlushing = false
    }
  }

  /** `isAtOnce`: what has changed is not written; the next start compares all. */
  async close(isAtOnce = false): Promise<void> {
    const isWriting = !isAtOnce && this.options.isReading !== true
    if (isWriting) await withinTime(this.options.clock, 1000, this.flush(), undefined)
    this.#isClosed = true
    for (const timer of this.#timers) timer.cancel()
    await withinTime(this.options.clock, 1000, this.#sessions.close(), undefined)
  }

  /** Takes of one group are judged in their order, while nobody else changes their counts. */
  #takeAll(takes: readonly (readonly FreeWish[])[]): Promise<FreeVerdict[]> {
    return this.#sessions.transaction(begin, async (ask) => {
      const keys = [...new Set(takes.flatMap((wishes) => wishes.map(({ key }) => key)))]
      await ask('SELECT pg_advisory_xact_lock($1, lock) FROM unnest($2::int[]) AS lock', [
        lockClass,
        locksOf(keys),
      ])
      const others = await this.#others(ask, keys)
      // What other takes of this machine have counted, which wait for the next group.
      const used = new Map(keys.map((key) => [key, this.options.own.own(key)]))
      const add = (key: string, bytes: number): void => void used.set(key, (used.get(key) ?? 0) + bytes)
      for (const { key, bytes } of takes.flat()) add(key, -bytes)
      const verdicts = takes.map((wishes): FreeVerdict => {
        const isFree = wishes.every(
          ({ key, bytes, maxBytes }) => (used.get(key) ?? 0) + (others.get(key) ?? 0) + bytes <= maxBytes,
        )
        if (isFree) for (const { key, bytes } of wishes) add(key, bytes)
        return { isFree, others }
      })
      await this.#write(ask, [...used])
      return verdicts
    })
  }

  async #lookAll(looks: readonly (readonly string[])[]): Promise<ReadonlyMap<string, number>[]> {
    const others = await this.#others(this.#sessions.ask, [...new Set(looks.flat())])
    return looks.map(() => others)
  }

  async #others(ask: AskDatabase, keys: readonly string[]): Promise<ReadonlyMap<string, number>> {
    const rows = await ask<Count>(
      'SELECT key, sum(used) AS used FROM cluster_free WHERE key = ANY($1) AND store <> $2 GROUP BY key',
      [keys, this.options.store],
    )
    const sums = new Map(rows.map(({ key, used }) => [key, Number(used)]))
    return new Map(keys.map((key) => [key, sums.get(key) ?? 0]))
  }

  async #write(ask: AskDatabase, counts: readonly (readonly [key: string, used: number])[]): Promise<void> {
    if (counts.length === 0) return
    await ask(
      `INSERT INTO cluster_free (key, store, used) SELECT w.key, $1, w.used FROM unnest($2::text[], $3::bigint[]) AS w(key, used)
       ON CONFLICT (key, store) DO UPDATE SET used = excluded.used WHERE cluster_free.used <> excluded.used`,
      [this.options.store, counts.map(([key]) => key), counts.map(([, used]) => Math.max(0, used))],
    )
  }

  /** Makes all rows of this machine right: those that its tables have, and those that a kill has left. */
  async #compare(): Promise<void> {
    const { own, store } = this.options
    const { ask } = this.#sessions
    for (let after = ''; ; ) {
      const keys = own.keysBehind(after, atOnce)
      await this.#write(
        ask,
        keys.map((key) => [key, own.own(key)] as const),
      )
      if (keys.length < atOnce) break
      after = keys.at(-1) ?? after
    }
    for (let after = ''; ; ) {
      const rows = await ask<Count>(
        'SELECT key, used FROM cluster_free WHERE store = $1 AND key > $2 ORDER BY key LIMIT $3',
        [store, after, atOnce],
      )
      this.changed(rows.filter(({ key, used }) => Number(used) !== own.own(key)).map(({ key }) => key))
      if (rows.length < atOnce) break
      after = rows.at(-1)?.key ?? after
    }
  }

  #failed({ message }: Error): void {
    // It may have lost what it had not flushed, or be another one.
    this.#isCompared = false
    if (!this.#isClosed) this.#outage.failed({ reason: message })
  }
}

/** In one order for all, so that nobody waits for somebody who waits for him. */
function locksOf(keys: readonly string[]): number[] {
  const locks = new Set(keys.map((key) => Buffer.from(sha256(Buffer.from(key))).readInt32BE(0)))
  return [...locks].sort((one, other) => one - other)
}
