import t from 'tap'
import { systemClock } from '../../src/actor/clock.js'
import { silentLog } from '../../src/actor/log.js'
import { RowBinaryWriter } from '../../src/clickhouse/row-binary.js'
import { missingHeights, StableWriter, type WriterState } from '../../src/clickhouse/stable-writer.js'
import { type Refusal, refuse } from '../../src/format/refusal.js'
import { eventually } from '../eventually.js'
import { openChainHouse } from './house.js'

const forkDepth = 3

/** Heights that were recorded, and how much was written, as one ClickHouse keeps them. */
class MadeUpServer {
  readonly records: { readonly from: number; readonly to: number; readonly version: number }[] = []
  batches = 0
  isAway = false
  hasTables = false
  /** Id of the block of the highest row. */
  block: Uint8Array | undefined
  /** Called before each batch is there. */
  onBatch: () => Promise<void> = async () => undefined

  async ask(sql: string): Promise<Buffer | Refusal> {
    if (this.isAway) return away
    if (sql.startsWith('EXISTS')) return Buffer.of(0)
    if (!this.hasTables) return missing
    const out = new RowBinaryWriter(64)
    if (sql.startsWith('SELECT min(height)')) {
      // No rows.
      for (let at = 0; at < 16; at += 1) out.u8(0)
      return out.written
    }
    const last = this.records.reduce((best, one) => (one.version > best.version ? one : best), none)
    if (last === none) return Buffer.alloc(0)
    if (sql.startsWith('SELECT height, block_indep_hash')) {
      if (this.block === undefined) return Buffer.alloc(0)
      out.u32(last.to)
      out.bytes(this.block)
      return out.written
    }
    out.u32(last.from)
    out.u32(last.to)
    out.u64(0)
    out.u64(last.version)
    return out.written
  }

  async write(sql: string): Promise<'done' | Refusal> {
    if (this.isAway) return away
    if (sql.startsWith('CREATE')) this.hasTables = true
    else if (!this.hasTables) return missing
    if (sql.startsWith('INSERT INTO sluice_rows')) {
      await this.onBatch()
      this.batches += 1
    }
    // Whether whole rows are all there.
    if (sql.includes('max(version) + 1')) return 'done'
    const [from, to, , version] = [...sql.matchAll(/\d+/g)].map(([text]) => Number(text))
    if (sql.startsWith('INSERT INTO sluice_heights'))
      this.records.push({ from: from ?? 0, to: to ?? 0, version: version ?? 0 })
    return 'done'
  }

  get height(): number {
    return this.records.reduce((best, one) => (one.version > best.version ? one : best), none).to
  }
}

const none = { from: 0, to: -1, version: -1 }
const away = refuse('late', 'upstream', 'away')
const missing = refuse('unknown', 'upstream', 'no such table')

type House = Awaited<ReturnType<typeof openChainHouse>>

function writerOf(house: House, server: MadeUpServer, leads: () => Promise<boolean>) {
  const states: WriterState[] = []
  const writer = new StableWriter({
    client: server,
    index: house.index,
    leads,
    forkDepth,
    clock: systemClock,
    log: silentLog,
    onState: (state) => states.push(state),
  })
  return { writer, states }
}

t.test('stable heights are written as they come, and what fails is counted and done later', async (t) => {
  const house = await openChainHouse(120)
  t.teardown(() => house.close())
  const server = new MadeUpServer()
  const { writer } = writerOf(house, server, async () => true)
  const top = (): number => house.index.topHeight() ?? 0
  server.isAway = true
  await writer.look()
  t.match(writer.state, { leads: true, failures: 1, rows: 0 })
  server.isAway = false
  await writer.look()
  t.equal(server.height, top() - forkDepth)
  t.match(writer.state, { leads: true, height: server.height, lag: 0, failures: 1 })
  t.ok(writer.state.rows > 0)
  const { batches } = server
  await writer.look()
  await writer.look()
  t.equal(server.batches, batches, 'nothing is written twice')
  const before = top()
  while (top() === before) await house.play(20)
  await writer.look()
  t.equal(server.height, top() - forkDepth)
  await writer.close()
  t.equal(writer.state.leads, false)
  const closed = server.batches
  await writer.look()
  t.equal(server.batches, closed)
})

