import type { BlockNews } from '../actor/block-news.js'
import { type Clock, pause, toGrid } from '../actor/clock.js'
import type { Log } from '../actor/log.js'
import type { Tip } from '../actor/shared.js'
import type { Chain } from '../chain/chain.js'
import { isRefusal, type Refusal } from '../format/refusal.js'
import { writePatiently } from '../store/patient-write.js'
import { pauseMs } from './agenda.js'
import { type Intake, sayRefused } from './chain-intake.js'
import type { IndexQueue } from './index-queue.js'
import {
  type BlockName,
  type FollowRules,
  type FollowState,
  type FollowStep,
  nextHeight,
  nextStep,
  type Sight,
} from './next-step.js'
import type { ImportPace } from './pace.js'
import type { BroughtBlock, Supply } from './supply.js'

export interface FollowerParts {
  readonly chain: Pick<Chain, 'info' | 'blockByHeight'>
  readonly supply: Supply
  readonly queue: IndexQueue
  readonly intake: Intake
  readonly tip: Tip
  readonly pace: ImportPace
  /** New bundles or gaps are on their agendas, and their blocks in the index. */
  readonly onImported: () => void
  /** Calls what it is given whenever the chain of the node has changed; absent: nobody says so, and the node is polled. */
  readonly blockNews?: (heard: () => void) => BlockNews
  readonly clock: Clock
  readonly log: Log
}

/** One message to the keeper holds so many blocks or transactions, then it is sent. */
const batchMax = { blocks: 50, transactions: 1000 }
const retryMs = { first: 500, max: 15_000 }
/** Pauses from here on end at a second of the thread's timers. */
const gridFromMs = 750

type Question = 'tip' | 'block'

/** Puts the chain into the index, block by block, through every fork; `decide` chooses the next step. */
export class Follower {
  #state: FollowState
  #theirs: string | undefined
  /** Consecutive blocks above the index's top that were not sent to the keeper yet. */
  #batch: BroughtBlock[] = []
  readonly #failures: Record<Question, number> = { tip: 0, block: 0 }
  readonly #abort = new AbortController()
  readonly #news: BlockNews | undefined
  #heardCount = 0
  /** Aborted to end a pause. */
  #pausing = new AbortController()
  #running: Promise<void> = Promise.resolve()

  constructor(
    private readonly parts: FollowerParts,
    private readonly rules: FollowRules,
  ) {
    this.#state = { top: undefined, tip: undefined, search: undefined, haltedMs: undefined, notBeforeMs: 0 }
    this.#news = parts.blockNews?.(() => this.#heard())
  }

  /** Goes on from where the index ends. Rejects where the catalog is lost: the thread must end. */
  run(): Promise<void> {
    this.#running = this.#run()
    return this.#running
  }

  /** Resolves when nothing is under way any more. */
  async stop(): Promise<void> {
    this.#abort.abort()
    this.#pausing.abort()
    this.#news?.close()
    this.parts.supply.clear()
    await this.#running.catch(() => 'handled by the caller of run')
  }

