import { setMaxListeners } from 'node:events'
import { BoundedMap } from '../actor/bounded-map.js'
import type { Clock, Timer } from '../actor/clock.js'
import { isRefusal, type Refusal, refuse } from '../format/refusal.js'
import type { NameMeters } from './meters.js'
import type { Resolution, Resolver, ResolverVerdict, Trail } from './protocol.js'
import { isResolved, isUntrailed, type Name, type NameRecord, type Names, type Outcome } from './protocol.js'

export interface BookOptions {
  /** Instead of what records say about how long they may be believed. */
  readonly overrideTtlSeconds?: number
  /** A name that was resolved may be answered for so long while resolvers are slow or fail. */
  readonly staleMs: number
  /** Names remembered, and as many that do not exist. */
  readonly namesMax: number
  /** So long is believed that a name does not exist, or is blocked elsewhere. */
  readonly absentMs: number
  /** So long nobody is asked again after all resolvers failed. */
  readonly failedMs: number
  /** Names that are asked for in so long before their end are resolved anew meanwhile. */
  readonly refreshMs: number
  /** Where an old answer is at hand, a new one is waited for so long. */
  readonly fallbackMs: number
  /** Names being resolved at once. */
  readonly flightsMax: number
  /** Resolvers on other machines asked at once for one name; the first in order that knows it decides all the same. */
  readonly askedAtOnce: number
  /** Nobody waits for these: they are asked for at the start, and again before their time is over. */
  readonly preferred: readonly Name[]
  /** The same for every name of these base names, from the first time that somebody asked for it. */
  readonly preferredBases: ReadonlySet<string>
}

/** The names of this machine: their changes count at once, whatever is remembered. */
export interface Changing {
  readonly version: number
  find(name: Name): NameRecord | undefined
}

interface Found {
  resolution: Resolution
  freshUntilMs: number
  refreshAtMs: number
  /** Until then it may be answered while resolvers are slow or fail. */
  readonly staleUntilMs: number
  /** Place of its resolver in the order. */
  rank: number
  version: number
  /** Somebody said that the name is gone. */
  doubted: boolean
}

interface Lacking {
  readonly outcome: 'absent' | 'blocked' | Refusal
  readonly untilMs: number
  version: number
}

interface Told {
  readonly verdict: ResolverVerdict
  readonly rank: number
}

const ownTrail: Trail = { hops: 0, via: [], forward: true }
/** Names that are believed for no time at all are asked for so often, where they are kept fresh. */
const attendMinMs = 1000

const busy = refuse('busy', 'self', 'too many names are being resolved')
const circle = refuse('upstream', 'client', 'this name may only be asked for on other machines')

/** Remembers what names mean, for one thread, and asks resolvers in order for what it does not know. */
export class NameBook implements Names {
  readonly #found: BoundedMap<string, Found>
  readonly #lacking: BoundedMap<string, Lacking>
  readonly #flights = new Map<string, Promise<Outcome>>()
  /** Those of questions with a trail, by name and trail. */
  readonly #trailedFlights = new Map<string, Promise<Outcome>>()
  readonly #localRank: number
  readonly #end = new AbortController()
  /** The next question for names that are always kept fresh. */
  readonly #attended = new Map<string, Timer>()

