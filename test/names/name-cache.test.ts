import t, { type Test } from 'tap'
import { Meters, meterBytes } from '../../src/actor/meter.js'
import { meterTable } from '../../src/actor/meter-table.js'
import { type Refusal, refuse } from '../../src/format/refusal.js'
import { parseName } from '../../src/names/name.js'
import { type Changing, NameCache, type NameCacheOptions } from '../../src/names/name-cache.js'
import { NameMeters } from '../../src/names/name-meters.js'
import {
  isResolved,
  type Name,
  type NameRecord,
  type Outcome,
  type ResolveContext,
  type Resolver,
  type ResolverVerdict,
} from '../../src/names/names-port.js'
import type { Trail } from '../../src/source/source-messages.js'
import { someId } from '../source/rig.js'
import { HandClock } from './hand-clock.js'

const options: NameCacheOptions = {
  staleMs: 86_400_000,
  namesMax: 100,
  absentMs: 30_000,
  failedMs: 1000,
  refreshMs: 30_000,
  fallbackMs: 250,
  flightsMax: 4,
  resolversAtOnce: 1,
  preferred: [],
  preferredBases: new Set(),
}
const open: Trail = { forward: true, hops: 0, via: [] }
const failure = refuse('upstream', 'upstream', 'broken')

function named(text: string): Name {
  const name = parseName(text)
  if (name === undefined) throw new Error(text)
  return name
}

/** A resolver that answers what the test sets, after a while. */
class Scripted implements Resolver {
  says: ResolverVerdict = 'absent'
  delayMs = 0
  calls: ResolveContext[] = []

  constructor(
    private readonly clock: HandClock,
    readonly label: Resolver['label'] = 'gateway',
    readonly remote = true,
  ) {}

  async resolve(_name: Name, asking: ResolveContext): Promise<ResolverVerdict> {
    this.calls.push(asking)
    const { says } = this
    if (this.delayMs > 0) await new Promise<void>((resolve) => this.clock.after(this.delayMs, resolve))
    return says
  }
}

class Local extends Scripted implements Changing {
  version = 0
  readonly names = new Map<string, NameRecord>()

  constructor(clock: HandClock) {
    super(clock, 'local', false)
  }

  find(name: Name): NameRecord | undefined {
    return this.names.get(name.full)
  }

  override async resolve(name: Name): Promise<ResolverVerdict> {
    return this.find(name) ?? 'absent'
  }

  change(name: string, record?: NameRecord): void {
    if (record === undefined) this.names.delete(name)
    else this.names.set(name, record)
    this.version += 1
  }
}

interface Scene {
  readonly clock: HandClock
  readonly first: Scripted
  readonly last: Scripted
  readonly local: Local
  readonly cache: NameCache
  readonly meters: Meters
  /** What becomes of a name now, whether at once or later; time turns by `ms`. */
  ask(name: string, ms?: number, trail?: Trail): Promise<Outcome | 'waits'>
}

function scene(t: Test, more: Partial<NameCacheOptions> = {}): Scene {
  const clock = new HandClock()
  const [first, last] = [new Scripted(clock), new Scripted(clock, 'on-demand')]
  const local = new Local(clock)
  const meters = new Meters(meterTable, new SharedArrayBuffer(meterBytes(meterTable, 1)), 0)
  const cache = new NameCache(
    [local, first, last],
    local,
    { ...options, ...more },
    clock,
    new NameMeters(meters),
  )
  t.teardown(() => cache.close())
  return {
    clock,
    first,
    last,
    local,
    cache,
    meters,
    async ask(text, ms = 0, trail = open) {
      const name = named(text)
      const known = cache.known(name)
      if (known !== undefined) return known
      let outcome: Outcome | 'waits' = 'waits'
      void cache.resolve(name, trail, `who asks for ${text}`).then((one) => {
        outcome = one
      })
      await clock.turn(ms)
      return outcome
    },
  }
}