  async #run(): Promise<void> {
    this.#move({ top: this.#topOfIndex() })
    while (!this.#abort.signal.aborted) {
      const step = nextStep(this.#state, this.#sight(), this.rules, this.parts.clock.monotonic())
      // Blocks are collected as long as the next one has arrived already.
      const more = step.kind === 'import' || (step.kind === 'fetch' && this.#isReady(step.height))
      if (!more || this.#isFull()) await this.#flush()
      await this.#take(step)
    }
  }

  async #take(step: FollowStep): Promise<void> {
    switch (step.kind) {
      case 'look':
        return this.#look()
      case 'fetch':
        return this.#bring(step.height, step.last)
      case 'import':
        return this.#import()
      case 'compare':
        return this.#compare(step)
      case 'behind':
        return this.#behind()
      case 'unwind':
        return this.#unwind(step.fromHeight)
      case 'halt':
        return this.#halt(step.depth)
      case 'wait': {
        this.#publishState()
        // A timer may fire a part of a millisecond early, and would be set once more for that.
        const ms = Math.max(Math.ceil(step.untilMs - this.parts.clock.monotonic()), 0) + 1
        return this.#pause(ms >= gridFromMs ? toGrid(ms) : ms)
      }
    }
  }

  /** After a failure it lasts as long as it should: news do not end it. */
  async #pause(ms: number): Promise<void> {
    if (this.#abort.signal.aborted) return
    await pause(ms, this.#pausing.signal)
    if (this.#pausing.signal.aborted) this.#pausing = new AbortController()
  }

  /** The chain has changed: the tip is requested again now, or after what is under way. */
  #heard(): void {
    const { tip } = this.#state
    this.#heardCount += 1
    if (tip !== undefined) this.#move({ tip: { ...tip, statedMs: Number.NEGATIVE_INFINITY } })
    if (this.#state.notBeforeMs <= this.parts.clock.monotonic()) this.#pausing.abort()
  }

  #sight(): Sight {
    const { top, tip, search } = this.#state
    const { index } = this.parts.queue
    if (search !== undefined) {
      return {
        ours: index.block(search.at)?.id,
        below: search.at > 0 && index.block(search.at - 1) !== undefined,
        ...(this.#theirs === undefined ? {} : { theirs: this.#theirs }),
      }
    }
    if (tip === undefined) return {}
    const ready = this.parts.supply.ready(nextHeight(top, tip.height, this.rules))
    return ready === undefined ? {} : { next: { previous: ready.block.previous } }
  }

  async #look(): Promise<void> {
    const heard = this.#heardCount
    const info = await this.parts.chain.info({ signal: this.#abort.signal })
    if (isRefusal(info)) return this.#failed('tip', 'no base-layer node answers', info)
    this.#succeeded('tip')
    this.parts.tip.move(info.height)
    // What the node answered may be older than news that came meanwhile.
    const statedMs = heard === this.#heardCount ? this.parts.clock.monotonic() : Number.NEGATIVE_INFINITY
    this.#move({ tip: { height: info.height, id: info.current, statedMs } })
  }

  async #bring(height: number, last: number): Promise<void> {
    const brought = await this.parts.supply.take(height, last)
    if (isRefusal(brought)) return this.#failed('block', `block ${height} is not to be had`, brought)
    this.#succeeded('block')
  }

  #import(): void {
    const { tip, top } = this.#state
    const height = nextHeight(top, tip?.height ?? 0, this.rules)
    const brought = this.parts.supply.ready(height)
    if (brought === undefined) throw new Error('a block that was at hand is gone')
    this.parts.supply.drop(height)
    this.#batch.push(brought)
    this.#move({ top: { height, id: brought.block.hash } })
  }

  #isReady(height: number): boolean {
    return this.parts.supply.ready(height) !== undefined
  }

  #isFull(): boolean {
    const transactions = this.#batch.reduce((sum, one) => sum + one.transactions.length, 0)
    return this.#batch.length >= batchMax.blocks || transactions >= batchMax.transactions
  }

