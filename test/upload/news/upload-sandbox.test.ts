/** A sandbox at the end of its items' time, above all of bundles. */
import t, { type Test } from 'tap'
import { systemClock } from '../../../src/actor/clock.js'
import { type Id, idOfBytes } from '../../../src/format/id.js'
import type { LogPlace } from '../../../src/store/segments/log-file.js'
import { Sandbox } from '../../../src/upload/news/upload-sandbox.js'
import { type AcceptedItem, isGone, openUploadTables, Uploads } from '../../../src/upload/records/uploads.js'
import { eventually } from '../../eventually.js'

const now = systemClock.now()
const day = 86_400_000

function idOf(byte: number): Id {
  return idOfBytes(Buffer.alloc(32, byte))
}

function itemOf(byte: number, receivedMs: number, isBundle: boolean): AcceptedItem {
  return {
    id: idOf(byte),
    headerSize: 10,
    owner: 'o'.repeat(43),
    receivedMs,
    deadlineHeight: 1,
    winc: '0',
    place: { file: 1, offset: byte, sizeBytes: 11 },
    ...(isBundle ? { isBundle } : {}),
  }
}

function stage(t: Test, items: readonly AcceptedItem[]) {
  const uploads = new Uploads(openUploadTables(t.testdir()))
  uploads.accept(items, () => undefined)
  const [forgotten, announced, released] = [[] as Id[], [] as Id[], [] as LogPlace[]]
  const within = (bundle: number, ...ids: number[]): void =>
    uploads.environment.write(() => {
      const inner = { parent: idOf(bundle), start: 20, sizeBytes: 11, headerSize: 10 }
      for (const id of ids) uploads.putInner(idOf(id), inner, true)
      uploads.opened(idOf(bundle))
    })
  const start = (): void => {
    const sandbox = new Sandbox({
      uploads,
      clock: systemClock,
      keepMs: day,
      everyMs: 1,
      itemLog: { release: (place) => void released.push(place) },
      announcer: {
        forget: async (ids) => {
          forgotten.push(...ids)
          return true
        },
      },
      news: { addGone: (id) => void announced.push(id), wake: () => undefined },
    })
    t.teardown(async () => {
      sandbox.close()
      await uploads.environment.close()
    })
  }
  return { uploads, within, start, forgotten, announced, released }
}

t.test('what lies in a bundle goes with it, unless it is there by other means', async (t) => {
  const old = itemOf(1, now - 2 * day, true)
  const [young, alone] = [itemOf(2, now, true), itemOf(3, now, false)]
  const { uploads, within, start, forgotten, announced, released } = stage(t, [old, young, alone])
  // 3 was uploaded by itself, too; 5 lies in the younger bundle, too.
  within(1, 3, 4, 5)
  within(2, 5, 6)
  start()
  await eventually('an item is let go of', () => released.length > 0)
  t.strictSame(forgotten, [idOf(1), idOf(4)])
  t.strictSame(announced, forgotten, 'and a gateway elsewhere hears of the same')
  t.strictSame(released, [old.place])
  t.ok(isGone(uploads.find(old.id) ?? alone))
  t.strictSame([...uploads.within(old.id)], [], 'nothing is left of it')
  t.strictSame([...uploads.within(young.id)], [idOf(5), idOf(6)])
  t.equal(uploads.isOnlyWithin(young.id, idOf(5)), true)
})

t.test('a bundle that was not looked into yet is kept until it was', async (t) => {
  const [plain, bundle] = [itemOf(1, now - 3 * day, false), itemOf(2, now - 2 * day, true)]
  const { within, start, forgotten, released } = stage(t, [plain, bundle])
  start()
  await eventually('one item is let go of', () => released.length === 1)
  t.strictSame(forgotten, [plain.id])
  within(2, 3)
  await eventually('two items are let go of', () => released.length === 2)
  t.strictSame(forgotten, [plain.id, bundle.id, idOf(3)])
})

t.test('bundles with more items than fit in one go are all forgotten', async (t) => {
  const bundles = [1, 2, 3].map((byte) => itemOf(byte, now - 2 * day + byte, true))
  const { uploads, start, forgotten, released } = stage(t, bundles)
  uploads.environment.write(() => {
    for (const { id: parent } of bundles) {
      for (let at = 0; at < 700; at += 1) {
        const id = Buffer.from(parent, 'base64url')
        id.writeUInt32BE(at + 1, 28)
        uploads.putInner(idOfBytes(id), { parent, start: 20, sizeBytes: 11, headerSize: 10 }, true)
      }
      uploads.opened(parent)
    }
  })
  start()
  await eventually('three items are let go of', () => released.length === 3)
  t.equal(new Set(forgotten).size, 3 * 701)
  t.equal(forgotten.length, 3 * 701)
})
