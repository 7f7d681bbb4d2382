import { randomBytes } from 'node:crypto'
import t from 'tap'
import { encodeBundle } from '../../src/format/bundle.js'
import { idOfBytes } from '../../src/format/id.js'
import { Ahead } from '../../src/ingest/ahead.js'
import { type OpeningParts, type OpeningRules, openBundle } from '../../src/ingest/bundle-opening.js'
import { HeldBytes } from '../../src/ingest/held-items.js'
import type { IndexQueue } from '../../src/ingest/index-queue.js'
import { ingestDefaults } from '../../src/ingest/ingest-parts.js'
import { judgeItems, type SignedMessage } from '../../src/ingest/item-judge.js'
import { bundleItem, item, type MadeItem } from '../source/weave.js'

const always = { kind: 'always' } as const
const rules: OpeningRules = { ...ingestDefaults.unbundle, unbundle: always, index: always }
const mebibyte = 2 ** 20

/** An item with 128 tags of so many bytes together, each another one than those of all others. */
function tagged(bytes: number): MadeItem {
  const value = (): string => randomBytes(Math.floor(bytes / 256)).toString('hex')
  const tags = Array.from({ length: 128 }, (_, at) => [`t${at}`, value()])
  return item(randomBytes(4), Object.fromEntries(tags))
}

/** Opens a bundle as the unbundler does, and measures what each part was given. */
async function opened(bundle: Uint8Array, heldMaxBytes: number) {
  const found = { readings: 0, messages: [] as number[], heldPeak: 0, buffers: 0, added: 0 }
  const held = new HeldBytes(heldMaxBytes, 1)
  const write: IndexQueue['write'] = async (compose) => {
    const request = compose()
    if (request?.kind === 'index-items') found.messages.push(request.items.length)
    return undefined
  }
  const index = { refresh: () => undefined, row: () => ({ height: 1 }) }
  async function* pieces(): AsyncGenerator<Uint8Array> {
    for (let at = 0; at < bundle.length; at += 262_144) {
      found.heldPeak = Math.max(found.heldPeak, held.bytes)
      yield bundle.subarray(at, at + 262_144)
    }
  }
  const judge = async (items: readonly SignedMessage[]) => {
    for (const { owner, signature } of items)
      found.buffers = Math.max(found.buffers, owner.buffer.byteLength, signature.buffer.byteLength)
    return judgeItems(items)
  }
  const parts: OpeningParts = {
    queue: { index, write } as unknown as IndexQueue,
    judge: { judge },
    onAdded: () => undefined,
    held,
    ahead: new Ahead(1),
    open: async () => {
      found.readings += 1
      return { sizeBytes: bundle.length, bytes: pieces() }
    },
  }
  const report = { items: 0, bad: 0, nested: 0 }
  const signal = new AbortController().signal
  const failure = await openBundle(
    parts,
    { ...rules, heldMaxBytes },
    idOfBytes(randomBytes(32)),
    report,
    signal,
  )
  return { ...found, failure, report, left: held.bytes }
}

t.test(
  'headers that wait are counted in bytes, however few they are: above the bound it is read twice',
  async (t) => {
    const inner = Array.from({ length: 30 }, () => tagged(400_000))
    const bundle = encodeBundle([bundleItem(inner)])
    const small = await opened(bundle, 2 * mebibyte)
    t.equal(small.failure, undefined)
    t.equal(small.readings, 2)
    t.equal(small.report.items, 31)
    t.ok(small.heldPeak <= 11 * mebibyte, `${small.heldPeak} bytes waited or were on their way to the index`)
    t.equal(small.left, 0, 'and none when it is over')
    const large = await opened(bundle, 96 * mebibyte)
    t.equal(large.readings, 1)
    t.equal(large.left, 0)
    const bytes = (messages: readonly number[]): number => messages.reduce((sum, one) => sum + one, 0)
    t.ok(bytes(large.messages) > 11_000_000)
    t.ok(bytes(small.messages) >= bytes(large.messages) - 1000, 'all are in the index')
  },
)

t.test('tags without bytes count, too', async (t) => {
  const one = tagged(0)
  t.ok(one.bytes.length < 1500)
  const found = await opened(encodeBundle([bundleItem(Array.from({ length: 100 }, () => one))]), mebibyte)
  t.equal(found.readings, 2, '100 items of a kB take more than a MiB of memory')
})

t.test('a message has some MiB, and carries no header to the threads that verify', async (t) => {
  const items = Array.from({ length: 24 }, () => tagged(400_000))
  for (const bundle of [encodeBundle(items), encodeBundle([bundleItem(items)])]) {
    const { messages, buffers, failure } = await opened(bundle, 256 * mebibyte)
    t.equal(failure, undefined)
    t.ok(messages.length > 1)
    t.ok(Math.max(...messages) < 9 * mebibyte, `messages of ${messages} bytes`)
    t.ok(buffers < 10_000, `${buffers} bytes go to another thread with a signature`)
  }
})

t.test('of bundles that are open at once, those give up that hold more than their share', (t) => {
  const room = new HeldBytes(100, 4)
  room.add(90)
  t.notOk(room.isOver(90), 'so long as there is room, one may hold all of it')
  room.add(20)
  t.notOk(room.isOver(20))
  t.ok(room.isOver(90))
  t.end()
})

t.test('operations ahead are bounded by the bytes that they hold', async (t) => {
  const ahead = new Ahead(48, 100)
  let end: () => void = () => undefined
  const work = new Promise<void>((resolve) => {
    end = resolve
  })
  ahead.add(work, 60)
  await ahead.room()
  ahead.add(work, 60)
  let isRoom = false
  const room = ahead.room().then(() => {
    isRoom = true
  })
  await new Promise(setImmediate)
  t.notOk(isRoom)
  end()
  await room
  t.ok(isRoom)
})
