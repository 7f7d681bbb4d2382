/** Exports of another gateway enter the index: whole, in parts, after a stop, and over blocks that are there. */
import { mkdirSync, utimesSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { systemClock } from '../../src/actor/clock.js'
import { silentLog } from '../../src/actor/log.js'
import { checkIndex } from '../../src/catalog/index-check.js'
import type { TransactionInput } from '../../src/catalog/index-protocol.js'
import { idBytes } from '../../src/format/id.js'
import { Exporter } from '../../src/parquet/exporter.js'
import { importPeer, openPeerExport, type PeerPlace } from '../../src/parquet/peer-import.js'
import { duck, itemsEach, rig, whole } from './export-rig.js'
import { folder, type L1House, l1House } from './l1-chain.js'
import { asPeerWrites } from './peer-export.js'

const stamp = '20250101T120000_41'

/** Imports an export; what came of it. */
async function imported(house: L1House, base: string, above = -1, stopAfter = Number.POSITIVE_INFINITY) {
  const stop = new AbortController()
  const left = { blocks: 0, items: 0, rows: 0 }
  const bundles: TransactionInput[] = []
  const places: PeerPlace[] = []
  const target = {
    index: house.index,
    async write(request: Parameters<L1House['keeper']['handle']>[0]) {
      await house.keeper.handle(request)
    },
    keep: () => Promise.resolve(),
    remember: (transactions: readonly TransactionInput[]) => void bundles.push(...transactions),
    async imported(_blocks: number, _rows: number, place: PeerPlace) {
      places.push(place)
      if (places.length >= stopAfter) stop.abort(new Error('stopped'))
    },
  }
  const found = await openPeerExport(base, above)
  const refusal = await importPeer(found, above, target, left, stop.signal, 40)
  house.index.refresh()
  return { refusal: refusal?.message, left, bundles, places, blockCount: found.blockCount }
}

/** What both indexes would export, compared by DuckDB. */
async function differences(t: Test, house: L1House, source: string): Promise<string[]> {
  const root = join(folder(t), 'again')
  const exporter = new Exporter(house.index, { root, forkDepth: 0 }, systemClock, silentLog)
  t.match(await whole(exporter), { status: 'completed', lastHeight: 120 })
  await exporter.stop()
  const ask = await duck()
  const wrong: string[] = []
  for (const table of ['blocks', 'transactions', 'tags']) {
    const columns = table === 'blocks' ? '*' : '* EXCLUDE (indexed_at)'
    const rows = (from: string): string =>
      `SELECT ${columns} FROM read_parquet('${from}/${table}/data/*/*.parquet', hive_partitioning=false)`
    const [[count] = []] = await ask(`SELECT count(*) FROM (${rows(source)})`)
    for (const [one, other] of [
      [source, join(root, 'all')],
      [join(root, 'all'), source],
    ] as const) {
      const [[missing] = []] = await ask(`SELECT count(*) FROM (${rows(one)} EXCEPT ALL ${rows(other)})`)
      if (missing !== '0' || count === '0') wrong.push(`${table}: ${missing} of ${count}`)
    }
  }
  return wrong
}

t.test('what another gateway exported is in the index as it was there', async (t) => {
  const { house, exporter, root, items, bundles } = await rig(t)
  await whole(exporter)
  const source = join(root, 'all')
  const base = join(folder(t), 'default')
  await asPeerWrites(source, base, [
    { from: 0, to: 49, run: stamp, rowsMax: 20 },
    { from: 50, to: 120, run: '20250102T120000_41' },
  ])
  // An older run over the same heights, which knew less.
  await asPeerWrites(source, base, [{ from: 0, to: 49, run: '20240101T120000_9', where: 'false' }])
  const old = join(base, 'blocks', 'data', 'height=0-49', 'blocks_0_49_20240101T120000_9.parquet')
  utimesSync(old, 1, 1)

  const fresh = l1House(t)
  const done = await imported(fresh, base)
  t.match(done, { refusal: undefined, blockCount: 121, left: { blocks: 0, items: 0, rows: 0 } })
  t.equal(fresh.index.topHeight(), 120)
  t.strictSame(await differences(t, fresh, source), [])
  t.strictSame(
    [0, 7, 60, 120].map((height) => fresh.index.block(height)?.weaveSize),
    [0, 7, 60, 120].map((height) => house.index.block(height)?.weaveSize),
    'where blocks end in the weave is worked out',
  )
  const [item] = items
  t.equal(fresh.index.row(idBytes(item!.id))?.isUnjudged, true, 'nobody checked who signed it')
  const opened = new Set(bundles.map(({ id }) => id))
  t.notOk(
    done.bundles.some(({ id }) => opened.has(id)),
    'bundles whose items came are not opened again',
  )
  t.ok(done.bundles.length > 100)
  t.strictSame(checkIndex(fresh.tables).problems, [])

  const stopped = l1House(t)
  await t.rejects(imported(stopped, base, -1, 1), /stopped/)
  stopped.index.refresh()
  const top = stopped.index.topHeight() ?? 0
  t.ok(top < 120, `${top}`)
  t.match(await imported(stopped, base, top - 5), {
    refusal: undefined,
    left: { blocks: 0, items: 0, rows: 0 },
  })
  t.strictSame(await differences(t, stopped, source), [], 'a second run brings what the first one did not')
})

t.test(
  'an export without the base layer brings items into blocks that are there, and else is refused',
  async (t) => {
    const { exporter, root, items } = await rig(t)
    await whole(exporter)
    const source = join(root, 'all')
    const [layer, only] = [join(folder(t), 'layer'), join(folder(t), 'only')]
    await asPeerWrites(source, layer, [{ from: 0, to: 120, run: stamp, where: 'NOT is_data_item' }])
    await asPeerWrites(source, only, [{ from: 0, to: 120, run: stamp, where: 'is_data_item' }])
    const fresh = l1House(t)
    t.match(
      (await imported(fresh, only)).refusal,
      /block \d+ has \d+ transactions, and the export holds 0.*skipL1Transactions/,
    )
    t.equal((await imported(fresh, layer)).refusal, undefined)
    t.match(await imported(fresh, only), { refusal: undefined, left: { items: 0 } })
    t.strictSame(await differences(t, fresh, source), [])
    const final = items.length - itemsEach
    t.ok(final > 0)

    const apart = join(folder(t), 'apart')
    await asPeerWrites(source, apart, [
      { from: 0, to: 30, run: stamp },
      { from: 33, to: 60, run: stamp },
    ])
    t.match((await imported(l1House(t), apart)).refusal, /lacks block 31/)
    const high = join(folder(t), 'high')
    await asPeerWrites(source, high, [{ from: 40, to: 60, run: stamp }])
    const begun = l1House(t)
    t.equal((await imported(begun, high)).refusal, undefined, 'an empty index begins where the export does')
    t.equal(begun.index.block(60)?.weaveSize, fresh.index.block(60)?.weaveSize)
    t.match(await imported(begun, layer), { refusal: undefined, left: { blocks: 40 } })
    const other = l1House(t)
    await other.keeper.handle({
      kind: 'index-block',
      block: { ...begun.index.block(60)!, id: 'A'.repeat(64) },
      transactions: new Uint8Array(Buffer.alloc(4)),
    })
    other.index.refresh()
    t.match((await imported(other, high)).refusal, /another branch/)
  },
)

t.test('what is no such table is named', async (t) => {
  const base = folder(t)
  const place = join(base, 'blocks', 'data', 'height=0-5')
  mkdirSync(place, { recursive: true })
  const ask = await duck()
  await ask(`COPY (SELECT 'x' AS height) TO '${join(place, `blocks_0_5_${stamp}.parquet`)}' (FORMAT parquet)`)
  await t.rejects(openPeerExport(base), /blocks_0_5_.*it has no column indep_hash/)
  t.equal((await openPeerExport(join(base, 'none'))).blockCount, 0)
})