  /** `local`: the resolver of this machine's names, where it is among `resolvers`. */
  constructor(
    private readonly resolvers: readonly Resolver[],
    private readonly local: Changing | undefined,
    private readonly options: BookOptions,
    private readonly clock: Clock,
    private readonly meters: NameMeters,
  ) {
    this.#found = new BoundedMap(options.namesMax)
    this.#lacking = new BoundedMap(options.namesMax)
    // Every question under way listens: that many listeners are no leak.
    setMaxListeners(0, this.#end.signal)
    this.#localRank = resolvers.findIndex((one) => one.label === 'local')
    for (const name of options.preferred) this.#attend(name, 0)
  }

  known(name: Name): Outcome | undefined {
    const now = this.clock.monotonic()
    const found = this.#found.get(name.full)
    if (found !== undefined && this.#stands(name, found, found.rank)) {
      if (now >= found.freshUntilMs) return undefined
      if (now >= found.refreshAtMs) this.#refresh(name, found)
      this.meters.hit()
      return found.resolution
    }
    this.#found.delete(name.full)
    const lacking = this.#lacking.get(name.full)
    if (lacking === undefined) return undefined
    if (now < lacking.untilMs && this.#stands(name, lacking, Number.POSITIVE_INFINITY)) {
      this.meters.hit()
      return lacking.outcome
    }
    this.#lacking.delete(name.full)
    return undefined
  }

  async resolve(name: Name, trail: Trail): Promise<Outcome> {
    this.meters.miss()
    const stale = this.#stale(name)
    // A question that came round in a circle must not wait for its own answer.
    if (!trail.forward) return stale ?? this.#near(name, trail)
    const flight = isUntrailed(trail) ? this.#flight(name) : this.#trailed(name, trail, stale)
    if (stale === undefined) return flight
    let stop = (): void => undefined
    const patience = new Promise<Resolution>((resolve) => {
      const timer = this.clock.after(this.options.fallbackMs, () => resolve(stale))
      stop = () => timer.cancel()
    })
    const outcome = await Promise.race([flight, patience])
    stop()
    return outcome
  }

  /** Gives up what is under way. */
  close(): void {
    this.#end.abort()
    for (const timer of this.#attended.values()) timer.cancel()
  }

  /** False: the names of this machine changed, and what is remembered of this one may be wrong. */
  #stands(name: Name, known: Found | Lacking, rank: number): boolean {
    const { local } = this
    if (local === undefined || known.version === local.version) return true
    known.version = local.version
    return rank < this.#localRank || (rank > this.#localRank && local.find(name) === undefined)
  }

  #stale(name: Name): Resolution | undefined {
    const found = this.#found.get(name.full)
    if (found === undefined) return undefined
    return this.clock.monotonic() < found.staleUntilMs ? found.resolution : undefined
  }

