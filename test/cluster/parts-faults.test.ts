/** Uploads in parts of several machines while an engine is gone or hangs, and after kills and standstills. */
import { Client } from 'pg'
import t from 'tap'
import { type Clock, pause, systemClock } from '../../src/actor/clock.js'
import { EngineAway } from '../../src/cluster/engine-away.js'
import type { ItemsElsewhere } from '../../src/cluster/items-elsewhere.js'
import { type Id, idOfBytes } from '../../src/format/id.js'
import { isRefusal, refuse } from '../../src/format/refusal.js'
import { begun, finalize, itemOf, sendPart, sent, stateOf } from '../conformance/uploads-in-parts.js'
import { MemoryObjects } from '../engines/memory-objects.js'
import { postgresAbsent, postgresFor } from '../engines/two-machines.js'
import { eventually } from '../eventually.js'
import { emptyEngines, migrated, partsMachine } from './parts-rig.js'

const partBytes = 5_242_880
const noSales: Pick<ItemsElsewhere, 'beginSale' | 'addToSale' | 'renewSales' | 'endSales' | 'sweepSales'> = {
  beginSale: async () => undefined,
  addToSale: async () => false,
  renewSales: async () => new Set(),
  endSales: async () => true,
  sweepSales: async () => false,
}

async function queried(
  url: string,
  text: string,
  values: unknown[] = [],
): Promise<Record<string, unknown>[]> {
  const client = new Client({ connectionString: url })
  await client.connect()
  try {
    return (await client.query(text, values)).rows
  } finally {
    await client.end()
  }
}

t.test(
  'a database that is gone, or hangs: 503, and nothing that was acknowledged is lost',
  postgresAbsent,
  async (t) => {
    const server = await postgresFor(t, true)
    await migrated(server.url)
    const store = new MemoryObjects()
    const one = (await partsMachine(t, server.url, store, { answerMs: 3000 })).rig
    const other = (await partsMachine(t, server.url, store, { answerMs: 3000 })).rig
    const { id, item } = await sent({ one, other })
    for (const [away, back] of [
      [() => server.hang(), () => server.wake()],
      [() => server.stop(), () => server.start()],
    ] as const) {
      await away()
      const answers = await Promise.all([
        sendPart(one, id, 0, item.subarray(0, partBytes)),
        finalize(other, id),
        begun(one).catch(() => ({ status: 503 })),
      ])
      t.strictSame(
        answers.map((answer) => (typeof answer === 'string' ? 200 : answer.status)),
        [503, 503, 503],
      )
      await back()
      await eventually('it answers again', async () => {
        const found = await stateOf(one, id).catch(() => undefined)
        return found?.status === 'ASSEMBLING'
      })
    }
    await eventually('finalized', async () => (await finalize(other, id)).status === 200)
    t.match(await stateOf(one, id), { status: 'FINALIZED' })
  },
)

t.test(
  'a store that is gone: no part is acknowledged, and an end is tried again',
  postgresAbsent,
  async (t) => {
    const { url, store } = await emptyEngines(t)
    const { rig } = await partsMachine(t, url, store)
    const { id, item } = await sent({ one: rig, other: rig })
    store.fails = () => refuse('upstream', 'upstream', 'away')
    t.match(await sendPart(rig, id, 0, item.subarray(0, partBytes)), {
      status: 503,
      text: /a part was not kept: away/,
    })
    t.match(await finalize(rig, id), { status: 503 })
    store.fails = () => undefined
    t.equal((await finalize(rig, id)).status, 200)
  },
)

