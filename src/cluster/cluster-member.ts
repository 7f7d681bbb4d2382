import { randomUUID } from 'node:crypto'
import { type Clock, pause, type Timer, withinTime } from '../actor/clock.js'
import type { Log } from '../actor/log.js'
import { Outage } from '../actor/outage.js'
import { type Refusal, refuse } from '../format/refusal.js'
import { PostgresSessions } from '../ledger/postgres-session.js'
import { type ClusterFacts, clusterFacts } from './cluster-doctor.js'
import { ClusterNews } from './cluster-news.js'
import { clusterSteps, migrateCluster, UnknownSchema } from './cluster-schema.js'
import type { Drain, DrainState } from './drain.js'
import { ForeignCluster, ListSharing } from './list-sharing.js'
import { type IndexWork, type MachineState, Machines } from './machines.js'
import { PostgresEntries } from './postgres-entries.js'
import type { SharedSide } from './shared-entries.js'

export interface MemberOptions {
  readonly databaseUrl: string
  readonly redisUrl: string | undefined
  /** Name of this machine. */
  readonly node: string
  readonly version: string
  readonly services: readonly string[]
  readonly sides: readonly SharedSide[]
  readonly clock: Clock
  readonly log: Log
  /** Hears whether this machine is to be drained. */
  readonly drain?: Pick<Drain, 'hear'>
  /** What it does for the index in ClickHouse; absent where it does nothing for it. */
  readonly index?: () => IndexWork
  /** Called after each round. `isWell`: the lists were compared. */
  readonly onRound?: (isWell: boolean, unshared: number) => void
  /** How often the database is looked at without news. 3,000 unless given. */
  readonly everyMs?: number
  /** How long a machine that never had the lists waits for them at its start. 30,000 unless given. */
  readonly startPatienceMs?: number
  /** A database that does not answer for so long is gone. 3,000 unless given. */
  readonly answerMs?: number
}

const down = 'the database of the cluster does not answer: changes wait on this machine'
const connectionsMax = 2
const beatMs = 5000
const pruneMs = 3_600_000
/** Looks for news come at most so often. */
const newsMs = 100
/** A machine that follows already does not wait longer for the database when it starts. */
const startMs = 5000
/** A machine that never had the lists must get them before it answers anybody. */
const firstMs = 30_000

/**
 * This machine in its cluster: shares its lists, and states with heartbeats that it is there. Without the database, and while it
 * hangs or can only be read, the lists stay as they are, and what is changed here waits on this disk.
 */
export class ClusterMember {
  readonly #sessions: PostgresSessions
  readonly #machines: Machines
  readonly #sharing: ListSharing
  readonly #process = randomUUID()
  readonly #startedMs: number
  readonly #closing = new AbortController()
  readonly #timers: Timer[] = []
  #news: ClusterNews | undefined
  #urls: Readonly<Record<string, string>> = {}
  #isMigrated = false
  #running: Promise<void> | undefined
  #isWanted = false
  #isDue = false
  #version = 0
  #database: number | string | undefined
  readonly #outage: Outage
  #drain: DrainState | undefined

  constructor(private readonly options: MemberOptions) {
    const { databaseUrl, answerMs = 3000, node, sides, log, clock } = options
    // A machine that stands still in a transaction would keep all others from theirs.
    this.#sessions = new PostgresSessions(databaseUrl, connectionsMax, answerMs, 2 * answerMs)
    this.#machines = new Machines(this.#sessions)
    this.#sharing = new ListSharing(new PostgresEntries(this.#sessions, node), sides, log)
    this.#startedMs = Math.round(clock.now())
    this.#outage = new Outage(log, down, 'the database of the cluster answers again')
  }