const record = (ttlSeconds = 900): NameRecord => ({ id: someId(), ttlSeconds })
const idOf = (outcome: Outcome | 'waits'): string =>
  outcome !== 'waits' && isResolved(outcome) ? outcome.id : JSON.stringify(outcome)

t.test('a name is asked for once and then known for its TTL', async (t) => {
  const { first, ask, clock, cache } = scene(t)
  const found = record()
  first.says = found
  const outcome = await ask('site')
  t.match(outcome, { ...found, name: { full: 'site' }, resolvedAtMs: 1_000_000 })
  t.equal(cache.known(named('site')), outcome, 'the very same object')
  await clock.turn(869_000)
  t.equal(cache.known(named('site')), outcome)
  t.equal(first.calls.length, 1)
})

t.test('the resolvers are asked in order, and the first that knows decides', async (t) => {
  const { first, last, ask } = scene(t)
  last.says = record()
  t.equal(idOf(await ask('site')), last.says.id)
  t.equal(first.calls.length, 1)
  first.says = failure
  t.equal(idOf(await ask('other')), last.says.id, 'a failure does not keep the next from answering')
  first.says = 'blocked'
  t.equal(await ask('third'), 'blocked')
  t.equal(last.calls.length, 2)
})

t.test('a name that is refreshed in the background is answered at once meanwhile', async (t) => {
  const { first, ask, clock, cache } = scene(t)
  first.says = record()
  const old = first.says.id
  await ask('site')
  await clock.turn(871_000)
  first.says = record()
  first.delayMs = 5000
  t.equal(idOf(await ask('site')), old, 'less than 30 seconds are left')
  t.equal(idOf(await ask('site')), old)
  t.equal(first.calls.length, 2, 'once for all who come meanwhile')
  await clock.turn(5000)
  t.equal(idOf(cache.known(named('site')) ?? 'absent'), first.says.id)
})

t.test(
  'an old answer is given where a new one takes longer than 250 ms, and the new one when it is here',
  async (t) => {
    const { first, ask, clock } = scene(t)
    first.says = record()
    const old = first.says.id
    await ask('site')
    await clock.turn(1_000_000)
    first.says = record()
    first.delayMs = 10_000
    t.equal(await ask('site', 249), 'waits')
    t.equal(idOf(await ask('site', 251)), old)
    await clock.turn(10_000)
    t.equal(idOf(await ask('site')), first.says.id)
    t.equal(first.calls.length, 2)
    await clock.turn(1_000_000)
    const fresh = record()
    first.says = fresh
    first.delayMs = 100
    t.equal(idOf(await ask('site', 100)), fresh.id, 'quick answers are waited for')
  },
)

t.test(
  'while all resolvers fail, what a name meant is answered for a day, and then the failure',
  async (t) => {
    const { first, last, ask, clock } = scene(t)
    first.says = record()
    const old = first.says.id
    await ask('site')
    await clock.turn(1_000_000)
    first.says = failure
    last.says = failure
    t.equal(idOf(await ask('site')), old)
    const callsBefore = first.calls.length
    t.equal(idOf(await ask('site')), old)
    t.equal(first.calls.length, callsBefore, 'nobody is asked again within the second')
    await clock.turn(86_400_000)
    t.same(await ask('site'), failure)
  },
)

t.test('failing is not the same as not existing', async (t) => {
  const { first, last, ask } = scene(t)
  first.says = failure
  last.says = 'absent'
  t.same(await ask('site'), failure)
})

t.test('that a name does not exist is remembered for half a minute', async (t) => {
  const { first, ask, clock, meters } = scene(t)
  t.equal(await ask('site'), 'absent')
  t.equal(await ask('site'), 'absent')
  t.equal(first.calls.length, 1)
  await clock.turn(30_000)
  first.says = record()
  t.equal(idOf(await ask('site')), first.says.id)
  t.equal(meters.total('arns_cache_hit_total'), 1)
  t.equal(meters.total('arns_cache_miss_total'), 2)
})