t.test(
  'who ended in the middle is followed, and who stood still changes nothing more',
  postgresAbsent,
  async (t) => {
    const { url, store } = await emptyEngines(t)
    const one = await partsMachine(t, url, store)
    const { id } = await sent({ one: one.rig, other: one.rig })
    // A machine that has claimed it and is killed: nobody renews its claim.
    const dead = await partsMachine(t, url, store)
    await dead.records.load(id)
    t.equal(await dead.records.claim(id, { address: undefined, token: undefined, paidBy: [] }), 'ours')
    const claim = (await queried(url, 'SELECT claim FROM cluster_uploads WHERE id = $1', [id]))[0]?.claim
    t.match(await stateOf(one.rig, id), { status: 'ASSEMBLING' })
    t.equal((await sendPart(one.rig, id, 0, itemOf().subarray(0, partBytes))).status, 409)
    const silent = "UPDATE cluster_uploads SET claimed_until = now() - interval '1 s' WHERE id = $1"
    await queried(url, silent, [id])
    await eventually(
      'it is taken over without a request',
      async () => (await stateOf(one.rig, id)).status === 'FINALIZED',
    )
    t.equal(await dead.records.confirm(id, 'FINALIZING'), false, 'the fence')
    t.equal(await dead.records.release(id), false)
    t.match(await stateOf(dead.rig, id), { status: 'FINALIZED' })
    const [row] = await queried(url, 'SELECT claim, claimed_by FROM cluster_uploads WHERE id = $1', [id])
    t.equal(Number(row?.claim), Number(claim) + 1)
    t.equal(row?.claimed_by, null)
  },
)

t.test('an end that was ordered is carried out by another machine', postgresAbsent, async (t) => {
  const { url, store } = await emptyEngines(t)
  const one = await partsMachine(t, url, store)
  const { id } = await sent({ one: one.rig, other: one.rig })
  await one.records.load(id)
  const record = one.records.find(id)
  if (record === undefined) throw new Error('it is known')
  // Written down by a machine that was killed before it began.
  one.records.put({
    ...record,
    state: 'asked',
    uploader: { address: '192.0.2.1', token: undefined, paidBy: [] },
  })
  await one.records.written(id)
  await eventually('it is finalized', async () => (await stateOf(one.rig, id)).status === 'FINALIZED')
})

t.test('bounds count what others have', postgresAbsent, async (t) => {
  const { url, store } = await emptyEngines(t)
  const more = { partsMaxBytes: 8 * partBytes }
  const one = (await partsMachine(t, url, store, more)).rig
  const other = (await partsMachine(t, url, store, more)).rig
  const id = await begun(one)
  const bytes = Buffer.alloc(partBytes)
  t.equal((await sendPart(one, id, 0, bytes)).status, 200)
  t.equal((await sendPart(other, id, partBytes, bytes)).status, 200)
  await eventually(
    'both count both',
    async () => one.partsRoom.bytes === 2 * partBytes && other.partsRoom.bytes === 2 * partBytes,
  )
  const more3 = await begun(other)
  t.equal((await sendPart(other, more3, 0, bytes)).status, 429, 'a quarter of all is of one address')
  await eventually('places, too', async () => one.partsRoom.places === 2 && other.partsRoom.places === 2)
})

t.test(
  'what nobody needs is removed: expired uploads, and objects that are no parts',
  postgresAbsent,
  async (t) => {
    const { url, store } = await emptyEngines(t)
    const one = await partsMachine(t, url, store)
    const id = await begun(one.rig)
    await sendPart(one.rig, id, 0, Buffer.alloc(1000))
    const [key = ''] = [...store.objects.keys()]
    const held = store.objects.get(key)
    if (held === undefined) throw new Error('a part is an object')
    const old = String(Date.now() - 2 * 3600_000).padStart(15, '0')
    store.objects.set(`p/sluice/parts/${id}/${old}-00`, held)
    store.objects.set(`p/sluice/parts/gone/${old}-00`, held)
    store.objects.set(`p/sluice/parts/gone/${String(Date.now()).padStart(15, '0')}-00`, held)
    t.equal(await one.files.clean(), 2)
    t.ok(store.objects.has(key), 'a part stays')
    t.equal(store.objects.size, 2, 'and what may become one')
    await queried(url, 'UPDATE cluster_uploads SET due_ms = 0, body = $2 WHERE id = $1', [
      id,
      JSON.stringify({ id, chunkBytes: partBytes, createdMs: 0, changedMs: 0, state: 'open' }),
    ])
    // The first sweep is ten minutes after a start, when the time of day is confirmed.
    let aheadMs = 0
    const every: Clock['every'] = (ms, act) => {
      const isLong = ms > 60_000
      return systemClock.every(isLong ? 200 : ms, () => {
        if (isLong) aheadMs += ms
        act()
      })
    }
    const now = (): number => systemClock.now() + aheadMs
    const monotonic = (): number => systemClock.monotonic() + aheadMs
    const leader = await partsMachine(t, url, store, {
      isLeading: true,
      partsClock: { ...systemClock, now, monotonic, every },
    })
    await eventually('the leader removes it', async () => {
      const rows = await queried(url, 'SELECT id FROM cluster_uploads')
      return rows.length === 0 && !store.objects.has(key)
    })
    t.equal((await finalize(leader.rig, id)).status, 404)
  },
)

