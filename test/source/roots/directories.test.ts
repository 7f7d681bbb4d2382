import { randomBytes } from 'node:crypto'
import t from 'tap'
import { encodeBundle, encodeBundleHeader, parseBundleHeader } from '../../../src/format/bundle.js'
import { type Id, idOfBytes } from '../../../src/format/id.js'
import { isRefusal } from '../../../src/format/refusal.js'
import { BundleDirectory } from '../../../src/source/roots/bundle-directory.js'
import { Directories } from '../../../src/source/roots/directories.js'
import { Locating } from '../../../src/source/roots/item-location.js'
import type { RootBytes } from '../../../src/source/roots/root-bytes.js'
import { fc } from '../../property.js'
import { bundleItem, item, type MadeItem } from '../weave.js'

const never = new AbortController().signal
const limits = { depthMax: 10, headersMax: 100, headerMaxBytes: 1_000_000 }

/** Bytes in memory as a root; counts how many bytes of it were read. */
function rootOf(bytes: Uint8Array, proven = true): RootBytes & { read: number } {
  return {
    id: idOfBytes(randomBytes(32)),
    sizeBytes: bytes.length,
    proven,
    trusted: true,
    read: 0,
    async *stream(start: number, end: number) {
      for (let at = start; at < end; at += 1000) {
        const piece = bytes.subarray(at, Math.min(end, at + 1000))
        this.read += piece.length
        yield piece
      }
    },
    close: () => Promise.resolve(),
  }
}

async function placeOf(root: RootBytes, id: Id, directories?: Directories): Promise<unknown> {
  const located = await new Locating(root, id, limits, never, directories).locate({})
  return isRefusal(located) ? located.refused : located.place
}

t.test('items are found alike with and without what was read before', async (t) => {
  const inner = Array.from({ length: 20 }, () => item(randomBytes(50)))
  const items: MadeItem[] = [
    ...Array.from({ length: 50 }, () => item(randomBytes(30))),
    bundleItem(inner),
    item(randomBytes(40)),
  ]
  const root = rootOf(encodeBundle([...items, items[3] as MadeItem]))
  const directories = new Directories()
  const ids = [...items, ...inner].map(({ id }) => id)
  for (const id of [...ids, idOfBytes(randomBytes(32)), ...ids])
    t.same(await placeOf(root, id, directories), await placeOf(root, id))
})

t.test('a directory is read once', async (t) => {
  const items = Array.from({ length: 300 }, () => item(randomBytes(10)))
  const root = rootOf(encodeBundle(items))
  const directories = new Directories()
  await placeOf(root, (items[0] as MadeItem).id, directories)
  const before = root.read
  for (const { id } of items.slice(-5)) await placeOf(root, id, directories)
  t.ok(root.read - before < 300 * 64, 'only the headers of items')
})

t.test('what nobody proved is read anew, unless it lies on disk under its digest', async (t) => {
  const items = Array.from({ length: 300 }, () => item(randomBytes(10)))
  const bytes = encodeBundle(items)
  const readsOf = async (root: RootBytes & { read: number }): Promise<number> => {
    const directories = new Directories()
    await placeOf(root, (items[0] as MadeItem).id, directories)
    const before = root.read
    await placeOf(root, (items[1] as MadeItem).id, directories)
    return root.read - before
  }
  t.ok((await readsOf(rootOf(bytes, false))) >= 300 * 64)
  t.ok((await readsOf({ ...rootOf(bytes, false), digest: randomBytes(32) })) < 300 * 64)
})

t.test('an item in front of what is malformed is found', async (t) => {
  const items = Array.from({ length: 5 }, () => item(randomBytes(10)))
  const bytes = Buffer.from(encodeBundle(items))
  // The size of the last item reaches far behind the bundle.
  bytes[32 + 4 * 64 + 5] = 1
  const root = rootOf(bytes)
  const directories = new Directories()
  const [first, , , , last] = items.map(({ id }) => id) as [Id, Id, Id, Id, Id]
  for (const _ of [1, 2]) {
    t.match(await placeOf(root, first, directories), { itemSize: items[0]?.bytes.length })
    t.equal(await placeOf(root, last, directories), 'malformed')
  }
})

/** A bundle whose header lists `count` ids that nobody signed, and one item at its end. */
function wide(count: number): { readonly root: RootBytes & { read: number }; readonly last: MadeItem } {
  const last = item(randomBytes(10))
  const header = Buffer.alloc(32 + (count + 1) * 64)
  header.writeUInt32LE(count + 1, 0)
  randomBytes(count * 64).copy(header, 32)
  for (let at = 0; at < count; at += 1) header.fill(0, 32 + at * 64, 64 + at * 64)
  header.writeUInt32LE(last.bytes.length, 32 + count * 64)
  header.write(last.id, 64 + count * 64, 'base64url')
  return { root: rootOf(Buffer.concat([header, last.bytes])), last }
}

