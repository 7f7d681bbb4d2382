import { randomBytes } from 'node:crypto'
import t from 'tap'
import { encodeBundle } from '../../../src/format/bundle.js'
import { type Id, idOfBytes } from '../../../src/format/id.js'
import { isRefusal } from '../../../src/format/refusal.js'
import { Directories, directoryItemsMax } from '../../../src/source/roots/directories.js'
import { Locating } from '../../../src/source/roots/item-location.js'
import type { RootBytes } from '../../../src/source/roots/root-bytes.js'
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

t.test('what nobody proved is read anew, and so is a long one', async (t) => {
  const items = Array.from({ length: 20 }, () => item(randomBytes(10)))
  const doubtful = rootOf(encodeBundle(items), false)
  const directories = new Directories()
  await placeOf(doubtful, (items[0] as MadeItem).id, directories)
  t.equal(directories.find(doubtful, 0), undefined)
  const one = item(randomBytes(1))
  const long = rootOf(encodeBundle(Array.from({ length: directoryItemsMax + 1 }, () => one)))
  await placeOf(long, one.id, directories)
  t.equal(directories.find(long, 0), undefined)
})

t.test('an item in front of what is malformed is found; nothing of it is remembered', async (t) => {
  const items = Array.from({ length: 5 }, () => item(randomBytes(10)))
  const bytes = Buffer.from(encodeBundle(items))
  // The size of the last item reaches far behind the bundle.
  bytes[32 + 4 * 64 + 5] = 1
  const root = rootOf(bytes)
  const directories = new Directories()
  const [first, , , , last] = items.map(({ id }) => id) as [Id, Id, Id, Id, Id]
  t.match(await placeOf(root, first, directories), { itemSize: items[0]?.bytes.length })
  t.equal(directories.find(root, 0), undefined)
  t.equal(await placeOf(root, last, directories), 'malformed')
})

t.test('memory is bounded: the ones that were used longest ago go', async (t) => {
  const directories = new Directories()
  const entry = { id: idOfBytes(randomBytes(32)), sizeBytes: 1, offset: 0, duplicate: false }
  const roots = Array.from({ length: 14 }, () => rootOf(new Uint8Array(1)))
  for (const root of roots) {
    directories.keep(root, 0, Array(directoryItemsMax).fill(entry))
    directories.find(roots[0] as RootBytes, 0)
  }
  t.ok(directories.find(roots[0] as RootBytes, 0), 'used all the time')
  t.notOk(directories.find(roots[1] as RootBytes, 0))
  t.ok(directories.find(roots[13] as RootBytes, 0))
})
