import { existsSync, mkdirSync, readdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { systemClock } from '../../src/actor/clock.js'
import { localAddress } from '../../src/actor/mailbox-address.js'
import type { CatalogReply, CatalogRequest } from '../../src/catalog/catalog-messages.js'
import { Effort } from '../../src/catalog/effort.js'
import { checkIndex } from '../../src/catalog/index-check.js'
import { packItems } from '../../src/catalog/pack.js'
import { IndexQueue } from '../../src/ingest/index-queue.js'
import { Pruner } from '../../src/ingest/prune.js'
import { exportColumns } from '../../src/parquet/export-layout.js'
import { duck, itemsEach, order, rig, stateOf, whole } from './export-rig.js'

t.test('DuckDB reads what was exported, with the types that other gateways write', async (t) => {
  const { house, exporter, root, items, bundles } = await rig(t)
  const state = await whole(exporter, { heightPartitionSize: 50, endHeight: 500 })
  t.match(state, { status: 'completed', lastHeight: 120, height: 120, outputDir: join(root, 'all') })
  const ask = await duck()
  // The folders' names would else be taken for the column `height`.
  const at = (table: string): string => {
    return `read_parquet('${join(root, 'all', table, 'data')}/*/*.parquet', hive_partitioning=false)`
  }
  for (const [table, columns] of Object.entries(exportColumns)) {
    const described = await ask(`DESCRIBE SELECT * FROM ${at(table)}`)
    t.same(
      described.map(([name, type]) => [name, type]),
      columns,
      table,
    )
  }
  const transactions = house.index.rows(
    { maxHeight: 120 },
    { backwards: false, limit: 10_000 },
    new Effort(1e6, 1e6, systemClock),
  ).entries
  const expected = transactions.map(({ id }) => Buffer.from(id).toString('hex').toUpperCase()).sort()
  const ids = await ask(`SELECT hex(id) FROM ${at('transactions')} ORDER BY 1`)
  t.same(ids.flat(), expected, 'every row of the final blocks, each once')
  t.same(await ask(`SELECT count(*), max(height) FROM ${at('blocks')}`), [['121', '120']])
  const tags = transactions.reduce((sum, row) => sum + row.tags.length, 0)
  t.same(await ask(`SELECT count(*) FROM ${at('tags')}`), [[String(tags)]])
  t.same(state.rows, { blocks: 121, transactions: expected.length, tags })
  t.same(readdirSync(join(root, 'all', 'blocks', 'data')).sort(), [
    'height=0-49',
    'height=100-149',
    'height=50-99',
  ])
  const last = join(root, 'all', 'blocks', 'data', 'height=100-149', `blocks_100_120_${state.jobId}.parquet`)
  t.same(await ask(`SELECT min(height), max(height) FROM read_parquet('${last}', hive_partitioning=false)`), [
    ['100', '120'],
  ])

  const final = bundles.filter(({ height }) => height <= 120)
  const [item] = items
  const row = await ask(
    `SELECT hex(parent), "offset", size, data_offset, owner_offset, owner_size, owner IS NULL, signature_offset,
      signature_size, signature_type, hex(root_transaction_id), root_parent_offset, content_type, quantity, data_size
     FROM ${at('transactions')} WHERE is_data_item ORDER BY height, "offset" LIMIT 1`,
  )
  const bundle = Buffer.from(final[0]?.id ?? '', 'base64url')
    .toString('hex')
    .toUpperCase()
  t.same(row, [
    [bundle, '160', '1200', '1260', '674', 512, true, '162', 512, 1, bundle, '0', 'text/css', '0', '100'],
  ])
  t.equal(item?.parentId, final[0]?.id)
  const keys = await ask(
    `SELECT hex(owner) FROM ${at('transactions')} WHERE is_data_item AND owner IS NOT NULL ORDER BY height, "offset" LIMIT 2`,
  )
  t.same(
    keys.flat(),
    items.slice(1, 3).map(({ owner }) => Buffer.from(owner).toString('hex').toUpperCase()),
  )
})

t.test('files end at their rows, and what is of the base layer is left out on demand', async (t) => {
  const { exporter, root, bundles } = await rig(t)
  const few = { outputDir: 'few', maxFileRows: 4, skipL1Transactions: true, skipL1Tags: true, startHeight: 5 }
  const state = await whole(exporter, few)
  const final = bundles.filter(({ height }) => height >= 5 && height <= 120).length * itemsEach
  t.match(state.rows, { blocks: 116, transactions: final, tags: final })
  const names = readdirSync(join(root, 'few', 'transactions', 'data', 'height=0-999')).sort()
  t.equal(names.length, Math.ceil(final / 4))
  t.ok(names.includes(`transactions_5_120_${state.jobId}.parquet`))
  t.ok(names.includes(`transactions_5_120_2_${state.jobId}.parquet`))
  const ask = await duck()
  const most = await ask(
    `SELECT max(n) FROM (SELECT count(*) n FROM read_parquet('${root}/few/transactions/data/*/*', filename=true)
     GROUP BY filename)`,
  )
  t.same(most, [['4']])
})

t.test('one export at a time, and a cancelled one leaves no files', async (t) => {
  const { exporter, root } = await rig(t)
  t.same(exporter.handle({ export: 'state' }), { kind: 'export-state', state: undefined })
  mkdirSync(join(root, 'all', '.draft-of-a-killed-one'), { recursive: true })
  writeFileSync(join(root, 'all', '.draft-of-a-killed-one', 'left.parquet'), 'x')
  const first = stateOf(exporter.handle({ export: 'begin', order }))
  t.equal(exporter.busy, true)
  t.match(exporter.handle({ export: 'begin', order }), { kind: 'export-runs', state: { jobId: first.jobId } })
  t.match(exporter.handle({ export: 'cancel' }), { kind: 'export-state' })
  await exporter.stop()
  t.equal(exporter.busy, false)
  t.match(exporter.handle({ export: 'state', jobId: first.jobId }), {
    state: { status: 'errored', error: 'ended by the operator' },
  })
  t.same(readdirSync(join(root, 'all')), [], 'neither files nor drafts')
  t.match(await whole(exporter), { status: 'completed' }, 'the next one finds its way free')
  t.match(exporter.handle({ export: 'state', jobId: 'nobody' }), { state: undefined })
})

t.test('an export stays in its folder, among final heights, and says why it failed', async (t) => {
  const { exporter, root } = await rig(t)
  for (const outputDir of ['..', '../elsewhere', '/tmp/elsewhere', `${root}-beside`, 'a/../../b']) {
    t.match(exporter.handle({ export: 'begin', order: { ...order, outputDir } }), {
      refused: 'malformed',
      message: /outputDir must be a folder in/,
    })
  }
  t.match(exporter.handle({ export: 'begin', order: { ...order, startHeight: 121, endHeight: 130 } }), {
    message: 'no block from startHeight on is final: the last is 120',
  })
  t.match(await whole(exporter, { outputDir: join(root, 'within') }), { status: 'completed' })
  writeFileSync(join(root, 'a-file'), '')
  t.match(await whole(exporter, { outputDir: 'a-file/in' }), { status: 'errored', error: /ENOTDIR/ })
  t.notOk(existsSync(join(root, 'a-file', 'in')))
})

t.test('pruning takes old items of final heights out of the index, and nothing else', async (t) => {
  const { house, items, bundles } = await rig(t)
  const stop = new AbortController()
  const keeper = localAddress<CatalogRequest, CatalogReply>((message) => house.keeper.handle(message))
  const watch = {
    outage: { failed: () => undefined, well: () => undefined },
    refusals: { add: () => undefined },
  }
  const pruner = new Pruner(new IndexQueue(keeper, house.index, stop.signal, watch), 10, stop.signal)
  const rows = (): number => {
    house.index.refresh()
    return house.index.counts().rows
  }
  const before = rows()
  // All of them were seen in second 5000.
  t.equal(await pruner.prune({ from: 0, to: 1000, beforeSeconds: 5000 }), 0, 'none is older')
  const upTo = (height: number): number => bundles.filter((one) => one.height <= height).length * itemsEach
  t.equal(await pruner.prune({ from: 0, to: 60, beforeSeconds: 5001 }), upTo(60))
  t.equal(await pruner.prune({ from: 0, to: 60, beforeSeconds: 5001 }), 0, 'again: nothing is left')
  t.equal(await pruner.prune({ from: 0, to: 0xffff_fffe, beforeSeconds: 5001 }), upTo(120) - upTo(60))
  t.equal(rows(), before - upTo(120))
  const left = bundles.filter(({ height }) => height > 120).length * itemsEach
  t.ok(left > 0, 'what a fork can take away stays')
  t.same(checkIndex(house.tables).problems, [], 'the index is whole')
  const [first] = bundles
  const again = items.filter(({ parentId }) => parentId === first?.id)
  const request = { kind: 'index-items', rootId: first?.id ?? again[0]!.id, items: packItems(again) } as const
  t.match(
    await house.keeper.handle(request),
    { index: { added: itemsEach } },
    'a bundle opened again brings them',
  )

  const [one, other] = [
    pruner.prune({ ...order, from: 0, to: 120, beforeSeconds: 1 }),
    pruner.prune({ from: 0, to: 1, beforeSeconds: 1 }),
  ]
  t.match(await other, { refused: 'busy' })
  t.equal(await one, 0)
  stop.abort()
  t.match(await pruner.prune({ from: 0, to: 120, beforeSeconds: 9e9 }), { refused: 'busy', message: /stops/ })
})
