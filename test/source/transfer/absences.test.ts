import t from 'tap'
import { isRefusal, type Refusal, refuse } from '../../../src/format/refusal.js'
import { unknownForNow } from '../../../src/source/refusals.js'
import type { Found, Source } from '../../../src/source/source.js'
import { Absences } from '../../../src/source/transfer/absences.js'
import { eventually } from '../../eventually.js'
import { HandClock } from '../../http/hand-clock.js'
import { rig, someId, trail } from '../rig.js'

const options = { rememberedMax: 3, missesMin: 2, spreadMs: 100, rememberedMs: 1000, rememberedMaxMs: 1500 }

/** A catalog of one shard. */
function catalogOf(): {
  known: Set<string>
  at: number
  generation(): number
  attributes(id: string): never
} {
  const known = new Set<string>()
  return {
    known,
    at: 0,
    generation() {
      return this.at
    },
    attributes: (id) => (known.has(id) ? ({ id, size: 1 } as never) : (undefined as never)),
  }
}

t.test(
  'an id is remembered after enough misses over enough time, longer each time, and not for ever',
  (t) => {
    const clock = new HandClock()
    const absences = new Absences(options, catalogOf(), clock)
    const id = someId()
    const missTwice = (): void => {
      absences.miss(id, 0)
      clock.turn(100)
      absences.miss(id, 0)
    }
    absences.miss(id, 0)
    absences.miss(id, 0)
    t.notOk(absences.has(id), 'misses at once are one impatient client')
    clock.turn(100)
    absences.miss(id, 0)
    t.ok(absences.has(id))
    clock.turn(999)
    t.ok(absences.has(id))
    clock.turn(1)
    t.notOk(absences.has(id), 'then the sources are asked again')
    missTwice()
    clock.turn(1499)
    t.ok(absences.has(id), 'longer, up to the longest')
    clock.turn(1)
    t.notOk(absences.has(id))
    t.end()
  },
)

t.test('a change in the catalog ends an absence at once; changes of other ids do not', (t) => {
  const clock = new HandClock()
  const catalog = catalogOf()
  const absences = new Absences({ ...options, missesMin: 1, spreadMs: 0 }, catalog, clock)
  const id = someId()
  absences.miss(id, 0)
  catalog.at += 1
  t.ok(absences.has(id))
  catalog.known.add(id)
  catalog.at += 1
  t.notOk(absences.has(id))
  absences.miss(id, catalog.at)
  t.equal(absences.size, 0, 'and is not remembered against the catalog')
  for (let more = 0; more < 10; more += 1) absences.miss(someId(), catalog.at)
  t.equal(absences.size, 3, 'the table is bounded')
  t.end()
})

t.test('where most sources fail an absence is not remembered', (t) => {
  const absences = new Absences({ ...options, missesMin: 1, spreadMs: 0 }, catalogOf(), new HandClock())
  for (let failed = 0; failed < 40; failed += 1) absences.note(someId(), 'failed')
  const id = someId()
  absences.miss(id, 0)
  t.notOk(absences.has(id))
  t.end()
})

/** A trail that leaves somebody out, or that whoever is asked may act upon; and hints, which may lead astray. */
const led: Readonly<Record<string, object>> = {
  via: { provenance: { ...trail, via: ['peer.example'] } },
  origin: { provenance: { ...trail, origin: 'peer.example' } },
  hops: { provenance: { ...trail, hops: 2 } },
  'a root': { hints: { rootId: someId() } },
  'a path alone': { hints: { path: [someId(), someId()] } },
}

