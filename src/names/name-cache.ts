import { setMaxListeners } from 'node:events'
import { BoundedMap } from '../actor/bounded-map.js'
import type { Clock, Timer } from '../actor/clock.js'
import { FreeShares } from '../actor/free-shares.js'
import type { Cell } from '../actor/shared.js'
import { isRefusal, type Refusal, refuse } from '../format/refusal.js'
import type { Trail } from '../source/source-messages.js'
import { type Bounded, NameMarks } from './name-marks.js'
import type { NameMeters } from './name-meters.js'
import type { Resolution, Resolver, ResolverVerdict } from './names-port.js'
import {
  isResolved,
  isUntrailed,
  type Name,
  type NameRecord,
  type Names,
  type Outcome,
} from './names-port.js'

export interface NameCacheOptions {
  /** Replaces the TTL of records. */
  readonly overrideTtlSeconds?: number
  /** A name that was resolved may be answered for so long while resolvers are slow or fail. */
  readonly staleMs: number
  /** Names remembered, and as many that do not exist. */
  readonly namesMax: number
  /** How long it is remembered that a name does not exist, or is blocked elsewhere. */
  readonly absentMs: number
  /** How long no resolver is called after all of them failed. */
  readonly failedMs: number
  /** A name that is requested within this time before its TTL ends is resolved again in the background. */
  readonly refreshMs: number
  /** Where an old answer is known, how long a new one is waited for. */
  readonly fallbackMs: number
  /** Names being resolved at once. */
  readonly flightsMax: number
  /** Resolvers on other machines called at once for one name; the first in order that knows it decides all the same. */
  readonly resolversAtOnce: number
  /** These are resolved at the start, and again before their TTL ends, so that no request has to wait for them. */
  readonly preferred: readonly Name[]
  /** The same for every name of these base names, from the first request for it. */
  readonly preferredBases: ReadonlySet<string>
}

/** The names of this machine: changes take effect at once, whatever is remembered. */
export interface Changing {
  readonly version: number
  /** Where the version stands. Absent: not in shared memory. */
  readonly versionCell?: Cell
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
  /** One answer denied the name. */
  doubted: boolean
}

interface Lacking {
  readonly outcome: 'absent' | 'blocked' | Refusal
  readonly untilMs: number
  version: number
}

interface RankedVerdict {
  readonly verdict: ResolverVerdict
  readonly rank: number
}

const ownTrail: Trail = { hops: 0, via: [], forward: true }
/** Shortest interval at which a name is kept fresh, also where its TTL is 0. */
const attendMinMs = 1000

const busy = refuse('busy', 'self', 'too many names are being resolved')
const enough = refuse('busy', 'client', 'too many names are being resolved for one client')
const circle = refuse('upstream', 'client', 'this name may only be requested on other machines')

/** Caches the ids of names, for one thread, and calls resolvers in order for others. */
export class NameCache implements Names {
  readonly #found: BoundedMap<string, Found>
  readonly #lacking: BoundedMap<string, Lacking>
  readonly #flights = new Map<string, Promise<Outcome>>()
  /** Those of requests with a trail, by name and trail. */
  readonly #trailedFlights = new Map<string, Promise<Outcome>>()
  /** Shares of clients: for requests without a trail, and for those with one. */
  readonly #shares: FreeShares
  readonly #trailedShares: FreeShares
  readonly #localRank: number
  readonly #end = new AbortController()
  /** The next question for names that are always kept fresh. */
  readonly #attended = new Map<string, Timer>()
  readonly #marks = new NameMarks()
  readonly #ticking: Timer