  async #flush(): Promise<void> {
    const batch = this.#batch
    if (batch.length === 0) return
    this.#batch = []
    const { intake, queue, clock, log, pace } = this.parts
    // The blocks are not in the index yet: what they bring is recorded before, or they are fetched again.
    const remember = (): void => sayRefused(intake.remember(batch, clock.now()), log)
    if (!(await writePatiently(remember, this.#abort.signal, log))) return
    const gaps = batch.flatMap(({ missing }) => missing)
    if (gaps.length > 0) {
      const first = { id: gaps[0]?.id, reason: gaps[0]?.refusal.message }
      log.warn(
        { missing: gaps.length, ...first },
        'transactions of a block are missing: they are requested again later',
      )
    }
    await queue.write(() => intake.blockWords(batch))
    pace.imported(batch, this.#state.top?.height ?? -1, this.#state.tip?.height ?? -1)
    this.parts.onImported()
    this.#publishState()
  }

  async #compare({ at, from, isBehind = false }: Extract<FollowStep, { kind: 'compare' }>): Promise<void> {
    this.#move({ search: { at, from, isBehind } })
    const block = await this.parts.chain.blockByHeight(at, { signal: this.#abort.signal })
    if (isRefusal(block)) return this.#failed('block', `block ${at} is not to be had`, block)
    this.#succeeded('block')
    this.#theirs = block.hash
    const step = nextStep(this.#state, this.#sight(), this.rules, this.parts.clock.monotonic())
    this.#theirs = undefined
    if (step.kind !== 'compare') return this.#take(step)
    this.#move({ search: { at: step.at, from: step.from } })
  }

  #behind(): void {
    const { tip } = this.#state
    this.#move({ search: undefined, tip: tip && { ...tip, isKnown: true } })
  }

  async #unwind(fromHeight: number): Promise<void> {
    const { queue, log, pace, supply } = this.parts
    const top = this.#state.top?.height ?? -1
    if (fromHeight <= top) {
      await queue.write(() => ({ kind: 'unwind', fromHeight }))
      pace.unwound(top - fromHeight + 1)
      log.info(
        { fromHeight, depth: top - fromHeight + 1 },
        'the chain was reorganized: blocks of the old branch are removed from the index',
      )
    }
    if (this.#state.haltedMs !== undefined) log.info('the import continues')
    supply.clear()
    this.#move({ top: this.#topOfIndex(), tip: undefined, search: undefined, haltedMs: undefined })
    this.#publishState()
  }

  #halt(depth: number): void {
    const { log, clock } = this.parts
    if (this.#state.haltedMs === undefined) {
      const way = 'look at the nodes; to take their branch, start once with a larger CHAIN_FORK_DEPTH_MAX'
      log.error(
        { depth, height: this.#state.top?.height, way },
        'a fork is deeper than the limit: the import is halted',
      )
    }
    this.#move({ search: undefined, haltedMs: clock.monotonic() })
    this.#publishState()
  }

  #failed(question: Question, what: string, refusal: Refusal): void {
    if (this.#abort.signal.aborted) return
    const failures = this.#failures[question]
    // Logged once, not at every attempt.
    if (failures === 0) this.parts.log.warn({ reason: refusal.message }, what)
    this.#move({ notBeforeMs: this.parts.clock.monotonic() + pauseMs(failures, retryMs.first, retryMs.max) })
    this.#failures[question] += 1
    // The node may be on another branch, or have fewer blocks than the one before.
    if (refusal.refused === 'unknown') this.#move({ tip: undefined, search: undefined })
  }

  #succeeded(question: Question): void {
    const failures = this.#failures[question]
    this.#failures[question] = 0
    if (failures > 0) this.parts.log.info({ question, failures }, 'base-layer nodes answer again')
  }

  #topOfIndex(): BlockName | undefined {
    const { index } = this.parts.queue
    index.refresh()
    const height = index.topHeight()
    const block = height === undefined ? undefined : index.block(height)
    return block === undefined ? undefined : { height: block.height, id: block.id }
  }

  #move(change: Partial<FollowState>): void {
    this.#state = { ...this.#state, ...change }
  }

  #publishState(): void {
    const { top, tip, haltedMs } = this.#state
    const lag = (tip?.height ?? 0) - (top?.height ?? -1)
    const finished = (top?.height ?? -1) >= this.rules.stopHeight
    const state =
      haltedMs !== undefined ? 'halted' : finished ? 'finished' : lag > 1 ? 'importing' : 'following'
    this.parts.pace.stands(tip === undefined && state !== 'halted' ? undefined : state, top?.height ?? -1)
  }
}