t.test('a search costs the same in a bundle of many entries, whatever is searched', async (t) => {
  const { root, last } = wide(100_000)
  const many = { ...limits, headersMax: 3, headerMaxBytes: 10_000_000 }
  const directories = new Directories()
  const search = (id: Id, guide = {}) => new Locating(root, id, many, never, directories).locate(guide)
  t.notOk(isRefusal(await search(last.id)))
  const before = root.read
  for (let count = 0; count < 20; count += 1) {
    t.match(await search(idOfBytes(randomBytes(32))), { refused: 'unknown' })
    const guide = { itemOffset: root.sizeBytes - 1 }
    t.match(await search(last.id, guide), { place: { rootItemOffset: root.sizeBytes - last.bytes.length } })
  }
  t.ok(root.read - before < 40 * 20_000, `${root.read - before} bytes`)
})

t.test('which items are bundles is found out once', async (t) => {
  const inner = Array.from({ length: 3 }, () => item(randomBytes(50)))
  const items = [...Array.from({ length: 60 }, () => item(randomBytes(10))), bundleItem(inner)]
  const root = rootOf(encodeBundle(items))
  const directories = new Directories()
  const unknown = (): Promise<unknown> => placeOf(root, idOfBytes(randomBytes(32)), directories)
  t.equal(await unknown(), 'unknown')
  const before = root.read
  t.equal(await unknown(), 'unknown')
  t.ok(root.read - before < 3000, `${root.read - before} bytes`)
  t.match(await placeOf(root, (inner[2] as MadeItem).id, directories), { parentId: items[60]?.id })
})

t.test('many who search one bundle have it read once, and leave turns of the loop to others', async (t) => {
  const { root } = wide(100_000)
  const many = { ...limits, headersMax: 3, headerMaxBytes: 10_000_000 }
  const directories = new Directories()
  let turns = 0
  let isOver = false
  const turn = (): void => {
    turns += 1
    if (!isOver) setImmediate(turn)
  }
  turn()
  await Promise.all(
    Array.from({ length: 200 }, () =>
      new Locating(root, idOfBytes(randomBytes(32)), many, never, directories, '198.51.100.1').locate({}),
    ),
  )
  isOver = true
  t.ok(root.read < 3 * 100_000 * 64, `${root.read} bytes`)
  t.ok(turns > 100, `${turns} turns`)
})

t.test('memory is bounded: the ones that were used longest ago go', async (t) => {
  const directories = new Directories(400_000)
  const many = { ...limits, headersMax: 3, headerMaxBytes: 100_000_000 }
  const bundles = [wide(10_000), wide(10_000), wide(10_000)]
  const readOf = async ({ root, last }: ReturnType<typeof wide>): Promise<number> => {
    const before = root.read
    await new Locating(root, last.id, many, never, directories).locate({})
    return root.read - before
  }
  const [first, second, third] = bundles as [(typeof bundles)[0], (typeof bundles)[0], (typeof bundles)[0]]
  for (const one of [first, second, first, third]) await readOf(one)
  t.ok((await readOf(third)) < 10_000 * 64, 'used last')
  t.ok((await readOf(second)) > 10_000 * 64, 'used longest ago')
})

t.test('entries with ids of any kind are found as the header lists them', async (t) => {
  const idOf = fc.oneof(
    fc.uint8Array({ minLength: 32, maxLength: 32 }),
    fc.integer({ min: 0, max: 3 }).map((last) => Uint8Array.of(...new Uint8Array(31), last)),
  )
  const entries = fc.array(fc.record({ id: idOf, sizeBytes: fc.integer({ min: 0, max: 90 }) }), {
    maxLength: 300,
  })
  await fc.assert(
    fc.asyncProperty(entries, fc.integer({ min: 1, max: 100 }), async (listed, pieceBytes) => {
      const items = listed.map(({ id, sizeBytes }) => ({ id: idOfBytes(id), sizeBytes }))
      const header = encodeBundleHeader(items)
      const sizeBytes = items.reduce((sum, one) => sum + one.sizeBytes, header.length)
      const directory = new BundleDirectory(items.length, sizeBytes)
      for (let at = 32; at < header.length; at += pieceBytes)
        directory.add(header.subarray(at, Math.min(header.length, at + pieceBytes)))
      const read = async (start: number, end: number) => header.subarray(start, end)
      const parsed = parseBundleHeader(header)
      if (parsed === 'more' || isRefusal(parsed)) return t.fail('no header')
      const plain = parsed.entries
      t.strictSame(await directory.first(1000, read), plain)
      for (const { id } of plain)
        t.strictSame(
          await directory.find(id, read),
          plain.find((entry) => entry.id === id),
        )
      for (const { offset, sizeBytes: size } of plain.filter((entry) => entry.sizeBytes > 0))
        for (const at of [offset, offset + size - 1])
          t.strictSame(
            await directory.covering(at, read),
            plain.find((entry) => entry.offset <= at && at < entry.offset + entry.sizeBytes),
          )
      t.equal(await directory.covering(sizeBytes, read), undefined)
      return t.passing()
    }),
    { numRuns: 30 },
  )
})
