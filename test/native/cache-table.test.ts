import { generateKeyPairSync } from 'node:crypto'
import t from 'tap'
import { borrowedKeyOf } from '../../native/ed25519/ed25519.js'
import { answerNumbers, conditionsMax, count, number } from '../../native/server/cache-table.js'
import { openWire, servedBy } from '../../native/server/server.js'
import { BucketTable } from '../../src/admission/bucket-table.js'
import { fc } from '../property.js'

/** The table of cached answers is given whatever JavaScript can hand it: each is an exception, the next right call works. */

const skip = servedBy === 'fallback' && 'the fallback has no response cache'
const options = {
  host: '127.0.0.1',
  port: 0,
  headMs: 1000,
  idleMs: 1000,
  stallMs: 1000,
  lingerMs: 100,
  connectionsMax: 8,
}
const text = ['host', '/path', '"tag"', 'HTTP/1.1 200 OK\r\nX-Request-Id: ', '\r\nA: b', 'name']

function opened() {
  const wire = openWire(options, () => undefined)
  const table = wire.responseCache?.(20_000, ['accept=*/*', 'user-agent'])
  if (table === undefined) throw new Error('it repeats nothing')
  const cells = new Int32Array(new SharedArrayBuffer(400))
  const meters = new Float64Array(new SharedArrayBuffer(800))
  const named = table.cells(cells)
  const tally = table.tally(meters, new Float64Array(count.buckets + 1), Float64Array.of(0.5, 1))
  const memory = new Uint8Array(100_000)
  const pages = new Int32Array(new SharedArrayBuffer(100))
  const ticks = new Int32Array(new SharedArrayBuffer(8))
  const region = table.region(memory, pages, ticks, 4096)
  const right = (): Float64Array => {
    const numbers = new Float64Array(answerNumbers)
    numbers.set([
      0,
      0,
      0,
      ...text.map((one) => one.length),
      region,
      90_000,
      10_000,
      1,
      0,
      2 ** 40,
      named,
      99,
      31,
      tally,
      2,
      -(2 ** 31),
      2 ** 31 - 1,
      1,
    ])
    numbers.set([named, 99, -(2 ** 31), 2 ** 31 - 1], number.first)
    return numbers
  }
  const textBytes = wire.outbox.write(text.join(''), 'latin1')
  return { wire, table, cells, meters, memory, pages, ticks, region, right, textBytes }
}

t.test('numbers that describe no answer are refused', { skip }, async (t) => {
  const { wire, table, right, textBytes } = opened()
  table.put(right(), textBytes)
  t.equal(table.usage()[0], 1)
  const beyond: Readonly<Record<number, readonly number[]>> = {
    [number.variant]: [3],
    [number.isHead]: [2],
    [number.hostBytes]: [5, 40_000],
    [number.region]: [1, -1],
    [number.offset]: [90_001],
    [number.sizeBytes]: [0, 10_001, 100_001],
    [number.notedCells]: [1],
    [number.notedAt]: [100],
    [number.notedBit]: [32],
    [number.tally]: [1],
    [number.price]: [3],
    [number.resourceOne]: [2 ** 31],
    [number.resourceTwo]: [-(2 ** 31) - 1],
    [number.conditions]: [conditionsMax + 1],
    [number.first]: [1, -1],
    [number.first + 1]: [100, -1],
    [number.first + 2]: [-(2 ** 31) - 1, 2 ** 31],
    [number.first + 3]: [2 ** 31],
  }
  for (let at = 0; at < number.first + 4; at += 1) {
    for (const wrong of [0.5, Number.NaN, Number.POSITIVE_INFINITY, 2 ** 53, 1e300, ...(beyond[at] ?? [])]) {
      const numbers = right()
      numbers[at] = wrong
      t.throws(() => table.put(numbers, textBytes), RangeError, `${at}: ${wrong}`)
    }
  }
  for (const bytes of [0, -1, textBytes + 1, 2 ** 20, Number.NaN]) t.throws(() => table.put(right(), bytes))
  t.throws(() => table.put(new Float64Array(3), textBytes))
  t.throws(() => table.put([] as unknown as Float64Array, textBytes))
  t.equal(table.usage()[0], 1)
  wire.destroy()
})

t.test('only a borrowed key signs, and only shared memory makes a group', { skip }, async (t) => {
  const { wire, table, cells, meters, memory, pages, ticks } = opened()
  const key = borrowedKeyOf(generateKeyPairSync('ed25519').privateKey)
  if (key === undefined) throw new Error('no addon')
  for (const wrong of [{}, undefined, 1, new Uint8Array(96)])
    t.throws(() => table.signs(wrong as never, 1), TypeError)
  for (const wrong of [-1, 0.5, 1e9, Number.NaN]) t.throws(() => table.signs(key, wrong), RangeError)
  table.signs(key, 60)
  t.throws(() => table.share(new Int32Array(4)))
  t.throws(() => table.share(new Int32Array(new SharedArrayBuffer(0))), RangeError)
  table.share(cells)
  t.throws(() => table.share(cells), RangeError, 'only once')
  const places = new Float64Array(count.buckets + 1)
  for (const wrong of [-1, 0.5, 2 ** 32]) {
    t.throws(() => table.tally(meters, places, Float64Array.of(1), wrong), RangeError)
    if (wrong !== 2 ** 32) t.throws(() => table.region(memory, pages, ticks, 4096, wrong), RangeError)
  }
  wire.destroy()
})

