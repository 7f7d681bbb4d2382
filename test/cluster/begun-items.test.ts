/** Uploads in parts that are paid for at their beginning: what one machine may have accepted is refunded by no other one. */
import { randomUUID } from 'node:crypto'
import { Client } from 'pg'
import t, { type Test } from 'tap'
import { systemClock } from '../../src/actor/clock.js'
import { silentLog } from '../../src/actor/log.js'
import { EngineAway } from '../../src/cluster/engine-away.js'
import { PostgresItems } from '../../src/cluster/postgres-items.js'
import { refuse } from '../../src/format/refusal.js'
import type { MultipartRecord } from '../../src/upload/parts/multipart-record.js'
import { finalize, sent } from '../conformance/uploads-in-parts.js'
import type { MemoryObjects } from '../engines/memory-objects.js'
import { postgresAbsent } from '../engines/two-machines.js'
import { eventually } from '../eventually.js'
import type { RigOptions } from '../upload/upload-rig.js'
import { emptyEngines, type PartsMachine, partsMachine } from './parts-rig.js'

const facts = { winc: '1000', transaction: '0x', payer: '0x', network: 'base', lines: '' }

/** A machine that knows what the others have accepted. */
async function machineOf(
  t: Test,
  url: string,
  store: MemoryObjects,
  more: RigOptions & { isLeading?: boolean } = {},
): Promise<PartsMachine> {
  const items = new PostgresItems({
    databaseUrl: url,
    store: randomUUID(),
    clock: systemClock,
    log: silentLog,
  })
  const machine = await partsMachine(t, url, store, { machines: items, ...more })
  t.teardown(() => items.close())
  return machine
}

/** An upload of this machine that is whole and paid for. */
async function paidUpload({ rig, records }: PartsMachine): Promise<string> {
  const { id, item } = await sent({ one: rig, other: rig })
  await records.load(id)
  const record = records.find(id)
  if (record === undefined) throw new Error('it is known')
  records.put({ ...record, paid: { payment: 'p', bytes: item.length, facts } })
  await records.written(id)
  return id
}

for (const end of ['its time is over', 'its place is given up'] as const)
  t.test(`what is accepted without a receipt is not refunded when ${end}`, postgresAbsent, async (t) => {
    const { url, store } = await emptyEngines(t)
    const client = new Client({ connectionString: url })
    await client.connect()
    t.teardown(() => client.end())
    const queried = async (text: string, id: string): Promise<{ body: string; due_ms: string }[]> =>
      (await client.query(text, [id])).rows
    const one = await machineOf(t, url, store)
    let isAway = true
    const release = one.records.release.bind(one.records)
    // The database goes away between the acceptance and the record of it.
    one.records.release = (...given) =>
      isAway ? Promise.reject(new EngineAway(refuse('busy', 'self', 'away'))) : release(...given)
    const id = await paidUpload(one)
    t.match(await finalize(one.rig, id), { status: 503 })
    t.ok(one.rig.uploads.ofReservation(id), 'it is accepted')
    const [row] = await queried('SELECT body FROM cluster_uploads WHERE id = $1', id)
    const record = JSON.parse(row?.body ?? '{}') as MultipartRecord
    t.match(record, { state: 'asked', begunItem: one.rig.uploads.ofReservation(id)?.id })
    const isOld = end === 'its time is over'
    const createdMs = record.createdMs - (isOld ? 25 * 3600_000 : 0)
    await client.query(
      `UPDATE cluster_uploads SET body = $2, due_ms = $3, claim = claim + 1, claimed_by = NULL, claimed_until = NULL
       WHERE id = $1`,
      [id, JSON.stringify({ ...record, createdMs }), createdMs + 24 * 3600_000],
    )
    const other = await machineOf(t, url, store, { isLeading: true })
    if (isOld)
      await eventually('the leader has looked at it', async () => {
        const [now] = await queried('SELECT body, due_ms FROM cluster_uploads WHERE id = $1', id)
        return Number(now?.due_ms) > Date.now() || now?.body.includes('heldItem')
      })
    else {
      await other.rig.open.load(id)
      const live = other.rig.open.live(id)
      live?.holder.terms.drop()
    }
    isAway = false
    await eventually('it is finalized', async () => {
      const [now] = await queried('SELECT body FROM cluster_uploads WHERE id = $1', id)
      return now?.body.includes('"state":"finalized"')
    })
    const { questions } = one.rig
    await eventually('its money is spent', () => [...questions, ...other.rig.questions].includes('finish'))
    t.notOk([...questions, ...other.rig.questions].includes('refund'))
  })
