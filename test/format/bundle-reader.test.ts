import { deepEqual } from 'node:assert/strict'
import t from 'tap'
import { type BundleLimits, encodeBundle, encodeBundleHeader } from '../../src/format/bundle.js'
import { type BundleEvent, BundleReader } from '../../src/format/bundle-reader.js'
import { idOfBytes } from '../../src/format/id.js'
import { encodeItem, parseItemHeader } from '../../src/format/item.js'
import { tagOf } from '../../src/format/tag.js'
import { fixture, sound } from '../fixture-file.js'
import { fc } from '../property.js'

const limits: BundleLimits = { itemsMax: 100 }

function item(seed: number, payloadSize: number): Uint8Array {
  const signature = Buffer.alloc(64, seed)
  const parts = { signatureType: 2, signature, owner: Buffer.alloc(32, 3), tags: [tagOf('n', `${seed}`)] }
  return encodeItem(parts, Buffer.alloc(payloadSize, seed))
}

function bundleOf(items: readonly Uint8Array[]): Uint8Array {
  return encodeBundle(items.map((bytes) => ({ id: sound(parseItemHeader(bytes)).id, bytes })))
}

/** Feeds the pieces and tells what happened, in words that do not depend on where the pieces were cut. */
function story(pieces: Iterable<Uint8Array>, of: BundleLimits = limits): unknown[] {
  const reader = new BundleReader(of)
  const events: unknown[] = []
  let payload: Uint8Array[] = []
  const tell = (event: BundleEvent) => {
    if (event.kind === 'payload') payload.push(Buffer.from(event.bytes))
    else if (event.kind === 'end') {
      events.push(['end', event.index, Buffer.concat(payload).toString('latin1')])
      payload = []
    } else if (event.kind === 'header')
      events.push(['header', event.index, event.header.id, event.header.headerSize])
    else if (event.kind === 'entries') events.push(['entries', event.count])
    else if (event.kind === 'bad') events.push(['bad', event.index, event.refusal.message])
    else if (event.kind === 'broken') events.push(['broken', event.refusal.message])
    else events.push([event.kind])
  }
  for (const piece of pieces) for (const event of reader.push(piece)) tell(event)
  for (const event of reader.end()) tell(event)
  return events
}

function* cutAt(bytes: Uint8Array, sizes: readonly number[]): Generator<Uint8Array> {
  let at = 0
  for (let i = 0; at < bytes.length; i++) {
    const size = sizes.length === 0 ? bytes.length : (sizes[i % sizes.length] ?? 1)
    yield Uint8Array.from(bytes.subarray(at, at + size))
    at += size
  }
}

const kinds = (events: readonly unknown[]) => events.map((line) => (line as unknown[])[0])

t.test('any cut of the input gives the same events', async (t) => {
  const items = fc.array(fc.tuple(fc.nat(200), fc.nat(300)), { maxLength: 6 })
  const cuts = fc.array(fc.integer({ min: 1, max: 400 }), { minLength: 1, maxLength: 30 })
  fc.assert(
    fc.property(
      items,
      cuts,
      fc.array(fc.tuple(fc.nat(), fc.nat(255)), { maxLength: 2 }),
      (list, sizes, damage) => {
        const bytes = Buffer.from(bundleOf(list.map(([seed, size]) => item(seed, size))))
        for (const [at, value] of damage) bytes[at % bytes.length] = value
        deepEqual(story(cutAt(bytes, sizes)), story([bytes]))
      },
    ),
    { numRuns: 300 },
  )
  t.pass('held for every sample')
})

t.test('a real bundle gives its items, in single bytes as well', async (t) => {
  const bytes = fixture('bundles/two-items.bundle')
  const whole = story([bytes], { itemsMax: 10, sizeBytes: bytes.length })
  t.strictSame(kinds(whole), ['entries', 'header', 'end', 'header', 'end', 'done'])
  t.strictSame(story(cutAt(bytes, [1])), whole)
})

t.test('payload pieces are views: nothing is gathered', async (t) => {
  const bytes = bundleOf([item(1, 100_000)])
  const reader = new BundleReader(limits)
  const sizes: number[] = []
  for (const piece of cutAt(bytes, [1000])) {
    for (const event of reader.push(piece)) {
      if (event.kind !== 'payload') continue
      t.equal(event.bytes.buffer, piece.buffer)
      sizes.push(event.bytes.length)
    }
  }
  t.equal(Math.max(...sizes), 1000)
})

t.test('a bad item is named and skipped, the good ones go on', async (t) => {
  const good = [item(1, 10), item(2, 20), item(3, 0)]
  const foreign = Buffer.from(item(9, 30))
  const bytes = Buffer.from(bundleOf([...good.slice(0, 1), item(4, 30), ...good.slice(1)]))
  const at = 32 + 4 * 64 + item(1, 10).length
  bytes.set(foreign, at)
  const events = story(cutAt(bytes, [11]))
  t.strictSame(kinds(events), ['entries', 'header', 'end', 'bad', 'header', 'end', 'header', 'end', 'done'])
  t.match(events[3], ['bad', 1, /its entry says/])
  bytes[at] = 77
  t.match(story([bytes])[3], ['bad', 1, /signature type 77/])
})

t.test('items that are too short for a header, or have no bytes, are bad', async (t) => {
  const ids = [1, 2, 3].map((n) => idOfBytes(Buffer.alloc(32, n)))
  const sizes = [0, 5, 0]
  const header = encodeBundleHeader(ids.map((id, i) => ({ id, sizeBytes: sizes[i] ?? 0 })))
  const events = story([Buffer.concat([header, Buffer.from([2, 0, 0, 0, 0])])])
  t.strictSame(kinds(events), ['entries', 'bad', 'bad', 'bad', 'done'])
  t.match(events[1], ['bad', 0, /no bytes/])
  t.match(events[2], ['bad', 1, /ends in its header/])
})

t.test('what ends too early or too late is broken, after the items that are whole', async (t) => {
  const bytes = bundleOf([item(1, 10), item(2, 20)])
  t.match(story([bytes.subarray(0, bytes.length - 1)]).at(-1), ['broken', /cut off in item 1/])
  t.match(story([bytes.subarray(0, 40)]), [['broken', /cut off in the header/]])
  t.match(story([Buffer.concat([bytes, Buffer.alloc(1)])]).at(-1), ['broken', /behind the last item/])
  t.match(story([]), [['broken', /cut off in the header/]])
  t.strictSame(kinds(story([new Uint8Array(32)])), ['entries', 'done'])
  const over = story([bytes], { itemsMax: 2, sizeBytes: bytes.length - 1 })
  t.match(over, [['broken', /behind the bundle/]])
})

t.test('a broken reader stays broken and silent', async (t) => {
  const reader = new BundleReader({ itemsMax: 1 })
  t.match([...reader.push(Buffer.alloc(32, 255))], [{ kind: 'broken' }])
  t.strictSame([...reader.push(Buffer.alloc(100))], [])
  t.strictSame([...reader.end()], [])
})

t.test('a piece whose events were not read to their end is a bug, and said so', async (t) => {
  const reader = new BundleReader(limits)
  for (const event of reader.push(bundleOf([item(1, 1)]))) {
    t.equal(event.kind, 'entries')
    break
  }
  t.throws(() => [...reader.push(Buffer.alloc(1))], /not read to their end/)
})
