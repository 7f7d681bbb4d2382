/** Footers of some bytes that would become hundreds of megabytes of objects, or never end. */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { deserializeTCompactProtocol } from 'hyparquet/src/thrift.js'
import { ByteWriter } from 'hyparquet-writer'
import { serializeTCompactProtocol } from 'hyparquet-writer/src/thrift.js'
import t from 'tap'
import { isRefusal } from '../../src/format/refusal.js'
import { tableColumns } from '../../src/parquet/l1-layout.js'
import { openParquet } from '../../src/parquet/parquet-reader.js'
import { isThriftStruct } from '../../src/parquet/thrift-check.js'
import { fc } from '../property.js'

function varint(value: number): Buffer {
  const bytes: number[] = []
  let rest = value
  for (; rest > 127; rest = Math.floor(rest / 128)) bytes.push((rest % 128) + 128)
  return Buffer.from([...bytes, rest])
}

/** Field 1 is the version 1; field 2 a list of so many structs, whose bytes follow. */
const listOf = (count: number, ...parts: Buffer[]): Buffer =>
  Buffer.concat([Buffer.from([0x15, 0x02, 0x19, 0xfc]), varint(count), ...parts])

/** Field 3 are no rows, field 4 no row groups. */
const nothing = Buffer.from([0x16, 0x00, 0x19, 0x0c, 0x00])

t.test('a footer that would fill the memory is refused before it is read', async (t) => {
  const footers: Readonly<Record<string, Buffer>> = {
    'a million empty columns': listOf(2 ** 20, Buffer.alloc(2 ** 20), nothing),
    'a list of places that are not there': listOf(30_000_000, nothing),
    'a list of 2^31 - 1': listOf(2 ** 31 - 1, nothing),
    'a number without an end': Buffer.concat([Buffer.from([0x16]), Buffer.alloc(2 ** 20, 0x80)]),
    'lists in lists': Buffer.alloc(2 ** 16, 0x19),
    'structs in structs': Buffer.alloc(2 ** 16, 0x1c),
    'a text that is cut off': Buffer.from([0x18, 0xff, 0x7f]),
    nothing: Buffer.alloc(0),
  }
  for (const [name, footer] of Object.entries(footers)) {
    const length = Buffer.alloc(4)
    length.writeUInt32LE(footer.length)
    const path = join(t.testdir(), 'forged.parquet')
    const mark = Buffer.from('PAR1')
    writeFileSync(path, Buffer.concat([mark, footer, length, mark]))
    const opened = await openParquet(path, tableColumns.blocks)
    t.ok(isRefusal(opened), name)
    t.match(isRefusal(opened) && opened.message, /its footer is malformed, or has too many values/, name)
  }
})

const values = fc.letrec((tie) => ({
  // A writer has the fields in the order of their numbers.
  struct: fc
    .array(tie('value'), { maxLength: 4 })
    .map((list) => Object.fromEntries(list.map((value, at) => [`field_${at * 7 + 1}`, value]))),
  value: fc.oneof(
    { maxDepth: 4 },
    fc.boolean(),
    fc.integer({ min: -(2 ** 31), max: 2 ** 31 - 1 }),
    fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n }),
    fc.uint8Array({ maxLength: 20 }),
    fc.array(fc.integer({ min: 0, max: 1000 }), { minLength: 1, maxLength: 20 }),
    tie('struct'),
  ),
}))

t.test('what a writer writes is sound, as long as its values are few', async (t) => {
  await fc.assert(
    fc.property(values.struct, (struct) => {
      const writer = new ByteWriter()
      serializeTCompactProtocol(writer, struct as never)
      const bytes = Buffer.from(writer.getBytes())
      if (!isThriftStruct(bytes, 0, 10_000)) return false
      // All of it is needed, and each value counts.
      return !isThriftStruct(bytes.subarray(0, -1), 0, 10_000) && isThriftStruct(Buffer.from([0]), 0, 0)
    }),
    { numRuns: 500 },
  )
  const two = new ByteWriter()
  serializeTCompactProtocol(two, { field_1: 1, field_2: 2 })
  t.equal(isThriftStruct(Buffer.from(two.getBytes()), 0, 1), false)
  t.equal(isThriftStruct(Buffer.from(two.getBytes()), 0, 2), true)
})

t.test('the library reads whatever is called sound', async (t) => {
  let sound = 0
  const byte = fc.oneof(
    fc.constantFrom(0, 0x15, 0x16, 0x18, 0x19, 0x1c, 0x2c, 1, 2),
    fc.integer({ min: 0, max: 255 }),
  )
  await fc.assert(
    fc.property(fc.array(byte, { maxLength: 24 }), (list) => {
      const bytes = Uint8Array.from([...list, 0])
      if (!isThriftStruct(bytes, 0, 100)) return
      sound += 1
      deserializeTCompactProtocol({ view: new DataView(bytes.buffer), offset: 0 })
    }),
    { numRuns: 3000 },
  )
  t.ok(sound > 100, `${sound} were sound`)
})