t.test('a known name is dropped only after two answers that it does not exist', async (t) => {
  const { first, ask, clock } = scene(t)
  const before = record()
  first.says = before
  await ask('site')
  await clock.turn(1_000_000)
  first.says = 'absent'
  t.equal(idOf(await ask('site')), before.id, 'resolvers flap')
  await clock.turn(29_000)
  t.equal(idOf(await ask('site')), before.id)
  await clock.turn(2000)
  t.equal(await ask('site'), 'absent')
})

t.test('concurrent requests for one name share one resolution', async (t) => {
  const { first, cache, clock } = scene(t)
  first.says = record()
  first.delayMs = 100
  const all = Promise.all(Array.from({ length: 50 }, () => cache.resolve(named('site'), open, 'any')))
  await clock.turn(100)
  t.equal(new Set(await all).size, 1)
  t.equal(first.calls.length, 1)
})

t.test('more names at once than allowed are refused, not queued', async (t) => {
  const { first, ask } = scene(t)
  first.delayMs = 1000
  for (const name of ['a', 'b', 'c', 'd']) t.equal(await ask(name), 'waits')
  t.match(await ask('e'), { refused: 'busy' } satisfies Partial<Refusal>)
})

t.test('memory is bounded: known names and unknown ones do not push each other out', async (t) => {
  const { first, ask, cache } = scene(t, { namesMax: 3 })
  first.says = record()
  for (const name of ['a', 'b', 'c']) await ask(name)
  first.says = 'absent'
  for (let at = 0; at < 20; at += 1) await ask(`no${at}`)
  for (const name of ['a', 'b', 'c']) t.ok(cache.known(named(name)), name)
  first.says = record()
  await ask('d')
  t.equal(cache.known(named('a')), undefined, 'the oldest went')
})

t.test('a change of local names takes effect at the next request', async (t) => {
  const { first, local, ask } = scene(t)
  first.says = record()
  const [theirs, mine, other] = [first.says, record(), record()]
  t.equal(idOf(await ask('site')), theirs.id)
  local.change('unrelated', record())
  t.equal(idOf(await ask('site')), theirs.id)
  t.equal(first.calls.length, 1, 'other names stay remembered')
  local.change('site', mine)
  t.equal(idOf(await ask('site')), mine.id)
  local.change('site', other)
  t.equal(idOf(await ask('site')), other.id)
  local.change('site')
  t.equal(idOf(await ask('site')), theirs.id)
  first.says = 'absent'
  t.equal(await ask('new'), 'absent')
  local.change('new', mine)
  t.equal(idOf(await ask('new')), mine.id)
  local.change('new')
  t.equal(await ask('new'), 'absent', 'gone at once: nobody flaps here')
})

t.test('names from resolvers before the local registry are not affected by its changes', async (t) => {
  const clock = new HandClock()
  const [first, local] = [new Scripted(clock), new Local(clock)]
  const meters = new Meters(meterTable, new SharedArrayBuffer(meterBytes(meterTable, 1)), 0)
  const cache = new NameCache([first, local], local, options, clock, new NameMeters(meters))
  const theirs = record()
  first.says = theirs
  await cache.resolve(named('site'), open, 'any')
  local.change('site', record())
  t.equal(idOf(cache.known(named('site')) ?? 'absent'), theirs.id)
})

t.test('a request that must not be forwarded is answered from this machine, or refused', async (t) => {
  const { first, local, ask, clock } = scene(t)
  const confined: Trail = { forward: false, hops: 3, via: ['a.example'] }
  first.says = record()
  t.match(await ask('site', 0, confined), { refused: 'upstream', fault: 'client' })
  t.equal(first.calls.length, 0)
  local.change('mine', record())
  t.equal(idOf(await ask('mine', 0, confined)), local.names.get('mine')?.id)
  await ask('site')
  await clock.turn(1_000_000)
  first.delayMs = 60_000
  t.equal(await ask('site'), 'waits')
  t.equal(idOf(await ask('site', 0, confined)), first.says.id, 'what is remembered counts, without waiting')
})