t.test(
  'a request that brings bytes to another machine brings no more after a HEAD',
  postgresAbsent,
  async (t) => {
    const { url, store } = await emptyEngines(t)
    const [one, other] = [await partsMachine(t, url, store), await partsMachine(t, url, store)]
    const id = await begun(one.rig)
    await one.records.load(id)
    const draft = one.files.draft(id)
    if (isRefusal(draft)) throw new Error('a draft')
    await draft.write(Buffer.from('late bytes'))
    await other.records.load(id, true)
    const refused = await draft.keep(0)
    t.equal(isRefusal(refused) && refused.refused, 'busy')
    await eventually('its object is removed', async () => store.objects.size === 0)
    const next = other.files.draft(id)
    if (isRefusal(next)) throw new Error('a draft')
    await next.write(Buffer.from('bytes'))
    t.equal(await next.keep(0), undefined)
    await pause(10)
  },
)

t.test(
  'who removes what is over, and stood still, removes nothing that went on',
  postgresAbsent,
  async (t) => {
    const { url, store } = await emptyEngines(t)
    const [one, other] = [await partsMachine(t, url, store), await partsMachine(t, url, store)]
    const { id } = await sent({ one: one.rig, other: one.rig })
    await other.records.load(id)
    const { version } = (await other.database.load(id, 0, -1)) ?? { version: 0 }
    t.equal((await finalize(one.rig, id)).status, 200)
    t.equal(await other.database.remove(id, version), false, 'it was another record')
    t.equal(await other.database.remove(id, 0), false, 'or none was known')
    other.records.remove([id])
    await t.rejects(other.records.written(id), { name: 'Overtaken' })
    t.match(await stateOf(other.rig, id), { status: 'FINALIZED' })
  },
)

t.test(
  'an item that another machine has accepted gets the receipt of that machine',
  postgresAbsent,
  async (t) => {
    const { url, store } = await emptyEngines(t)
    const accepted = new Map<Id, string>()
    const machines = (name: string): ItemsElsewhere => ({
      async add(items) {
        for (const { id } of items) accepted.set(idOfBytes(id), name)
        return true
      },
      has: async (id) => accepted.has(id) && accepted.get(id) !== name,
      receiptOf: async () => 'none',
      ...noSales,
    })
    const one = await partsMachine(t, url, store, { machines: machines('one') })
    const other = await partsMachine(t, url, store, { machines: machines('other') })
    const { id } = await sent({ one: one.rig, other: one.rig })
    // It accepts the item, and cannot write that down.
    const { release } = one.records
    one.records.release = () => Promise.reject(new EngineAway(refuse('busy', 'self', 'away')))
    t.equal((await finalize(one.rig, id)).status, 503)
    t.equal(accepted.size, 1)
    await queried(url, "UPDATE cluster_uploads SET claimed_until = now() - interval '1 s' WHERE id = $1", [
      id,
    ])
    await eventually('the other one has noticed', async () => {
      const { status, text } = await finalize(other.rig, id)
      t.equal(status, 503, 'it decides nothing')
      return text?.includes('has accepted the item') === true
    })
    t.match(await stateOf(other.rig, id), { status: 'FINALIZING' })
    one.records.release = release
    const ended = await eventually('the first one ends it', async () => {
      const state = await stateOf(other.rig, id)
      return state.status === 'FINALIZED' ? state : undefined
    })
    t.same(await stateOf(one.rig, id), ended)
    t.equal((await finalize(other.rig, id)).status, 200)
    const [itemId] = accepted.keys()
    t.equal(itemId && other.rig.uploads.find(itemId), undefined, 'one machine has it')
  },
)