  /** `local`: the resolver of this machine's names, where it is among `resolvers`. */
  constructor(
    private readonly resolvers: readonly Resolver[],
    private readonly local: Changing | undefined,
    private readonly options: NameCacheOptions,
    private readonly clock: Clock,
    private readonly meters: NameMeters,
  ) {
    this.#found = new BoundedMap(options.namesMax)
    this.#lacking = new BoundedMap(options.namesMax)
    this.#shares = new FreeShares(options.flightsMax)
    this.#trailedShares = new FreeShares(options.flightsMax / 2)
    // Every resolution under way adds a listener; that many are no leak.
    setMaxListeners(0, this.#end.signal)
    this.#localRank = resolvers.findIndex((one) => one.label === 'local')
    for (const name of options.preferred) this.#attend(name, 0)
    this.#marks.tick(clock.monotonic())
    this.#ticking = clock.every(1000, () => this.#marks.tick(clock.monotonic()))
  }

  watch(name: Name): readonly Bounded[] | undefined {
    const found = this.#found.get(name.full)
    if (found === undefined) return undefined
    // A later request has the name resolved anew.
    const watched = this.#marks.watch(name.full, Math.min(found.refreshAtMs, found.freshUntilMs))
    if (watched === undefined || this.local === undefined) return watched
    const { version, versionCell } = this.local
    if (versionCell === undefined || found.version !== version) return undefined
    return [...watched, [versionCell, version | 0, version | 0]]
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

  async resolve(name: Name, trail: Trail, client: string): Promise<Outcome> {
    this.meters.miss()
    const stale = this.#stale(name)
    // A request that came back to this gateway in a loop must not wait for its own answer.
    if (!trail.forward) return stale ?? this.#near(name, trail)
    const flight = isUntrailed(trail) ? this.#flight(name, client) : this.#trailed(name, trail, stale, client)
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

  /** Aborts all resolutions. */
  close(): void {
    this.#end.abort()
    for (const timer of this.#attended.values()) timer.cancel()
    this.#ticking.cancel()
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
    // So that it is not refreshed again before the answer is here.
    found.refreshAtMs = Number.POSITIVE_INFINITY
    void this.#flight(name)
  }

  /** Resolves a name after `waitMs`, and then again and again before its TTL ends. */
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
   * A request with a trail: other gateways may skip resolvers because of it, so the outcome is valid only for
   * requests with the same trail, and is not remembered. Where the name exists, it is resolved once more without the
   * trail.
   */
  #trailed(name: Name, trail: Trail, stale: Resolution | undefined, client: string): Promise<Outcome> {
    const key = JSON.stringify([name.full, trail.hops, trail.via])
    const running = this.#trailedFlights.get(key)
    if (running !== undefined) return running
    const { flightsMax } = this.options
    if (this.#trailedFlights.size >= flightsMax / 2) return Promise.resolve(stale ?? busy)
    const leave = this.#trailedShares.take(client)
    if (typeof leave === 'string') return Promise.resolve(stale ?? enough)
    const flight = this.#ask(name, trail, this.resolvers)
      .then(({ verdict }): Outcome => {
        if (!isResolved(verdict)) return stale ?? verdict
        // Not awaited: it makes the name known for all requests.
        if (this.#flights.size < flightsMax) void this.#flight(name)
        return { resolvedAtMs: this.clock.now(), ...verdict, name }
      })
      .finally(() => {
        this.#trailedFlights.delete(key)
        leave()
      })
    this.#trailedFlights.set(key, flight)
    return flight
  }

  async #near(name: Name, trail: Trail): Promise<Outcome> {
    const near = this.resolvers.filter(({ remote }) => !remote)
    const { verdict } = await this.#ask(name, trail, near)
    if (isResolved(verdict)) return { resolvedAtMs: this.clock.now(), ...verdict, name }
    return verdict === 'absent' && near.length < this.resolvers.length ? circle : verdict
  }

  /** `client`: the client that waits for it. Absent: nobody waits. */
  #flight(name: Name, client?: string): Promise<Outcome> {
    const running = this.#flights.get(name.full)
    if (running !== undefined) return running
    if (this.#flights.size >= this.options.flightsMax) return Promise.resolve(this.#stale(name) ?? busy)
    const leave = client === undefined ? undefined : this.#shares.take(client)
    if (typeof leave === 'string') return Promise.resolve(this.#stale(name) ?? enough)
    const version = this.local?.version ?? 0
    const startedMs = this.clock.monotonic()
    const flight = this.#ask(name, ownTrail, this.resolvers)
      .then((ranked) => this.#settle(name, ranked, version))
      .finally(() => {
        this.#flights.delete(name.full)
        leave?.()
        this.meters.took(this.clock.monotonic() - startedMs)
      })
    this.#flights.set(name.full, flight)
    return flight
  }

  /** The first resolver that knows the name decides. The name is absent only where all of them answer so. */
  async #ask(name: Name, { hops, via }: Trail, resolvers: readonly Resolver[]): Promise<RankedVerdict> {
    let failure: Refusal | undefined
    const { signal } = this.#end
    const verdicts: Promise<ResolverVerdict>[] = []
    const ask = async (resolver: Resolver): Promise<ResolverVerdict> => {
      const verdict = await resolver.resolve(name, { hops, via, signal })
      this.meters.answered(resolver.label, verdict)
      return verdict
    }
    for (const [rank, resolver] of resolvers.entries()) {
      const end = rank + (resolver.remote ? this.options.resolversAtOnce : 1)
      for (const next of resolvers.slice(verdicts.length, end)) {
        const verdict = ask(next)
        // A bug of a resolver is thrown when its turn comes. Until then it must not count as unhandled.
        verdict.catch(() => undefined)
        verdicts.push(verdict)
      }
      const verdict = await (verdicts[rank] ?? ask(resolver))
      if (isRefusal(verdict)) failure ??= verdict
      else if (verdict !== 'absent') return { verdict, rank }
    }
    return { verdict: failure ?? 'absent', rank: Number.POSITIVE_INFINITY }
  }

  #settle(name: Name, { verdict, rank }: RankedVerdict, version: number): Outcome {
    this.#marks.learned(name.full)
    const now = this.clock.monotonic()
    const { absentMs, failedMs, overrideTtlSeconds, refreshMs } = this.options
    if (isResolved(verdict)) {
      const resolution: Resolution = { resolvedAtMs: this.clock.now(), ...verdict, name }
      const ttlMs = (overrideTtlSeconds ?? verdict.ttlSeconds) * 1000
      const isOld = verdict.resolvedAtMs !== undefined
      // A time in the future was written before the clock was set back.
      const ageMs = Math.max(0, this.clock.now() - resolution.resolvedAtMs)
      const leftMs = ttlMs - ageMs
      // An expired record from memory means that no fresh one could be had, so it is valid for `failedMs` at least.
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
      // An unstable resolver may wrongly answer that a name does not exist, so a known name is dropped only after the
      // second such answer.
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
    // Deleted first, so that the entry becomes the newest: names that are not requested are not refreshed and are
    // dropped first.
    this.#found.set(full, found)
    this.meters.holds(this.#found.size)
    const { name } = found.resolution
    const isNew = !this.#attended.has(full) && this.#attended.size < this.options.namesMax
    if (isNew && this.options.preferredBases.has(name.basename)) {
      this.#attend(name, Math.max(found.refreshAtMs - this.clock.monotonic(), attendMinMs))
    }
  }
}
