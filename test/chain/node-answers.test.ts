import t from 'tap'
import {
  readAnchor,
  readBlock,
  readChunk,
  readInfo,
  readOffset,
  readStatus,
} from '../../src/chain/node-answers.js'
import { readTransaction } from '../../src/chain/read-transaction.js'
import { idOfBytes } from '../../src/format/id.js'
import { fc } from '../property.js'

const readers = [readInfo, readBlock, readStatus, readOffset, readChunk, readAnchor]
const names = ['height', 'indep_hash', 'txs', 'size', 'offset', 'chunk', 'data_path', 'weave_size', 'current']

t.test('no answer makes a reader throw', async (t) => {
  const id = idOfBytes(Buffer.alloc(32))
  const likely = fc
    .dictionary(fc.constantFrom(...names), fc.jsonValue())
    .map((value) => JSON.stringify(value))
  const any = fc.oneof(fc.string(), fc.json(), likely)
  fc.assert(
    fc.property(any, (text) => {
      for (const read of readers) read(text)
      readTransaction(text, id, true, 'node')
    }),
    { numRuns: 2_000 },
  )
  t.pass('held')
})

t.test('what is read of an offset is a window of the weave', async (t) => {
  const digits = fc.oneof(
    fc.nat(20).map(String),
    fc.bigInt(-5n, 2n ** 70n).map(String),
    fc.string({ maxLength: 3 }),
  )
  fc.assert(
    fc.property(digits, digits, (size, offset) => {
      const read = readOffset(JSON.stringify({ size, offset }))
      if (read === undefined) return true
      return read.start >= 1 && read.end - read.start + 1 === read.size && String(read.end) === offset
    }),
    { numRuns: 2_000 },
  )
  t.pass('held')
})

t.test('a large answer is bounded where it is decoded', async (t) => {
  const path = Buffer.alloc(64).toString('base64url')
  t.ok(readChunk(JSON.stringify({ chunk: Buffer.alloc(262_144).toString('base64url'), data_path: path })))
  t.notOk(readChunk(JSON.stringify({ chunk: 'A'.repeat(10_000_000), data_path: path })))
})