t.test('the trail of a request is passed on', async (t) => {
  const { first, ask } = scene(t)
  await ask('site', 0, { forward: true, hops: 2, via: ['a.example'] })
  t.match(first.calls[0], { hops: 2, via: ['a.example'] })
})

t.test('an answer to a request with a trail is used for that trail only', async (t) => {
  const { first, last, ask, cache, clock } = scene(t)
  const trails: Trail[] = [
    { forward: true, hops: 1, via: [] },
    { forward: true, hops: 2, via: ['a.example'] },
  ]
  const gone = 'gone'
  for (const trail of trails) t.equal(await ask(gone, 0, trail), 'absent')
  t.equal(cache.known(named(gone)), undefined, 'no client can make a name absent')
  first.says = record()
  t.equal(idOf(await ask(gone)), first.says.id)
  await clock.turn(1_000_000)
  first.says = 'absent'
  const [one, other] = trails as [Trail, Trail]
  first.delayMs = 50
  const callsBefore = first.calls.length
  void cache.resolve(named('site'), one, 'any')
  void cache.resolve(named('site'), one, 'any')
  void cache.resolve(named('site'), other, 'another')
  void cache.resolve(named('site'), open, 'any')
  await clock.turn(0)
  t.same(
    first.calls.slice(callsBefore).map(({ hops }) => hops),
    [1, 2, 0],
    'who waits for an answer asked the same',
  )
  await clock.turn(100)
  t.equal(cache.known(named('site')), 'absent', 'the question without a trail counts')
  last.says = record()
  t.equal(idOf(await ask('other', 100, one)), last.says.id)
  await clock.turn(100)
  t.match(
    cache.known(named('other')),
    { id: last.says.id },
    'what is there was asked for again, without the trail',
  )
  t.match(last.calls.at(-1), { hops: 0, via: [] })
})

t.test('requests with trails do not use up the places of those without', async (t) => {
  const { first, cache, clock } = scene(t)
  first.delayMs = 1000
  const outcomes: Outcome[] = []
  for (let at = 0; at < 6; at += 1) {
    const trail = { forward: true, hops: 1, via: [`h${at}.example`] }
    void cache.resolve(named('site'), trail, `client ${at}`).then((outcome) => outcomes.push(outcome))
  }
  await clock.turn(1)
  t.match(
    outcomes,
    Array.from({ length: 4 }, () => ({ refused: 'busy' })),
  )
  void cache.resolve(named('site'), open, 'any')
  await clock.turn(1)
  t.match(first.calls.at(-1), { hops: 0 }, 'asked all the same')
  await clock.turn(5000)
})

t.test('the operator can set the TTL of names', async (t) => {
  const { first, ask, clock, cache } = scene(t, { overrideTtlSeconds: 5 })
  first.says = record(900)
  t.match(await ask('site'), { ttlSeconds: 900 }, 'what clients are told stays')
  await clock.turn(5000)
  t.equal(cache.known(named('site')), undefined)
})

t.test(
  'resolvers on other machines are asked at once on demand, and the first in order decides',
  async (t) => {
    const { first, last, ask } = scene(t, { resolversAtOnce: 2 })
    first.says = record()
    first.delayMs = 100
    last.says = record()
    t.equal(await ask('site', 50), 'waits', 'a quicker answer of a later one does not count')
    t.equal(last.calls.length, 1)
    t.equal(idOf(await ask('site', 100)), first.says.id)
    first.says = 'absent'
    const { id } = last.says
    t.equal(idOf(await ask('other', 100)), id, 'the later one has answered already')
  },
)