  #refresh(name: Name, found: Found): void {
    // Not again for each request until the answer is here.
    found.refreshAtMs = Number.POSITIVE_INFINITY
    void this.#flight(name)
  }

  /** Asks for a name in so long, and ever again before its time is over. */
  #attend(name: Name, waitMs: number): void {
    const ask = async (): Promise<void> => {
      await this.#flight(name)
      if (this.#end.signal.aborted) return
      const found = this.#found.get(name.full)
      const againMs = found === undefined ? this.options.absentMs : found.refreshAtMs - this.clock.monotonic()
      this.#attend(name, Math.max(againMs, attendMinMs))
    }
    this.#attended.set(
      name.full,
      this.clock.after(waitMs, () => void ask()),
    )
  }

  /**
   * A question with a trail: whoever is asked may leave others out because of it, so that the outcome is for those with the same
   * trail only, and nothing of it is remembered. Where the name is there, it is asked for once more without.
   */
  #trailed(name: Name, trail: Trail, stale: Resolution | undefined): Promise<Outcome> {
    const key = JSON.stringify([name.full, trail.hops, trail.via])
    const running = this.#trailedFlights.get(key)
    if (running !== undefined) return running
    const { flightsMax } = this.options
    if (this.#trailedFlights.size >= flightsMax / 2) return Promise.resolve(stale ?? busy)
    const flight = this.#ask(name, trail, this.resolvers)
      .then(({ verdict }): Outcome => {
        if (!isResolved(verdict)) return stale ?? verdict
        // Nobody waits for it: after it the name is known to all.
        if (this.#flights.size < flightsMax) void this.#flight(name)
        return { resolvedAtMs: this.clock.now(), ...verdict, name }
      })
      .finally(() => this.#trailedFlights.delete(key))
    this.#trailedFlights.set(key, flight)
    return flight
  }

  async #near(name: Name, trail: Trail): Promise<Outcome> {
    const near = this.resolvers.filter(({ remote }) => !remote)
    const { verdict } = await this.#ask(name, trail, near)
    if (isResolved(verdict)) return { resolvedAtMs: this.clock.now(), ...verdict, name }
    return verdict === 'absent' && near.length < this.resolvers.length ? circle : verdict
  }

  #flight(name: Name): Promise<Outcome> {
    const running = this.#flights.get(name.full)
    if (running !== undefined) return running
    if (this.#flights.size >= this.options.flightsMax) return Promise.resolve(this.#stale(name) ?? busy)
    const version = this.local?.version ?? 0
    const startedMs = this.clock.monotonic()
    const flight = this.#ask(name, ownTrail, this.resolvers)
      .then((told) => this.#settle(name, told, version))
      .finally(() => {
        this.#flights.delete(name.full)
        this.meters.took(this.clock.monotonic() - startedMs)
      })
    this.#flights.set(name.full, flight)
    return flight
  }

  /** The first resolver that knows the name decides. It does not exist only where all of them say so. */
  async #ask(name: Name, { hops, via }: Trail, resolvers: readonly Resolver[]): Promise<Told> {
    let failure: Refusal | undefined
    const { signal } = this.#end
    const asked: Promise<ResolverVerdict>[] = []
    const ask = async (resolver: Resolver): Promise<ResolverVerdict> => {
      const verdict = await resolver.resolve(name, { hops, via, signal })
      this.meters.asked(resolver.label, verdict)
      return verdict
    }
    for (const [rank, resolver] of resolvers.entries()) {
      const end = rank + (resolver.remote ? this.options.askedAtOnce : 1)
      asked.push(...resolvers.slice(asked.length, end).map(ask))
      const verdict = await (asked[rank] ?? ask(resolver))
      if (isRefusal(verdict)) failure ??= verdict
      else if (verdict !== 'absent') return { verdict, rank }
    }
    return { verdict: failure ?? 'absent', rank: Number.POSITIVE_INFINITY }
  }

  #settle(name: Name, { verdict, rank }: Told, version: number): Outcome {
    const now = this.clock.monotonic()
    const { absentMs, failedMs, overrideTtlSeconds, refreshMs } = this.options
    if (isResolved(verdict)) {
      const resolution: Resolution = { resolvedAtMs: this.clock.now(), ...verdict, name }
      const ttlMs = (overrideTtlSeconds ?? verdict.ttlSeconds) * 1000
      const isOld = verdict.resolvedAtMs !== undefined
      // A time that has not come yet was written down before the clock was set back.
      const ageMs = Math.max(0, this.clock.now() - resolution.resolvedAtMs)
      const leftMs = ttlMs - ageMs
      // What is said from memory although its time is over was all there was to be had.
      const freshUntilMs = now + (isOld ? Math.max(leftMs, failedMs) : leftMs)
      // Short-lived names are refreshed in the last quarter of their life.
      const refreshAtMs = freshUntilMs - Math.min(refreshMs, ttlMs / 4)
      const staleUntilMs = now + this.options.staleMs - ageMs
      this.#keep({ resolution, freshUntilMs, refreshAtMs, staleUntilMs, rank, version, doubted: false })
      return resolution
    }
    const found = this.#found.get(name.full)
    const stale = this.#stale(name)
    if (
      found !== undefined &&
      stale !== undefined &&
      (isRefusal(verdict) || (verdict === 'absent' && !found.doubted))
    ) {
      // Resolvers that flap say "no such name" too: what was known counts until it is said twice.
      found.doubted = verdict === 'absent'
      found.freshUntilMs = now + (isRefusal(verdict) ? failedMs : absentMs)
      found.refreshAtMs = found.freshUntilMs
      return stale
    }
    this.#found.delete(name.full)
    this.meters.holds(this.#found.size)
    const untilMs = now + (isRefusal(verdict) ? failedMs : absentMs)
    this.#lacking.set(name.full, { outcome: verdict, untilMs, version })
    return verdict
  }

  #keep(found: Found): void {
    const { full } = found.resolution.name
    this.#lacking.delete(full)
    // Written anew it is the youngest; names that nobody asks for are not refreshed and grow old.
    this.#found.set(full, found)
    this.meters.holds(this.#found.size)
    const { name } = found.resolution
    const isNew = !this.#attended.has(full) && this.#attended.size < this.options.namesMax
    if (isNew && this.options.preferredBases.has(name.basename)) {
      this.#attend(name, Math.max(found.refreshAtMs - this.clock.monotonic(), attendMinMs))
    }
  }
}