t.test('who was followed records nothing, and the other one goes on behind the last record', async (t) => {
  const house = await openChainHouse(120)
  t.teardown(() => house.close())
  const server = new MadeUpServer()
  let leading = 'one'
  const one = writerOf(house, server, async () => leading === 'one')
  const two = writerOf(house, server, async () => leading === 'two')
  await two.writer.look()
  t.equal(server.batches, 0, 'one machine writes')
  // The first one is followed while its batch is on its way.
  server.onBatch = async () => {
    leading = 'two'
  }
  await one.writer.look()
  t.equal(server.records.length, 0)
  t.match(one.writer.state, { leads: false, rows: 0 })
  server.onBatch = async () => undefined
  await Promise.all([one.writer.look(), two.writer.look()])
  t.equal(server.height, (house.index.topHeight() ?? 0) - forkDepth)
  t.match(two.writer.state, { leads: true, lag: 0 })
  await one.writer.close()
  await two.writer.close()
})

t.test('a server that was restored without some tables has them again', async (t) => {
  const house = await openChainHouse(120)
  t.teardown(() => house.close())
  const server = new MadeUpServer()
  const { writer } = writerOf(house, server, async () => true)
  await writer.look()
  const { height } = server
  for (const isEmpty of [true, false]) {
    const before = house.index.topHeight()
    while (house.index.topHeight() === before) await house.play(20)
    server.hasTables = false
    // Of a backup some heights may be there.
    if (isEmpty) server.records.length = 0
    else server.records.splice(1)
    await eventually('all is written again', async () => {
      await writer.look()
      return server.height === (house.index.topHeight() ?? 0) - forkDepth
    })
  }
  t.ok(server.height > height)
  await writer.close()
})

t.test('nothing is written behind the blocks of another chain', async (t) => {
  const house = await openChainHouse(120)
  t.teardown(() => house.close())
  const server = new MadeUpServer()
  const { writer } = writerOf(house, server, async () => true)
  await writer.look()
  const { batches, height } = server
  const before = house.index.topHeight()
  while (house.index.topHeight() === before) await house.play(20)
  server.block = Buffer.alloc(48, 7)
  await writer.look()
  t.match(writer.state, { leads: true, failures: 1 })
  t.strictSame([server.batches, server.height], [batches, height])
  const own = house.index.block(height)
  server.block = Buffer.from(own?.id ?? '', 'base64url')
  await writer.look()
  t.ok(server.height > height, 'behind its own it goes on')
  await writer.close()
})

t.test('where nobody says who leads, nothing is written', async (t) => {
  const house = await openChainHouse(40)
  t.teardown(() => house.close())
  const server = new MadeUpServer()
  const { writer } = writerOf(house, server, () => Promise.reject(new Error('the database is away')))
  await writer.look()
  t.match(writer.state, { leads: false, failures: 1 })
  t.equal(server.batches, 0)
  await writer.close()
})

t.test('no gap is left below what is written', async (t) => {
  const house = await openChainHouse(60)
  t.teardown(() => house.close())
  const server = new MadeUpServer()
  const top = house.index.topHeight() ?? 0
  const lowest = house.index.linkedDown(top, 10_000)
  t.same(missingHeights(house.index, forkDepth, undefined), { from: lowest, to: top - forkDepth })
  t.same(missingHeights(house.index, top + 1, undefined), undefined, 'nothing is stable')
  if (lowest < 2) return
  server.records.push({ from: 0, to: lowest - 2, version: 1 })
  const { writer } = writerOf(house, server, async () => true)
  await writer.look()
  t.equal(server.batches, 0)
  await writer.close()
})