t.test('only shared memory is watched', { skip }, async (t) => {
  const { wire, table, meters, memory, pages, ticks, region, right, textBytes } = opened()
  const places = new Float64Array(count.buckets + 1)
  t.throws(() => table.cells(new Int32Array(8)))
  t.throws(() => table.cells(new Int32Array(new SharedArrayBuffer(0))))
  t.throws(() => table.cells(meters as unknown as Int32Array))
  t.throws(() => table.tally(new Float64Array(100), places, new Float64Array(1)))
  t.throws(() => table.tally(meters, places.fill(100), new Float64Array(1)))
  t.throws(() => table.tally(meters, new Float64Array(2), new Float64Array(1)))
  t.throws(() => table.tally(meters, new Float64Array(count.buckets + 1), new Float64Array(99)))
  t.throws(() => table.region(memory, new Int32Array(25), ticks, 4096))
  t.throws(() => table.region(memory, pages, new Int32Array(2), 4096))
  t.throws(() => table.region(memory, pages, ticks.subarray(1), 4096), 'too few numbers')
  t.throws(() => table.region(memory, pages, ticks, 3900), 'too few cells')
  t.throws(() => table.region(new Uint8Array(0), pages, ticks, 4096))
  for (const wrong of [-1, 1, 0.5, Number.NaN]) t.throws(() => table.close(wrong))
  t.throws(() => wire.responseCache?.(1, []), 'only once')
  t.equal(table.close(region), true, 'nothing is being sent out of it')
  t.throws(() => table.put(right(), textBytes), 'nothing out of memory that has gone')
  t.equal(table.region(memory, pages, ticks, 4096), region, 'its number is given again')
  wire.destroy()
  t.same(table.samples(), [])
  t.same(table.usage(), [0, 0, 0])
  t.equal(table.close(0), true, 'after the end')
})

t.test('limits are tables of buckets as they are, or nothing', { skip }, async (t) => {
  const { wire, table, meters } = opened()
  const options = { slots: 1024, capacity: 2 ** 40, refillPerSecond: 2 ** 20 }
  const words = new Int32Array(new SharedArrayBuffer(BucketTable.bytes(options)))
  const right = [32, 32, 64, -(2 ** 31), 2 ** 31 - 1]
  const ranges = { trusted: Int32Array.of(0, 0, 0xffff, 0, 96), exempt: new Int32Array(0) }
  const places = Float64Array.of(0, 1, 99)
  const give = (
    rules = right,
    more: {
      ip?: Int32Array
      resource?: Int32Array
      at?: Float64Array
      known?: typeof ranges
      cells?: Float64Array
    } = {},
  ): void => {
    const { ip = words, resource = words, at = places, known = ranges, cells = meters } = more
    table.limits(ip, resource, Float64Array.from(rules), known, cells, at)
  }
  for (let at = 0; at < right.length; at += 1) {
    for (const wrong of [0.5, Number.NaN, Number.POSITIVE_INFINITY, 2 ** 53, -(2 ** 40)])
      t.throws(() => give(right.map((one, place) => (place === at ? wrong : one))), RangeError)
  }
  for (const blocks of [0, 16, 33, 64, 2 ** 26]) t.throws(() => give([blocks, ...right.slice(1)]), RangeError)
  t.throws(() => give(right.slice(1)))
  t.throws(() => give(right, { ip: words.subarray(1) }))
  t.throws(() => give(right, { resource: new Int32Array(words.length) }))
  t.throws(() => give(right, { at: Float64Array.of(0, 1) }))
  t.throws(() => give(right, { at: Float64Array.of(0, 1, 100) }))
  t.throws(() => give(right, { cells: new Float64Array(100) }))
  t.throws(() => give(right, { known: { ...ranges, exempt: Int32Array.of(0, 0, 0, 0) } }))
  t.throws(() => give(right, { known: { ...ranges, trusted: Int32Array.of(0, 0, 0, 0, 129) } }))
  t.throws(() => table.clients(ranges), 'there are no limits yet')
  give()
  t.throws(() => give(), 'only once')
  table.clients(ranges)
  for (const wrong of [Int32Array.of(0, 0, 0, 0), Int32Array.of(0, 0, 0, 0, 129)]) {
    t.throws(() => table.clients({ ...ranges, trusted: wrong }), RangeError)
    t.throws(() => table.clients({ ...ranges, exempt: wrong }), RangeError)
  }
  wire.destroy()
})

t.test('the table stays within its bytes, whatever is put', { skip }, async (t) => {
  const { wire, table, right } = opened()
  fc.assert(
    fc.property(
      fc.array(fc.tuple(fc.integer({ min: 0, max: 60 }), fc.integer({ min: 0, max: 3000 }))),
      (puts) => {
        for (const [which, size] of puts) {
          const now = ['host', `/${which}`, '', 'a'.repeat(size), 'b', '']
          const numbers = right()
          now.forEach((one, at) => {
            numbers[number.hostBytes + at] = one.length
          })
          table.put(numbers, wire.outbox.write(now.join(''), 'latin1'))
          const [answers, bytes] = table.usage()
          if (bytes > 20_000 || answers > 61) throw new Error(`${answers} answers take ${bytes} bytes`)
        }
      },
    ),
  )
  t.ok(table.usage()[0] > 0)
  wire.destroy()
})
