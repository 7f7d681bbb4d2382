/** The hex samples of docs/ARCHITECTURE.md are what the program writes: each is made here and compared. */
import { createHash } from 'node:crypto'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import t from 'tap'
import { RootIndexWriter } from '../src/bands/root-writer.js'
import { encodeBlob } from '../src/catalog/catalog-record.js'
import { openIndexTables } from '../src/catalog/index-tables.js'
import { IndexWriter } from '../src/catalog/index-writer.js'
import { packItems, packTransactions } from '../src/catalog/pack.js'
import { spillLimits } from '../src/catalog/spill.js'
import { openCatalogTables } from '../src/catalog/tables.js'
import { encodeBase64url } from '../src/format/base64url.js'
import { type Id, idOfBytes } from '../src/format/id.js'
import { packManifest } from '../src/format/packed-manifest.js'
import { lookupColumns } from '../src/parquet/l1-layout.js'
import { ParquetFile } from '../src/parquet/parquet-writer.js'
import { blobPath } from '../src/store/blobs.js'
import { scratch } from './scratch.js'

const root = fileURLToPath(new URL('../..', import.meta.url))
const sha256 = (text: string): Buffer => createHash('sha256').update(text).digest()
const idFor = (text: string): Id => idOfBytes(sha256(text))
const tag = (name: string, value: string) => ({ name: Buffer.from(name), value: Buffer.from(value) })
const none = new Uint8Array(0)
const common = { owner: none, ownerAddress: sha256('owner'), target: none, anchor: none }
const seenSeconds = 1_700_000_000

const transaction = {
  ...common,
  id: idFor('transaction'),
  size: 5000,
  tags: [tag('App-Name', 'Site')],
  index: 3,
  format: 2,
  quantity: 0n,
  reward: 1000n,
  dataRoot: sha256('data root'),
  weaveEnd: 1_000_000,
}
const item = {
  ...common,
  id: idFor('item'),
  size: 300,
  tags: [tag('Type', 'page')],
  signatureType: 1,
  parentId: transaction.id,
  rootItemOffset: 96,
  parentItemOffset: 96,
  headerSize: 1060,
}

/** Samples of the index: one block with a transaction that holds one item. */
async function ofIndex(): Promise<Record<string, Buffer>> {
  const path = scratch('layouts')
  const { environment } = openCatalogTables(path)
  const meta = environment.table('index meta')
  environment.write(() => {
    // Random otherwise.
    meta.put(Buffer.from('word key'), Buffer.from('0001020304050607', 'hex'))
    meta.put(Buffer.from('version'), Buffer.from('sluice index 2'))
  })
  const tables = openIndexTables(environment)
  const writer = new IndexWriter(tables, { ...spillLimits, directEntries: 1 })
  const block = {
    height: 1_234_567,
    id: encodeBase64url(Buffer.alloc(48, 1)),
    previous: encodeBase64url(Buffer.alloc(48, 2)),
    timestamp: seenSeconds,
    weaveSize: '1000000',
    transactionCount: 4,
  }
  const nothing = (): void => undefined
  environment.write(() => {
    writer.apply(
      { kind: 'index-block', block, transactions: packTransactions([transaction]) },
      seenSeconds,
      nothing,
    )
    const items = packItems([item])
    writer.apply({ kind: 'index-items', rootId: transaction.id, items }, seenSeconds, nothing)
    writer.settle()
  })
  const run = (name: string): Buffer => {
    const files = readdirSync(join(path, 'runs')).filter((file) => file.startsWith(`${name}-`))
    return readFileSync(join(path, 'runs', files[0] ?? ''))
  }
  const entries = (name: string) =>
    [...environment.table(name).span({})].map(({ key, value }) => Buffer.concat([key, value]))
  const [, ofItem] = [...tables.sets.sets[0].rows.span({})]
  const samples = {
    'row-key': Buffer.from(ofItem?.key ?? none),
    row: Buffer.from(ofItem?.value ?? none),
    postings: Buffer.concat(entries('postings').slice(0, 1)),
    word: Buffer.concat(entries('numbers').slice(0, 2)),
    'run-ids': run('ids').subarray(0, 16),
    'run-words': run('words').subarray(0, 16),
    'run-tags': run('tags').subarray(0, 32),
  }
  writer.close()
  await environment.close()
  return samples
}

/** Samples of files that are given away. */
async function ofBands(): Promise<Record<string, Buffer>> {
  const folder = scratch('layouts-band')
  const band = new RootIndexWriter(folder)
  const id = sha256('item')
  band.add(id, { path: [sha256('transaction')], itemOffset: 96, dataOffset: 1156, itemSize: 1360 }, 1_234_567)
  await band.finish('2026-01-01T00:00:00.000Z', {})
  const name = `${id.toString('hex', 0, 1)}.cdb`
  const path = join(folder, 'lookup.parquet')
  const lookup = new ParquetFile(path, lookupColumns.tx_id, 1000)
  lookup.push([1n, 1_234_567n])
  lookup.end()
  const cdb = readFileSync(join(folder, name))
  const parquet = readFileSync(path)
  return {
    'band-record': cdb.subarray(4096, cdb.length - 32),
    'band-slots': cdb.subarray(cdb.length - 32),
    'parquet-ends': Buffer.concat([parquet.subarray(0, 4), parquet.subarray(parquet.length - 4)]),
  }
}

function ofFiles(): Record<string, Buffer> {
  const limits = { sizeBytes: 1024, pathsMax: 100, pathMaxBytes: 64 }
  const paths: ReadonlyMap<string, string> = new Map([['index.html', item.id]])
  const packed = packManifest({ paths, index: item.id, fallback: undefined }, sha256('{}'), limits)
  return {
    'packed-head': packed.subarray(0, 168),
    'packed-rest': packed.subarray(168),
    blob: Buffer.from(
      encodeBlob({
        sizeBytes: 300,
        createdMs: 1_700_000_000_000,
        touchedMs: 1_700_000_060_000,
        holder: item.id,
      }),
    ),
  }
}

/** Name of a block -> its bytes: of each line what stands before two spaces. */
function documentedRecords(): Map<string, string> {
  const text = readFileSync(join(root, 'docs/ARCHITECTURE.md'), 'utf8')
  const blocks = text.matchAll(/^```hex ([\w-]+)\n([\s\S]*?)^```/gm)
  const bytesOf = (lines: string): string =>
    lines
      .split('\n')
      .map((line) => line.split(/ {2,}/)[0]?.replaceAll(' ', '') ?? '')
      .join('')
  return new Map([...blocks].map(([, name = '', lines = '']) => [name, bytesOf(lines)]))
}

t.test('the samples of the document are what the program writes', async (t) => {
  const samples = { ...(await ofIndex()), ...(await ofBands()), ...ofFiles() }
  const documented = documentedRecords()
  for (const [name, bytes] of Object.entries(samples))
    t.equal(documented.get(name), bytes.toString('hex'), name)
  t.equal(documented.size, Object.keys(samples).length, 'no other samples')
  t.match(blobPath('blobs', sha256('blob')), /^blobs\/[0-9a-f]{2}\/[\w-]{43}$/)
})