t.test('preferred names are resolved before the first request, and kept fresh', async (t) => {
  const [site] = [named('site')]
  const { first, clock, cache, ask } = scene(t, { preferred: [site], preferredBases: new Set(['docs']) })
  first.says = record(900)
  await clock.turn(0)
  t.equal(idOf(cache.known(site) ?? 'waits'), first.says.id)
  const old = first.says.id
  first.says = record(900)
  await clock.turn(869_000)
  t.equal(idOf(cache.known(site) ?? 'waits'), old)
  await clock.turn(2000)
  t.equal(idOf(cache.known(site) ?? 'waits'), first.says.id, 'asked again 30 seconds before its end')
  first.says = failure
  await clock.turn(900_000)
  first.says = record(900)
  await clock.turn(31_000)
  t.equal(idOf(cache.known(site) ?? 'waits'), first.says.id, 'and after a failure')

  t.equal(cache.known(named('new_docs')), undefined, 'not before somebody asked')
  await ask('new_docs')
  const callsBefore = first.calls.length
  await clock.turn(3_600_000)
  t.ok(first.calls.length > callsBefore + 6, 'then as often as it lives')
  t.ok(cache.known(named('new_docs')) !== undefined)
})

t.test('a record from memory keeps its age', async (t) => {
  const { first, clock, ask, cache } = scene(t)
  first.says = { ...record(900), resolvedAtMs: clock.now() - 600_000 }
  t.match(await ask('site'), { ttlSeconds: 900, resolvedAtMs: clock.now() - 600_000 })
  await clock.turn(299_000)
  t.ok(cache.known(named('site')))
  await clock.turn(2000)
  first.says = { ...record(900), resolvedAtMs: clock.now() - 5_000_000 }
  t.equal(idOf(await ask('site')), first.says.id, 'what is over was all there was')
  t.ok(cache.known(named('site')), 'nobody is asked again at once')
  await clock.turn(1001)
  t.equal(cache.known(named('site')), undefined)
})

t.test(
  'a clock that is set back makes no name live longer, and one that is set forward asks once',
  async (t) => {
    const { first, clock, ask, cache } = scene(t, { preferredBases: new Set(['site']), staleMs: 3_600_000 })
    first.says = { ...record(900), resolvedAtMs: clock.now() }
    clock.setMs = -400 * 86_400_000
    t.equal(idOf(await ask('site')), first.says.id)
    await clock.turn(901_000)
    t.ok(first.calls.length > 1, 'it was asked for again in time')
    first.says = failure
    await clock.turn(3_600_000 + 900_000)
    t.equal(idOf(await ask('site', 1000)), JSON.stringify(failure), 'and what is too old is told no more')
    const callsBefore = first.calls.length
    clock.setMs = 400 * 86_400_000
    first.says = record(900)
    t.equal(idOf(await ask('other')), first.says.id)
    t.ok(cache.known(named('other')), 'what was resolved is fresh')
    t.ok(first.calls.length <= callsBefore + 2)
  },
)

t.test('one client that asks for many names leaves places for others', async (t) => {
  const { first, cache, clock } = scene(t)
  first.delayMs = 1000
  const outcomes: Outcome[] = []
  for (let at = 0; at < 9; at += 1)
    void cache.resolve(named(`site${at}`), open, 'one').then((outcome) => outcomes.push(outcome))
  await clock.turn(1)
  t.equal(outcomes.length, 7, 'half of four at once')
  t.match(outcomes[0], { refused: 'busy', fault: 'client' })
  void cache.resolve(named('site0'), open, 'one')
  void cache.resolve(named('other'), open, 'another')
  await clock.turn(1)
  t.equal(first.calls.length, 3, 'a name that is asked for already takes no place')
  await clock.turn(5000)
  void cache.resolve(named('site9'), open, 'one')
  await clock.turn(1)
  t.equal(first.calls.length, 4, 'what has ended gives its place back')
  await clock.turn(5000)
})
