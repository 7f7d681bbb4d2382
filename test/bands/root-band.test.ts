import { cpSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { mappedNow } from '../../native/mapped/mapped.js'
import { systemClock } from '../../src/actor/clock.js'
import { silentLog } from '../../src/actor/log.js'
import { IndexFolders, indexesAt, LocalBands } from '../../src/bands/local-bands.js'
import { rootTxBands } from '../../src/bands/root-band.js'
import { RootBuilder } from '../../src/bands/root-builder.js'
import { parseRootBandId } from '../../src/bands/root-plan.js'
import type { ItemInput, TransactionInput } from '../../src/catalog/index-protocol.js'
import { idOfBytes } from '../../src/format/id.js'
import { isRefusal } from '../../src/format/refusal.js'
import { blockMessage, itemsMessage, openHouse } from '../catalog/index-model.js'
import { eventually } from '../eventually.js'
import { house, idFor, placeFor, shelveBand, span } from './root-band-rig.js'

t.test('the same records give the same files, whatever order they came in', async (t) => {
  const { bandStore } = await house()
  const one = await shelveBand(bandStore, 'one', span(0, 400))
  const other = await shelveBand(bandStore, 'other', span(0, 400).reverse())
  for (const name of readdirSync(one)) {
    t.ok(readFileSync(join(one, name)).equals(readFileSync(join(other, name))), name)
  }
  t.equal(await rootTxBands.check(one), undefined)
  const account = await rootTxBands.describe(one)
  if (isRefusal(account)) throw new Error(account.message)
  t.equal(account.records, 400)
  t.strictSame(account.files, readdirSync(one).sort())
})

t.test('a band with anything wrong in it is refused', async (t) => {
  const { bandStore, root } = await house()
  const good = await shelveBand(bandStore, 'good', span(0, 300))
  const bad = join(root, 'bad')
  const refused = async (why: string, act: () => void): Promise<void> => {
    rmSync(bad, { recursive: true, force: true })
    cpSync(good, bad, { recursive: true })
    act()
    const fault = await rootTxBands.check(bad)
    t.ok(isRefusal(fault), `${why}: ${fault?.message}`)
  }
  const manifest = (change: (fields: Record<string, unknown>) => void): void => {
    const path = join(bad, 'manifest.json')
    const fields = JSON.parse(readFileSync(path, 'utf8')) as Record<string, unknown>
    change(fields)
    writeFileSync(path, JSON.stringify(fields))
  }
  const [some = ''] = readdirSync(good)
  await refused('a file more', () => writeFileSync(join(bad, 'more'), ''))
  await refused('a file less', () => rmSync(join(bad, some)))
  await refused('no manifest', () => rmSync(join(bad, 'manifest.json')))
  await refused('another total', () => manifest((fields) => Object.assign(fields, { totalRecords: 1 })))
  await refused('another version', () => manifest((fields) => Object.assign(fields, { version: 2 })))
  await refused('an address of the publisher', () => {
    manifest(({ partitions }) => {
      Object.assign((partitions as object[])[0] ?? {}, {
        location: { type: 'http', url: 'http://127.0.0.1/' },
      })
    })
  })
  await refused('a path out of the folder', () => {
    manifest(({ partitions }) => {
      Object.assign((partitions as object[])[0] ?? {}, { location: { type: 'file', filename: '../00.cdb' } })
    })
  })
  await refused('one bit of a value', () => {
    const bytes = readFileSync(join(bad, some))
    bytes[4096 + 16 + 32 + 10]! ^= 1
    writeFileSync(join(bad, some), bytes)
  })
  await refused('nested beyond measure', () => writeFileSync(join(bad, 'manifest.json'), '['.repeat(100_000)))
})

t.test(
  'what the index holds is in its bands, each item where it lies; a second build has nothing to do',
  async (t) => {
    const { index, apply, close } = openHouse()
    t.teardown(close)
    const common = {
      owner: Buffer.alloc(32, 1),
      ownerAddress: idFor('owner'),
      target: Buffer.alloc(0),
      anchor: Buffer.alloc(0),
      tags: [],
    }
    const blocks = 60
    const items: { input: ItemInput; root: Buffer; path: Buffer[] }[] = []
    for (let height = 10; height < 10 + blocks; height += 1) {
      const root = idFor(`tx ${height}`)
      const transaction: TransactionInput = {
        ...common,
        id: idOfBytes(root),
        size: 100_000,
        index: 0,
        format: 2,
        quantity: 0n,
        reward: 0n,
        dataRoot: Buffer.alloc(32),
        weaveEnd: 0,
      }
      const header = (number: number): Pick<ItemInput, 'headerSize'> => ({ headerSize: 200 + number })
      const nest = idFor(`nest ${height}`)
      const inputs: [ItemInput, Buffer[]][] = [
        [
          {
            ...common,
            ...header(1),
            id: idOfBytes(nest),
            size: 5000,
            parentId: idOfBytes(root),
            rootItemOffset: 96,
            parentItemOffset: 96,
          },
          [root],
        ],
        [
          {
            ...common,
            ...header(2),
            id: idOfBytes(idFor(`deep ${height}`)),
            size: 300,
            parentId: idOfBytes(nest),
            rootItemOffset: 500,
            parentItemOffset: 100,
          },
          [root, nest],
        ],
      ]
      await apply([
        blockMessage(
          {
            height,
            id: Buffer.alloc(48, height).toString('base64url'),
            previous: Buffer.alloc(48, height - 1).toString('base64url'),
            timestamp: height,
            weaveSize: '0',
            transactionCount: 1,
          },
          [transaction],
        ),
        itemsMessage(
          transaction.id,
          inputs.map(([input]) => input),
        ),
      ])
      for (const [input, path] of inputs) items.push({ input, root, path })
    }
    const { bandStore } = await house()
    const options = {
      publisher: 'somebody',
      historyBlocks: 20,
      recentEveryMs: 3_600_000,
      deltaEveryMs: 3_600_000,
      forkDepth: 5,
    }
    const builder = new RootBuilder(bandStore, index, systemClock, silentLog, options)
    const built = await builder.build(false)
    t.strictSame(
      built.map((id) => parseRootBandId(id)?.range),
      [
        [10, 19],
        [20, 39],
        [40, 59],
        [60, 64],
        [10, null],
      ],
    )
    t.strictSame(await builder.build(false), [])
    const bands = new LocalBands([join(bandStore.root, 'own', 'root-tx-index')], systemClock, 1000)
    t.teardown(() => bands.close())
    for (const { input, path } of items) {
      const { rootItemOffset, headerSize, size, id } = input
      t.strictSame(bands.find(Buffer.from(id, 'base64url')), {
        path,
        itemOffset: rootItemOffset,
        dataOffset: rootItemOffset + headerSize,
        itemSize: headerSize + size,
      })
    }
    t.equal(bands.find(idFor('nobody')), undefined)
    for (const { folder } of await bandStore.list('own')) t.equal(await rootTxBands.check(folder), undefined)
    t.strictSame(await builder.build(true), [], 'the same records are no new band, whoever asks')
  },
)

t.test('a look at many bands reads some of them, and none twice', async (t) => {
  const { root, bandStore } = await house()
  const one = await shelveBand(bandStore, 'one', [1])
  const place = join(root, 'many')
  for (let at = 0; at < 40; at += 1) cpSync(one, join(place, `band-${at}`), { recursive: true })
  const folders = new IndexFolders()
  const look = (): number => {
    folders.begin()
    return indexesAt(place, folders).length
  }
  const found = [look(), look(), look(), look()]
  t.strictSame(found, [16, 32, 40, 40])
  t.equal(folders.isBehind, false)
  const path = join(place, 'band-7', 'manifest.json')
  writeFileSync(path, '{}')
  t.equal(look(), 39)
  writeFileSync(join(place, 'band-8', 'manifest.json'), `{"x":"${'a'.repeat(300_000)}"}`)
  t.equal(look(), 38, 'one that is too large is not read')
  rmSync(join(place, 'band-9'), { recursive: true })
  t.equal(look(), 37)
})

t.test('a band whose manifest holds many things is refused', async (t) => {
  const { bandStore } = await house()
  const one = await shelveBand(bandStore, 'one', [1])
  const path = join(one, 'manifest.json')
  const x = Array.from({ length: 100_000 }, () => [])
  const manifest = JSON.parse(readFileSync(path, 'utf8')) as object
  writeFileSync(path, JSON.stringify({ ...manifest, metadata: { x } }))
  t.match(await rootTxBands.check(one), { refused: 'malformed', message: /256 KiB/ })
})

t.test('the newest band that has an item is used', async (t) => {
  const { bandStore } = await house()
  await shelveBand(bandStore, 'old', [1, 2, 3], { heightRange: [0, 10] })
  const draft = await bandStore.draft()
  const { RootIndexWriter } = await import('../../src/bands/root-writer.js')
  const writer = new RootIndexWriter(draft)
  writer.add(idFor(2), placeFor(99), 5)
  writer.add(idFor(3), { path: [idFor('r')], itemOffset: 5, dataOffset: 5 }, 9)
  await writer.finish('now', { heightRange: [5, null] })
  await bandStore.place(draft, 'installed', 'root-tx-index', 'new')
  const paths = ['own', 'installed'].map((name) => join(bandStore.root, name, 'root-tx-index'))
  const bands = new LocalBands(paths, systemClock, undefined)
  t.teardown(() => bands.close())
  t.equal(bands.find(idFor(1))?.itemOffset, 1000)
  t.equal(bands.find(idFor(2))?.itemOffset, 99_000)
  t.equal(bands.find(idFor(3))?.itemOffset, 3000, 'offsets that cannot be were left out')
})

/** Memory goes when the loop has turned after the last view. */
async function untilNothingMapped(): Promise<void> {
  await eventually('no file is mapped any more', () => mappedNow().count === 0)
}

t.test('a file that is replaced is found anew, and one that went away is let go', async (t) => {
  const { root, bandStore } = await house()
  const folder = await shelveBand(bandStore, 'band', [1])
  const newer = await shelveBand(bandStore, 'newer', [1, 2])
  for (const mapped of [false, true]) {
    const place = join(root, `place-${mapped}`)
    cpSync(folder, join(place, 'band'), { recursive: true })
    // Every look-up looks at the folders again.
    const bands = new LocalBands([place], systemClock, 0, mapped)
    t.equal(bands.find(idFor(1))?.itemOffset, 1000)
    t.equal(bands.find(idFor(1))?.itemOffset, 1000)
    t.equal(bands.find(idFor(2)), undefined)
    renameSync(join(place, 'band'), join(place, '.away'))
    t.equal(bands.find(idFor(1)), undefined)
    await untilNothingMapped()
    t.strictSame(mappedNow(), { count: 0, bytes: 0 })
    cpSync(newer, join(place, 'band'), { recursive: true })
    t.equal(bands.find(idFor(2))?.itemOffset, 2000)
    bands.close()
    await untilNothingMapped()
    t.strictSame(mappedNow(), { count: 0, bytes: 0 })
    t.equal(bands.broken, 0)
  }
})

t.test('a band is never overwritten', async (t) => {
  const { bandStore } = await house()
  const folder = await shelveBand(bandStore, 'band', [1])
  const before = readFileSync(join(folder, 'manifest.json'), 'utf8')
  const again = await bandStore.draft()
  writeFileSync(join(again, 'manifest.json'), 'other')
  t.equal(await bandStore.place(again, 'own', 'root-tx-index', 'band'), false)
  t.equal(readFileSync(join(folder, 'manifest.json'), 'utf8'), before)
  t.strictSame(readdirSync(join(bandStore.root, 'tmp')), [])
  await t.rejects(bandStore.place(await bandStore.draft(), 'own', 'root-tx-index', '../x'), RangeError)
})
