/** One bundle, or one item, that is slow or damaged keeps no others waiting; and what changes while a bundle is made is kept. */
import t from 'tap'
import type { Broadcasted } from '../../../src/chain/broadcast.js'
import { chunkSizeMax } from '../../../src/format/chunk.js'
import { type Id, idBytes } from '../../../src/format/id.js'
import { sha256 } from '../../../src/proof/digest.js'
import { Bundles } from '../../../src/upload/bundling/bundle-records.js'
import type { BundlerParts } from '../../../src/upload/bundling/bundler-parts.js'
import { eventually } from '../../eventually.js'
import { rigOf, rules } from './bundler-rig.js'

const taken = { enough: true, results: [{ peer: 'http://taker', success: true }] } as unknown as Broadcasted
const endOf = (json: string): number => Number((JSON.parse(json) as { readonly offset: string }).offset)

/** A bundler whose nodes take chunks as `take` says. */
function sendingRig(t: Parameters<typeof rigOf>[0], take: (end: number) => Promise<object>) {
  const sent: number[] = []
  const chunk = (json: string): Promise<object> => {
    sent.push(endOf(json))
    return take(endOf(json))
  }
  const more = { broadcast: { chunk }, rules: { ...rules, bytesMax: 10_000_000 } }
  return rigOf(t, undefined, 100n, more as unknown as Partial<BundlerParts>).then((rig) => ({ ...rig, sent }))
}

t.test('a bundle that is being sent delays no other', async (t) => {
  let isOver = false
  const held: ((outcome: object) => void)[] = []
  const { accept, round, turn, uploads, bundles } = await sendingRig(t, (end) =>
    isOver || end < chunkSizeMax / 2 ? Promise.resolve(taken) : new Promise((resolve) => held.push(resolve)),
  )
  const [large] = Array.from({ length: 12 }, (_, at) => accept(`${at}`.padEnd(chunkSizeMax, 'x'))) as [Id]
  await round()
  t.ok(held.length > 0)
  const small = accept('small')
  const stateOf = (id: Id): string | undefined => bundles.find(uploads.find(id)?.bundle ?? id)?.state
  await eventually('the small one is sent', async () => {
    await turn(5000)
    return stateOf(small) === 'seeded'
  })
  t.equal(stateOf(large), 'posted')
  isOver = true
  for (const end of held) end(taken)
  await eventually('the large one, too', async () => {
    await turn(5000)
    return stateOf(large) === 'seeded'
  })
})

t.test('a bundle of which a chunk is refused is sent from there on', async (t) => {
  let refusals = 1
  const rig = await sendingRig(t, async (end) => {
    if (end < 8 * chunkSizeMax || refusals === 0) return taken
    refusals -= 1
    return { enough: false, results: [] }
  })
  const { accept, turn, uploads, bundles, sent } = rig
  const [id] = Array.from({ length: 12 }, (_, at) => accept(`${at}`.padEnd(chunkSizeMax, 'x'))) as [Id]
  await eventually('it is sent', async () => {
    await turn(5000)
    return bundles.find(uploads.find(id)?.bundle ?? id)?.state === 'seeded'
  })
  const counts = new Map<number, number>()
  for (const end of sent) counts.set(end, (counts.get(end) ?? 0) + 1)
  t.equal(counts.size, 13, 'all chunks were')
  const twice = [...counts].filter(([, times]) => times > 1).map(([end]) => end)
  t.ok(twice.length > 0 && twice.every((end) => end > 7 * chunkSizeMax), String(twice))
  t.match(bundles.open(), [{ takenBy: ['http://taker'], resentTo: undefined }])
})

