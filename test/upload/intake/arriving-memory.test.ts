/** Memory of uploads while they come: of their bytes and of what is read of bundles, counted and shared fairly. */
import t from 'tap'
import { collector } from '../../../src/actor/idle-memory.js'
import { encodeBundleHeader } from '../../../src/format/bundle.js'
import { BundleReader } from '../../../src/format/bundle-reader.js'
import { idOfBytes } from '../../../src/format/id.js'
import { parseItemHeader } from '../../../src/format/item.js'
import { tagOf } from '../../../src/format/tag.js'
import type { BodySink } from '../../../src/http/exchange.js'
import { sha256 } from '../../../src/proof/digest.js'
import { ed25519Signer, signItem } from '../../../src/proof/sign.js'
import type { UploadAnswer } from '../../../src/upload/calls/upload-answers.js'
import { ItemReader } from '../../../src/upload/intake/item-reader.js'
import { openUploadTables } from '../../../src/upload/records/uploads.js'
import { eventually } from '../../eventually.js'
import { answered, requestOf, uploadRig } from '../upload-rig.js'

const collect = collector()
const signer = ed25519Signer(Buffer.alloc(32, 5))
const bundleTags = [tagOf('Bundle-Format', 'binary'), tagOf('Bundle-Version', '2.0.0')]
const entries = 100_000

function heldBytes(): number {
  collect()
  collect()
  const { heapUsed, external } = process.memoryUsage()
  return heapUsed + external
}

/** The header of an item of that kind, without its payload. */
function headOf(signed: Uint8Array): Uint8Array {
  const header = parseItemHeader(signed)
  if (header === 'more' || 'refused' in header) throw new Error('no header')
  return signed.subarray(0, header.headerSize)
}

const head = headOf(signItem(signer, { tags: bundleTags }, Buffer.from('x')))
const table = encodeBundleHeader(
  Array.from({ length: entries }, (_, at) => ({
    id: idOfBytes(sha256(Buffer.from(`${at}`))),
    sizeBytes: 900,
  })),
)

t.test('looking into a bundle takes less than its sender has sent, and says how much', async (t) => {
  const before = heldBytes()
  const reader = new ItemReader(false, new Set(['somebody']))
  for (const bytes of [head, table])
    for (let at = 0; at < bytes.length; at += 65_536) reader.push(bytes.subarray(at, at + 65_536))
  const taken = heldBytes() - before
  t.ok(taken < 5_000_000, `${taken} bytes`)
  t.ok(
    reader.memoryBytes > 3_900_000 && reader.memoryBytes < taken + 1_000_000,
    `${reader.memoryBytes} counted`,
  )
  t.equal(reader.isBlocked, false)
})

t.test(
  'a table takes no room for entries that have not come, and none once its bundle is over',
  async (t) => {
    const reader = new ItemReader(false, new Set(['somebody']))
    reader.push(head)
    reader.push(table.subarray(0, 32 + 64))
    t.ok(reader.memoryBytes < 2000)
    const small = new ItemReader(false, new Set(['somebody']))
    small.push(head)
    small.push(new Uint8Array(32))
    t.equal(small.memoryBytes, 0)
  },
)

t.test('a bundle of a million items takes 40 bytes of memory for each', async (t) => {
  const count = 1_000_000
  const before = heldBytes()
  const big = new BundleReader({ itemsMax: count })
  const first = Buffer.alloc(32)
  first.writeUInt32LE(count)
  for (const _ of big.push(first)) t.fail('an event')
  const some = table.subarray(32, 32 + 64 * 10_000)
  for (let at = 0; at < count; at += 10_000)
    for (const event of big.push(some)) t.match(event, { kind: 'entries', count })
  const taken = heldBytes() - before
  t.ok(taken < 50_000_000, `${taken} bytes`)
  t.equal(big.memoryBytes > 0, true)
})

type Rig = Awaited<ReturnType<typeof uploadRig>>

/** An upload whose bytes come when the test gives them. */
function opened(rig: Rig, from: string, length: number) {
  const headers = { 'content-length': String(length), 'content-type': 'application/octet-stream' }
  const sinks: BodySink[] = []
  const answers: UploadAnswer[] = []
  const request = {
    ...requestOf('POST', '/tx', { headers, from }),
    stream: (sink: BodySink) => {
      sinks.push(sink)
      return { pause: () => undefined, resume: () => undefined }
    },
  }
  void answered(rig, '/tx', request).then((answer) => answers.push(answer))
  const [sink] = sinks
  if (sink === undefined) throw new Error('nobody reads the body')
  return { sink, answers }
}

const small = (text: string): Buffer => Buffer.from(signItem(signer, {}, Buffer.alloc(100_000, text)))

t.test('small uploads are counted while they come, and who holds most makes room', async (t) => {
  const environment = openUploadTables(t.testdir())
  t.teardown(() => environment.close())
  const rig = await uploadRig(t, environment, { memoryMaxBytes: 150_000 })
  const greedy = small('a')
  const first = opened(rig, '198.51.100.7', greedy.length)
  first.sink.piece(greedy.subarray(0, 99_000))
  t.equal(rig.memory.bytes, 131_072)
  const second = opened(rig, '198.51.100.7', greedy.length)
  second.sink.piece(greedy.subarray(0, 99_000))
  await eventually('one more of this client is refused', () => second.answers.length > 0)
  t.match(second.answers, [{ status: 503 }])
  t.same(first.answers, [])
  const other = small('b')
  const newcomer = opened(rig, '203.0.113.9', other.length)
  newcomer.sink.piece(other.subarray(0, 60_000))
  await eventually('it makes room for another network', () => first.answers.length > 0)
  t.match(first.answers, [{ status: 503 }])
  first.sink.piece(greedy.subarray(99_000))
  newcomer.sink.piece(other.subarray(60_000))
  newcomer.sink.over(undefined)
  await eventually('which gets its receipt', () => newcomer.answers.length > 0)
  t.match(newcomer.answers, [{ status: 200 }])
  await eventually('nothing is held', () => rig.memory.bytes === 0)
})

t.test('a table of a bundle that comes slowly counts, and makes room', async (t) => {
  const environment = openUploadTables(t.testdir())
  t.teardown(() => environment.close())
  const options = { memoryMaxBytes: 5_000_000, blockedOwners: new Set(['somebody']), isRich: true }
  const rig = await uploadRig(t, environment, options)
  const slow = opened(rig, '198.51.100.7', 100_000_000)
  for (const bytes of [head, table]) slow.sink.piece(bytes)
  t.ok(rig.memory.bytes > 3_900_000, `${rig.memory.bytes} bytes`)
  const other = opened(rig, '203.0.113.9', 100_000_000)
  other.sink.piece(head)
  for (let at = 0; at < table.length; at += 65_536) other.sink.piece(table.subarray(at, at + 65_536))
  await eventually('the one that holds more is ended', () => slow.answers.length > 0)
  t.match(slow.answers, [{ status: 503 }])
  t.same(other.answers, [])
  other.sink.over({ refused: 'malformed', fault: 'client', message: 'the client left' })
  await eventually('nothing is held', () => rig.memory.bytes === 0)
})