  /**
   * Resolves when the lists of the cluster are here, or when this machine has those of an earlier time and the database does not
   * answer. Rejects where this machine never had them, or must not share them.
   */
  async start(): Promise<void> {
    const { clock, everyMs = 3000, startPatienceMs = firstMs, log } = this.options
    const { hasFollowed } = this.#sharing
    const begun = clock.monotonic()
    for (;;) {
      const left = (hasFollowed ? startMs : startPatienceMs) - (clock.monotonic() - begun)
      const failure = await withinTime(clock, left, this.#first(), new Error('no answer in time'))
      if (failure === undefined) break
      if (failure instanceof ForeignCluster || failure instanceof UnknownSchema) throw failure
      if (left > newsMs * 10) await pause(newsMs * 5, this.#closing.signal)
      else if (hasFollowed) {
        log.warn(
          { reason: failure.message },
          'the database of the cluster does not answer: started with the lists of before',
        )
        break
      } else
        throw new Error(
          'the database of the cluster (CLUSTER_DATABASE_URL) does not answer, and this machine never had the block list: ' +
            failure.message,
        )
    }
    this.#timers.push(
      clock.every(everyMs, () => this.look()),
      clock.every(beatMs, () => void this.#beat(false)),
      clock.every(pruneMs, () => void this.#tryTo(() => this.#machines.prune())),
    )
    void this.#beat(false)
  }

  /** Where the services of this machine answer. */
  setUrls(urls: Readonly<Record<string, string>>): void {
    this.#urls = urls
    void this.#beat(false)
  }

  /** What the database says of the cluster; undefined: it has no tables of one. A refusal: it does not answer. */
  async facts(): Promise<ClusterFacts | undefined | Refusal> {
    try {
      return await clusterFacts(this.#sessions, this.options.clock)
    } catch (error) {
      if (!(error instanceof Error) || error instanceof TypeError || error instanceof RangeError) throw error
      return refuse('busy', 'upstream', `the database of the cluster does not answer: ${error.message}`)
    }
  }

  /** Compares the lists soon: something has changed here or elsewhere. */
  look(): void {
    if (this.#isDue || this.#closing.signal.aborted) return
    this.#isDue = true
    this.options.clock.after(newsMs, () => {
      this.#isDue = false
      void this.#round()
    })
  }

  async close(): Promise<void> {
    this.#closing.abort()
    for (const timer of this.#timers) timer.cancel()
    this.#news?.close()
    await this.#running
    await withinTime(this.options.clock, 1000, this.#beat(true), undefined)
    await withinTime(this.options.clock, 1000, this.#sessions.close(), undefined)
  }

  /** The failure of the first round, where it failed. */
  async #first(): Promise<Error | undefined> {
    try {
      await this.#work()
      return undefined
    } catch (error) {
      if (!(error instanceof Error)) throw error
      // A database that can only be read has given its lists before.
      return isReadOnly(error) && this.#sharing.hasFollowed ? undefined : error
    }
  }

  /** One at a time; what is wanted meanwhile is done once more. Never rejects. */
  #round(): Promise<void> {
    this.#isWanted = true
    this.#running ??= this.#rounds().finally(() => {
      this.#running = undefined
    })
    return this.#running
  }

  async #rounds(): Promise<void> {
    while (this.#isWanted && !this.#closing.signal.aborted) {
      this.#isWanted = false
      const isWell = await this.#tryTo(() => this.#work())
      this.options.onRound?.(isWell, this.#sharing.unshared)
    }
  }

  async #work(): Promise<void> {
    if (!this.#isMigrated) {
      await migrateCluster(this.#sessions)
      this.#isMigrated = true
    }
    await this.#openNews()
    const { pushed, version } = await this.#sharing.round()
    this.#version = version
    if (pushed > 0) this.#news?.announce()
  }

  /** The channel has the name of the cluster, so that two of them may use one Redis. */
  async #openNews(): Promise<void> {
    const { redisUrl, clock, log, node } = this.options
    if (this.#news !== undefined || redisUrl === undefined || this.#closing.signal.aborted) return
    const { cluster } = await new PostgresEntries(this.#sessions, node).head(0)
    this.#news ??= new ClusterNews(redisUrl, `sluice{cluster}:${cluster}`, () => this.look(), clock, log)
  }

  async #beat(isStopped: boolean): Promise<void> {
    const { node, clock } = this.options
    const begun = clock.monotonic()
    const engines = {
      ...(this.#database !== undefined && { postgres: this.#database }),
      ...(this.#news && { redis: await this.#news.health() }),
    }
    const machine = { node, process: this.#process, startedMs: this.#startedMs, isStopped }
    const isWell = await this.#tryTo(async () => {
      const orderedMs = await this.#machines.beat(machine, clock.now(), this.#state(engines))
      this.#drain = this.options.drain?.hear(orderedMs, this.#sharing.unshared)
    })
    if (isWell) this.#database = Math.round(clock.monotonic() - begun)
  }

  #state(engines: MachineState['engines']): MachineState {
    const { version, services } = this.options
    const { unshared } = this.#sharing
    return {
      version,
      services,
      urls: this.#urls,
      listVersion: this.#version,
      unshared,
      engines,
      steps: clusterSteps,
      ...(this.options.index && { index: this.options.index() }),
      ...(this.#drain && { drain: this.#drain }),
    }
  }

  /** False: it failed. The first failure and the end of it are logged. */
  async #tryTo(act: () => Promise<unknown>): Promise<boolean> {
    try {
      await act()
      this.#outage.well()
      return true
    } catch (error) {
      if (!(error instanceof Error) || error instanceof TypeError) throw error
      this.#database = error.message
      if (!this.#closing.signal.aborted) this.#outage.failed({ reason: error.message })
      return false
    }
  }
}

/** SQLSTATE of a change in a database that can only be read. */
function isReadOnly(error: Error): boolean {
  return 'code' in error && error.code === '25006'
}