for (const [what, words] of Object.entries(led)) {
  t.test(`${what}: hints of one client do not affect others`, async (t) => {
    let isOpen = false
    const gates: (() => void)[] = []
    const source: Source = {
      name: 'test',
      async open({ provenance, hints }) {
        const isPlain =
          provenance.hops === 0 && provenance.via.length === 0 && provenance.origin === undefined
        if (!isOpen) await new Promise<void>((resolve) => gates.push(resolve))
        if (!isPlain || Object.keys(hints).length > 0) return refuse('unknown', 'client', 'nowhere')
        const body = (async function* () {
          yield Buffer.from('bytes')
        })()
        const about = { name: 'test', origin: 'test', sizeBytes: 5, trusted: true, proven: false }
        return { ...about, body, learned: {}, hints: {} }
      },
    }
    const absences = new Absences({ ...options, missesMin: 1, spreadMs: 0 }, catalogOf(), new HandClock())
    const { edge, fetcher, close } = await rig({ source, fetcher: { absences } })
    const reader = edge()
    const id = someId()
    const first = reader.open(id, undefined, words)
    const same = reader.open(id, undefined, words)
    const plain = reader.open(id)
    await eventually('both requests wait', () => gates.length === 2)
    isOpen = true
    for (const gate of gates) gate()
    for (const one of [await first, await same]) t.match(one, { refused: 'unknown' })
    t.equal(absences.size, 0, 'nothing is remembered of it')
    const opened = await plain
    t.notOk(isRefusal(opened), 'who waited beside it got the bytes')
    if (!isRefusal(opened)) reader.address.tell({ kind: 'close', reader: opened.reader })
    const other = someId()
    await reader.open(other, undefined, words)
    const later = await reader.open(other)
    t.notOk(isRefusal(later), 'and so does who comes later')
    if (!isRefusal(later)) reader.address.tell({ kind: 'close', reader: later.reader })
    await eventually('no transfer is held', () => fetcher.held === 0)
    await close()
  })
}

t.test('a transfer under way serves every request, whatever its headers', async (t) => {
  let finish = (): void => undefined
  let requested = 0
  const source: Source = {
    name: 'test',
    async open() {
      requested += 1
      const body = (async function* () {
        yield Buffer.alloc(4096)
        await new Promise<void>((resolve) => {
          finish = resolve
        })
        yield Buffer.alloc(4096)
      })()
      const about = { name: 'test', origin: 'test', sizeBytes: 8192, trusted: true, proven: false }
      return { ...about, body, learned: {}, hints: {} }
    },
  }
  const { edge, fetcher, close } = await rig({ source })
  const reader = edge()
  const id = someId()
  const all = [await reader.open(id, undefined, { hints: { rootId: someId() } })]
  for (const words of [{}, ...Object.values(led), { provenance: { ...trail, forward: false } }])
    all.push(await reader.open(id, undefined, words))
  t.equal(requested, 1)
  finish()
  for (const one of all) if (!isRefusal(one)) reader.address.tell({ kind: 'close', reader: one.reader })
  t.notOk(all.some(isRefusal))
  await eventually('no transfer is held', () => fetcher.held === 0)
  await close()
})

t.test('a fetcher asks no source for what is remembered, and never remembers a failure', async (t) => {
  let requested = 0
  let answer: Found | Refusal = refuse('late', 'upstream', 'slow')
  const source: Source = {
    name: 'test',
    async open() {
      requested += 1
      return answer
    },
  }
  const clock = new HandClock()
  const often = { ...options, missesMin: 2, spreadMs: 0 }
  const catalog = catalogOf()
  const { fetcher, edge, close } = await rig({
    source,
    fetcher: { absences: new Absences(often, catalog, clock) },
  })
  const reader = edge()
  const id = someId()
  const ask = async (more = {}): Promise<unknown> => {
    const refusal = await reader.open(id, undefined, more)
    return isRefusal(refusal) && [refusal.refused, refusal.remembered === true]
  }
  for (let time = 0; time < 4; time += 1) t.strictSame(await ask(), ['late', false])
  t.equal(requested, 4)
  answer = unknownForNow()
  for (let time = 0; time < 4; time += 1) t.strictSame(await ask(), ['unknown', false])
  t.equal(requested, 8, 'not all who may know it gave an answer')
  answer = refuse('unknown', 'client', 'nowhere')
  for (let time = 0; time < 4; time += 1) await ask({ provenance: { ...trail, forward: false } })
  t.equal(requested, 12, 'where nobody else may be asked, nothing is learned')
  t.strictSame(await ask(), ['unknown', false])
  t.strictSame(await ask(), ['unknown', false])
  t.strictSame(await ask(), ['unknown', true])
  t.equal(requested, 14)
  t.strictSame(await ask({ hints: { rootId: someId() } }), ['unknown', false], 'who knows where to look')
  catalog.known.add(id)
  catalog.at += 1
  t.strictSame(await ask(), ['unknown', false], 'the index learned the id')
  t.equal(requested, 16)
  t.equal(fetcher.held, 0)
  await close()
})
