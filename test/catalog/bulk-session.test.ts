/** An import in bulk beside a disk that is full, and beside a damaged page. */
import { createHash } from 'node:crypto'
import t, { type Test } from 'tap'
import { BulkSession } from '../../src/catalog/bulk-session.js'
import type { WriteOutcome } from '../../src/catalog/catalog-outcome.js'
import { Generations } from '../../src/catalog/generations.js'
import type { IndexRequest } from '../../src/catalog/index-protocol.js'
import { openIndexTables } from '../../src/catalog/index-tables.js'
import { IndexWriter } from '../../src/catalog/index-writer.js'
import { openCatalogTables } from '../../src/catalog/tables.js'
import { idOfBytes } from '../../src/format/id.js'
import { isRefusal } from '../../src/format/refusal.js'
import { scratch } from '../scratch.js'
import { blockMessage } from './index-model.js'

const owner = Buffer.alloc(32, 5)

function block(height: number): Extract<IndexRequest, { kind: 'index-block' }> {
  const id = (at: number): string => Buffer.alloc(48, at).toString('base64url')
  const header = { height, id: id(height), previous: id(height - 1), timestamp: height, weaveSize: '0' }
  const transaction = {
    id: idOfBytes(Buffer.alloc(32, height)),
    size: 10,
    owner,
    ownerAddress: createHash('sha256').update(owner).digest(),
    target: Buffer.alloc(0),
    anchor: Buffer.alloc(0),
    tags: [],
    index: 0,
    format: 2,
    quantity: 0n,
    reward: 0n,
    dataRoot: Buffer.alloc(32),
    weaveEnd: height * 100,
  }
  const message = blockMessage({ ...header, transactionCount: 1 }, [transaction])
  if (message.kind !== 'index-block') throw new Error('no block')
  return message
}

/** A session whose disk does what `outcome` says. */
function sessionOf(t: Test, rows: number) {
  const { environment } = openCatalogTables(scratch('bulk-session'))
  t.teardown(() => environment.close())
  const tables = openIndexTables(environment)
  const writer = new IndexWriter(tables)
  const disk: { outcome: WriteOutcome } = { outcome: 'written' }
  const session = new BulkSession({ rows, bytes: 2 ** 20 }, new Generations(), {
    onDisk: (act) => {
      if (disk.outcome === 'written') act()
      return disk.outcome
    },
    writer: () => writer,
    refresh: () => environment.refresh(),
    nowSeconds: () => 5000,
    apply: () => undefined,
  })
  const { reply } = session.handle({ kind: 'bulk-begin' })
  const number = isRefusal(reply) ? undefined : reply?.bulk?.session
  if (number === undefined) throw new Error('no session was begun')
  const put = (height: number) =>
    session.handle({ kind: 'bulk', session: number, parts: [block(height)] }).reply
  const end = () => session.handle({ kind: 'bulk-end', session: number }).reply
  const heights = (): number[] => {
    environment.refresh()
    return [...tables.blocks.keys({})].map((key) => Buffer.from(key).readUInt32BE(0))
  }
  return { session, tables, disk, put, end, heights }
}

t.test('what finds no room on the disk waits, and nothing more is taken meanwhile', async (t) => {
  const { disk, put, end, heights, tables } = sessionOf(t, 2)
  t.match(put(1), { bulk: { taken: 1, listed: 0 } })
  disk.outcome = 'refused'
  t.match(end(), { refused: 'busy' })
  disk.outcome = 'written'
  t.match(put(2), { bulk: { taken: 2, listed: 2 } }, 'two rows are a segment')
  t.same(heights(), [1, 2])
  t.match(put(3), { bulk: { taken: 3, listed: 2 } })
  disk.outcome = 'refused'
  t.match(end(), { refused: 'busy' })
  disk.outcome = 'written'
  t.match(end(), { bulk: { taken: 3, listed: 3 } })
  t.same(heights(), [1, 2, 3])
  t.equal(tables.segments.count(), 3)
})

t.test(
  'where a damaged page is met the session is over, and only its beginning is in the index',
  async (t) => {
    const { disk, put, end, heights, session } = sessionOf(t, 2)
    put(1)
    put(2)
    put(3)
    disk.outcome = 'damaged'
    t.match(put(4), { refused: 'defect' })
    disk.outcome = 'written'
    t.match(put(5), { refused: 'defect' }, 'else the index would have block 5 without block 3')
    t.match(end(), { refused: 'defect' })
    t.equal(session.finish(), 'written')
    t.same(heights(), [1, 2])
  },
)

t.test('the index says what an import in bulk brought', async (t) => {
  const { put, end, tables } = sessionOf(t, 2)
  t.equal(tables.segments.totals().bulk, undefined)
  for (const height of [1, 2, 3]) put(height)
  t.match(tables.segments.totals().bulk, { rows: 2, batches: 1, beganSeconds: 5000, listedSeconds: 5000 })
  end()
  const { bulk, mergesDue, levels } = tables.segments.totals()
  t.match(bulk, { rows: 3, batches: 2 })
  t.ok((bulk?.batchBytesMax ?? 0) > 4096, 'blocks count, too')
  t.equal(levels.get(0), 2)
  t.equal(mergesDue, 0)
})
