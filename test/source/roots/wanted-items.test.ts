import { randomBytes } from 'node:crypto'
import t from 'tap'
import { encodeBundle } from '../../../src/format/bundle.js'
import { type Id, idOfBytes } from '../../../src/format/id.js'
import { isRefusal, refuse } from '../../../src/format/refusal.js'
import { Directories } from '../../../src/source/roots/directories.js'
import { type Guide, Locating } from '../../../src/source/roots/item-location.js'
import type { RootBytes } from '../../../src/source/roots/root-bytes.js'
import { WantedItems } from '../../../src/source/roots/wanted-items.js'
import { bundleItem, item, type MadeItem } from '../weave.js'

const never = new AbortController().signal
const limits = { depthMax: 10, headersMax: 100, headerMaxBytes: 1_000_000 }

/** Bytes in memory as a root; counts how many bytes of it were read. `endsAt`: no node has what lies behind. */
function rootOf(bytes: Uint8Array, endsAt = bytes.length): RootBytes & { read: number } {
  return {
    id: idOfBytes(randomBytes(32)),
    sizeBytes: bytes.length,
    proven: true,
    trusted: true,
    read: 0,
    async *stream(start: number, end: number) {
      for (let at = start; at < end; at += 1000) {
        const piece = bytes.subarray(at, Math.min(end, at + 1000))
        if (at + piece.length > endsAt) {
          yield refuse('upstream', 'upstream', 'no node has it')
          return
        }
        this.read += piece.length
        yield piece
      }
    },
    close: () => Promise.resolve(),
  }
}

const guides = (ids: readonly Id[], guide: Guide = {}): Map<Id, Guide> =>
  new Map(ids.map((id) => [id, guide]))

t.test('many items are found where each alone is found', async (t) => {
  const inner = Array.from({ length: 20 }, () => item(randomBytes(50)))
  const deep = Array.from({ length: 5 }, () => item(randomBytes(50)))
  const holder = bundleItem([...inner, bundleItem(deep)])
  const items: MadeItem[] = [...Array.from({ length: 50 }, () => item(randomBytes(30))), holder]
  const root = rootOf(encodeBundle([...items, item(randomBytes(40))]))
  const ids = [...items, ...inner, ...deep].map(({ id }) => id)
  const stranger = idOfBytes(randomBytes(32))
  for (const directories of [undefined, new Directories()]) {
    const wanted = new WantedItems(root, guides([...ids, stranger]), limits, never, directories)
    t.equal(await wanted.locate(), undefined)
    t.equal(wanted.found.size, ids.length)
    for (const id of ids) {
      const alone = await new Locating(root, id, limits, never).locate({})
      if (isRefusal(alone)) throw new Error(alone.message)
      t.same(wanted.found.get(id)?.place, alone.place)
    }
  }
})

t.test('each bundle header is read once, however many items are wanted', async (t) => {
  const items = Array.from({ length: 300 }, () => item(randomBytes(10)))
  const root = rootOf(encodeBundle(items))
  const wanted = new WantedItems(root, guides(items.map(({ id }) => id)), limits, never)
  await wanted.locate()
  t.equal(wanted.found.size, 300)
  t.ok(root.read < 2 * root.sizeBytes, `${root.read} bytes of ${root.sizeBytes}`)
})

t.test('a guide leads at once to the bundle inside, and a false one hides nothing', async (t) => {
  const inside = item(randomBytes(50))
  const holders = Array.from({ length: 60 }, () => bundleItem([item(randomBytes(20))]))
  const holder = bundleItem([inside])
  const bytes = Buffer.from(encodeBundle([...holders, holder]))
  const few = { ...limits, headersMax: 1 }
  const itemOffset = bytes.indexOf(inside.bytes)
  for (const guide of [{ itemOffset }, { path: [idOfBytes(randomBytes(32)), holder.id] }]) {
    const wanted = new WantedItems(rootOf(bytes), guides([inside.id], guide), few, never)
    await wanted.locate()
    t.equal(wanted.found.get(inside.id)?.place.rootItemOffset, itemOffset)
  }
  const lost = new WantedItems(rootOf(bytes), guides([inside.id]), few, never)
  t.equal(await lost.locate(), undefined, 'no more headers are read than the limit says')
  t.equal(lost.found.size, 0)
  const misled = new WantedItems(
    rootOf(bytes),
    guides([inside.id], { itemOffset: 3000 }),
    { ...limits, headersMax: 200 },
    never,
  )
  await misled.locate()
  t.equal(misled.found.size, 1)
})

t.test('what lies before bytes that cannot be had is found, and the rest is not called absent', async (t) => {
  const items = Array.from({ length: 40 }, () => item(randomBytes(2000)))
  const root = rootOf(encodeBundle(items), 50_000)
  const wanted = new WantedItems(root, guides(items.map(({ id }) => id)), limits, never)
  t.match(await wanted.locate(), { refused: 'upstream' })
  t.ok(wanted.found.size > 5 && wanted.found.size < 40, `${wanted.found.size} were found`)
})
