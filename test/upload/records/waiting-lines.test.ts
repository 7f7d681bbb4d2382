/** In which order items wait for a bundle. */
import { statSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { type Id, idOfBytes } from '../../../src/format/id.js'
import { sha256 } from '../../../src/proof/digest.js'
import { chooseItems } from '../../../src/upload/bundling/choice.js'
import { type AcceptedItem, openUploadTables } from '../../../src/upload/records/uploads.js'
import { turnOf, type WaitingItem, WaitingLines } from '../../../src/upload/records/waiting-lines.js'
import { fc } from '../../property.js'

let made = 0

function freeItem(range: string, wallet: string, receivedMs = 1): WaitingItem {
  made += 1
  const turn = turnOf({ keys: [`w:${wallet}`, `r:${range}`], bytes: 1 }) ?? ''
  return { id: idOfBytes(sha256(Buffer.from(`free ${made}`))), receivedMs, turn }
}

function paidItem(receivedMs: number): WaitingItem {
  made += 1
  return { id: idOfBytes(sha256(Buffer.from(`paid ${made}`))), receivedMs }
}

function linesOf(t: Test) {
  const environment = openUploadTables(t.testdir())
  t.teardown(() => environment.close())
  const lines = new WaitingLines(environment)
  const put = (items: readonly WaitingItem[]): void =>
    environment.write(() => {
      for (const item of items) lines.put(item)
    })
  return { environment, lines, put }
}

t.test(
  'who sends many free items delays nobody else: addresses, networks, providers and wallets',
  async (t) => {
    const { environment, lines, put } = linesOf(t)
    const many = (count: number, make: (at: number) => WaitingItem): WaitingItem[] =>
      Array.from({ length: count }, (_, at) => make(at))
    const flood = [
      ...many(500, () => freeItem('20.1.1.1', 'one')),
      ...many(200, (at) => freeItem(`20.1.${at}.1`, `two ${at}`)),
      ...many(200, (at) => freeItem(`2001:db8:0:${at.toString(16)}::`, `three ${at}`)),
      ...many(200, (at) => freeItem('20.1.1.1', `four ${at}`)),
    ]
    const honest = [
      freeItem('30.1.1.1', 'of another provider', 9),
      freeItem('40.1.1.1', 'and another', 9),
      freeItem('30.1.1.1', 'a second wallet there', 9),
    ]
    put(flood)
    put(honest)
    for (let round = 0; round < 20; round += 1) {
      const soon = [...lines.byTurns(12)]
      t.ok(honest.every(({ id }) => soon.includes(id)))
    }
    const first = [...lines.byTurns(4)].filter((id) => flood.some((one) => one.id === id))
    t.equal(first.length, 2, 'two providers have one each')
    t.equal(new Set(lines.byTurns(10_000)).size, flood.length + honest.length, 'each of them once')
    t.equal([...lines.byTurns(5)].length, 5)
    const near = freeItem('20.1.250.9', 'in a network of its own, in the provider of the flood', 9)
    put([near])
    t.ok(
      [...lines.byTurns(2000)].indexOf(near.id) < 4 * 250,
      'at most one of each network there is before it',
    )
    environment.write(() => {
      for (const item of [...flood, ...honest, near]) lines.remove(item)
    })
    t.strictSame([[...lines.byTurns(9)], [...lines.oldest(9)], lines.count], [[], [], 0])
  },
)

t.test('turns begin anywhere, so that each has one in some bundle', async (t) => {
  const { lines, put } = linesOf(t)
  const all = Array.from({ length: 50 }, (_, at) => freeItem(`20.${at}.1.1`, 'all of one'))
  put(all)
  const served = new Set<string>()
  for (let from = 0; from < 256; from += 1) {
    const [first] = lines.byTurns(1, Buffer.alloc(6, from))
    served.add(first ?? '')
  }
  t.ok(served.size > 25, `${served.size} of 50 were first`)
  const round = [...lines.byTurns(50, Buffer.alloc(6, 0x80))]
  t.equal(new Set(round).size, 50)
})

t.test('both lines by age; free bytes of nobody are no turn', async (t) => {
  const { environment, lines, put } = linesOf(t)
  fc.assert(
    fc.property(
      fc.array(fc.tuple(fc.boolean(), fc.integer({ min: 0, max: 99 })), { maxLength: 30 }),
      (all) => {
        const items = all.map(([isFree, at]) => (isFree ? freeItem(`20.1.1.${at}`, 'w', at) : paidItem(at)))
        put(items)
        const ageOf = new Map(items.map(({ id, receivedMs }) => [id, receivedMs]))
        const ages = [...lines.oldest(100)].map((id) => ageOf.get(id))
        const paid = [...lines.first(100)].map((id) => ageOf.get(id))
        const isCounted =
          lines.count === items.length && [...lines.oldest(3)].length === Math.min(3, items.length)
        environment.write(() => {
          for (const item of items) lines.remove(item)
        })
        const sorted = (some: (number | undefined)[]) =>
          [...some].sort((one, other) => Number(one) - Number(other))
        t.strictSame(ages, sorted(items.map(({ receivedMs }) => receivedMs)))
        t.strictSame(
          paid,
          sorted(items.filter(({ turn }) => turn === undefined).map(({ receivedMs }) => receivedMs)),
        )
        return isCounted
      },
    ),
    { numRuns: 30 },
  )
  t.equal(turnOf({ keys: [], bytes: 1 }), undefined, 'the operator has exempted this wallet')
  t.equal(turnOf({ keys: ['w:one', 'r:20.1.1.1'], bytes: 1 })?.length, 32)
  t.not(turnOf({ keys: ['w:one'], bytes: 1 }), turnOf({ keys: ['w:other'], bytes: 1 }))
})

t.test('what is looked at in part keeps no page of the file from being used again', async (t) => {
  const { environment, lines, put } = linesOf(t)
  const folder = t.testdirName
  put(Array.from({ length: 300 }, (_, at) => paidItem(at)))
  put(Array.from({ length: 300 }, (_, at) => freeItem(`20.1.1.${at % 9}`, `wallet ${at}`)))
  const table = environment.table('words')
  const rewrite = async (): Promise<number> => {
    for (let at = 0; at < 300; at += 1) {
      environment.write(() => table.put(Buffer.from('word'), Buffer.alloc(4000, at)))
      // A snapshot of this thread ends with its turn.
      if (at % 10 === 0) await new Promise((resolve) => setImmediate(resolve))
    }
    return statSync(join(folder, 'data.mdb')).size
  }
  const before = await rewrite()
  const [oldest] = lines.oldest(1)
  t.ok(oldest)
  const rules = { itemsMax: 10, bytesMax: 1e9 }
  const itemsIn = function* (ids: Iterable<Id>): Generator<AcceptedItem> {
    for (const id of ids) yield { id, place: { file: 1, offset: 1, sizeBytes: 1 } } as AcceptedItem
  }
  const chosen = chooseItems(
    { paid: itemsIn(lines.first(99)), free: itemsIn(lines.byTurns(99)) },
    rules,
    false,
  )
  t.equal(chosen.items.length, 10)
  t.ok((await rewrite()) <= before + 400_000, 'three hundred changes of 4 kB need no room of their own')
})