t.test('what changes in the row of an item while its bundle is made is kept', async (t) => {
  const box: { store?: () => void } = {}
  const data = async (): Promise<Uint8Array> => {
    box.store?.()
    return sha256(Buffer.from('signature'))
  }
  const { uploads, accept, round } = await rigOf(t, undefined, 100n, { signing: { data } })
  const id = accept('one')
  box.store = () => {
    const item = uploads.find(id)
    if (item !== undefined) uploads.environment.write(() => uploads.putStored(item, 'uploads/a/1'))
  }
  await round()
  const row = uploads.find(id)
  t.ok(row?.bundle)
  t.equal(row?.stored, 'uploads/a/1')
  if (row !== undefined) uploads.environment.write(() => uploads.release(row))
  t.equal([...uploads.stored.ids('uploads/a/1')].length, 0)
})

t.test('an item that waits no more when its bundle is made is in none', async (t) => {
  const box: { leave?: () => void } = {}
  const data = async (): Promise<Uint8Array> => {
    box.leave?.()
    return sha256(Buffer.from('signature'))
  }
  const { uploads, bundles, accept, turn } = await rigOf(t, undefined, 100n, { signing: { data } })
  const [gone, other] = [accept('one'), accept('two')]
  box.leave = () => {
    const item = uploads.find(gone)
    box.leave = () => undefined
    if (item !== undefined) uploads.environment.write(() => uploads.letGo(item, 'another machine has it'))
  }
  await eventually('the other one is packed', async () => {
    await turn(5000)
    return uploads.find(other)?.bundle !== undefined
  })
  t.equal(uploads.find(gone)?.bundle, undefined)
  t.match(bundles.recent, [{ items: 1 }])
})

t.test('one damaged row of an item that waits', async (t) => {
  const { uploads, accept, turn } = await rigOf(t)
  const bad = accept('bad')
  const { environment } = uploads
  environment.write(() => environment.table('items').put(idBytes(bad), Buffer.from('{"id":')))
  const good = Array.from({ length: 5 }, (_, at) => accept(`good ${at}`))
  await eventually('the others are packed', async () => {
    await turn(5000)
    return good.every((id) => uploads.find(id)?.bundle !== undefined)
  })
  t.match(uploads.unreadable.some(5), [{ id: bad, reason: /overwritten/ }])
})

t.test('items that are not those that were signed', async (t) => {
  const { uploads, bundles, accept, turn, sent } = await sendingRig(t, async () => ({
    enough: false,
    results: [],
  }))
  const id = accept('one')
  await turn(5000)
  const first = bundles.open()[0]?.id ?? id
  const record = bundles.find(first)
  if (record === undefined) throw new Error('nothing was packed')
  bundles.put({ ...record, transaction: { ...record.transaction, data_root: 'A'.repeat(43) } })
  await eventually('it is dropped', async () => {
    await turn(60_000)
    return bundles.find(first)?.state === 'dropped'
  })
  t.ok(sent.length > 0)
  t.match(bundles.find(first), { reason: /not those of its transaction/ })
  t.equal(uploads.find(id)?.failures ?? 0, 0)
})

t.test('a start reads the bundles that are open, and those that people see', async (t) => {
  const { uploads, bundles, accept, round } = await rigOf(t)
  accept('one')
  await round()
  const [open] = bundles.open()
  if (open === undefined) throw new Error('nothing was packed')
  const { environment } = uploads
  // A short delay of the next step is kept in memory alone.
  const known = (some: Bundles): unknown[] =>
    [some.open(), some.recent].map((list) => list.map(({ dueMs: _, ...summary }) => summary))
  const again = new Bundles(environment, uploads)
  t.same(known(again), known(bundles))
  let reads = 0
  const table = environment.table('bundles')
  const counted = {
    ...environment,
    table: (name: string) =>
      name !== 'bundles'
        ? environment.table(name)
        : {
            ...table,
            span: (...wanted: Parameters<typeof table.span>) => {
              reads += 1
              return table.span(...wanted)
            },
          },
  }
  t.same(known(new Bundles(counted, uploads)), known(bundles))
  t.equal(reads, 0)
  environment.write(() => environment.table('bundle-lists').clear())
  t.same(known(new Bundles(counted, uploads)), known(bundles), 'of an older release')
  t.equal(reads, 1)
  t.same(known(new Bundles(counted, uploads)), known(bundles))
  t.equal(reads, 1)
})
