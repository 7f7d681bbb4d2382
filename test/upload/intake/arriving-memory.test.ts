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
import { ItemReader } from '../../../src/upload/intake/item-reader.js'
import { openUploadTables } from '../../../src/upload/records/uploads.js'
import type { UploadAnswer } from '../../../src/upload/requests/upload-answers.js'
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

t.test('what lies in a bundle takes no memory while the bundle comes', async (t) => {
  const before = heldBytes()
  const reader = new ItemReader(false, new Set(['somebody']))
  for (const bytes of [head, table])
    for (let at = 0; at < bytes.length; at += 65_536) reader.push(bytes.subarray(at, at + 65_536))
  const taken = heldBytes() - before
  t.ok(taken < 1_000_000, `${taken} bytes`)
  t.equal(reader.isBlocked, false)
})

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

/** In pieces, as packets of a network come. */
function send(sink: BodySink, bytes: Uint8Array): void {
  for (let at = 0; at < bytes.length; at += 1400) sink.piece(bytes.subarray(at, at + 1400))
}

const item = (sizeBytes: number, text: string): Buffer =>
  Buffer.from(signItem(signer, {}, Buffer.alloc(sizeBytes, text)))

/** Comes at once, from a network of its own. */
async function posted(rig: Rig, bytes: Uint8Array): Promise<UploadAnswer> {
  const upload = opened(rig, '203.0.113.5', bytes.length)
  send(upload.sink, bytes)
  upload.sink.over(undefined)
  await eventually('it is answered', () => upload.answers.length > 0)
  return upload.answers[0] as UploadAnswer
}

t.test('small uploads are counted while they come, and what comes slowly goes to the disk', async (t) => {
  const environment = openUploadTables(t.testdir())
  t.teardown(() => environment.close())
  const rig = await uploadRig(t, environment, { memoryMaxBytes: 150_000 })
  const uploads = [
    { from: '198.51.100.7', bytes: item(100_000, 'a') },
    { from: '198.51.100.7', bytes: item(100_000, 'b') },
    { from: '203.0.113.9', bytes: item(100_000, 'c') },
  ].map(({ from, bytes }) => ({ ...opened(rig, from, bytes.length), bytes }))
  for (const { sink, bytes } of uploads) {
    send(sink, bytes.subarray(0, 99_000))
    t.equal(rig.memory.bytes, 131_072)
  }
  t.equal(rig.arriving.bytes, 198_000, 'the others are on disk, and are counted there')
  for (const { sink, bytes, answers } of uploads) {
    send(sink, bytes.subarray(99_000))
    sink.over(undefined)
    await eventually('each gets its receipt', () => answers.length > 0)
    t.match(answers, [{ status: 200 }])
  }
  await eventually('nothing is held', () => rig.memory.bytes === 0 && rig.arriving.bytes === 0)
})

t.test('many that come slowly from many networks keep nobody out, however large', async (t) => {
  const environment = openUploadTables(t.testdir())
  t.teardown(() => environment.close())
  const memoryMaxBytes = 2 * 1024 * 1024
  const options = { memoryMaxBytes, isRich: true, blockedOwners: new Set(['somebody']) }
  const rig = await uploadRig(t, environment, options)
  const strange = item(250_000, 's')
  const strangers = Array.from({ length: 30 }, (_, at) => {
    const stranger = opened(rig, `20.${at}.7.9`, strange.length)
    send(stranger.sink, strange.subarray(0, 140_000))
    return stranger
  })
  t.ok(rig.memory.bytes > memoryMaxBytes - 200_000, `they fill it: ${rig.memory.bytes} bytes`)
  for (const sizeBytes of [10_000, 90_000, 150_000, 240_000, 300_000, 5_000_000]) {
    t.match(await posted(rig, item(sizeBytes, 'h')), { status: 200 }, `${sizeBytes} bytes`)
    t.ok(rig.memory.bytes <= memoryMaxBytes, `${rig.memory.bytes} bytes`)
  }
  const bundle = opened(rig, '203.0.113.5', 10_000_000)
  send(bundle.sink, Buffer.concat([head, table.subarray(0, 2_500_000)]))
  t.same(bundle.answers, [], 'nor a bundle, whose table cannot go to the disk')
  bundle.sink.over({ refused: 'malformed', fault: 'client', message: 'the client left' })
  t.ok(
    strangers.every(({ answers }) => answers.length === 0),
    'nor do they lose anything',
  )
  for (const { sink } of strangers) send(sink, strange.subarray(140_000))
  strangers[0]?.sink.over(undefined)
  await eventually('one that ends in the end is answered', () => strangers[0]?.answers.length === 1)
  t.match(strangers[0]?.answers, [{ status: 200 }])
  for (const { sink } of strangers.slice(1))
    sink.over({ refused: 'malformed', fault: 'client', message: 'it left' })
  await eventually('nothing is held', () => rig.memory.bytes === 0 && rig.arriving.bytes === 0)
})

t.test('where the memory is full and the disk, too, uploads are refused', async (t) => {
  const environment = openUploadTables(t.testdir())
  t.teardown(() => environment.close())
  const rig = await uploadRig(t, environment, { memoryMaxBytes: 150_000, leftBytes: () => 0 })
  const bytes = item(100_000, 'a')
  const first = opened(rig, '198.51.100.7', bytes.length)
  send(first.sink, bytes.subarray(0, 99_000))
  t.match(await posted(rig, item(100_000, 'b')), { status: 200 })
  await eventually('for which one was ended', () => first.answers.length > 0)
  t.match(first.answers, [{ status: 429 }])
  await eventually('nothing is held', () => rig.memory.bytes === 0 && rig.arriving.bytes === 0)
})

t.test('unsigned bytes go to the disk where memory is short', async (t) => {
  const environment = openUploadTables(t.testdir())
  t.teardown(() => environment.close())
  const rig = await uploadRig(t, environment, { memoryMaxBytes: 80_000 })
  const path = '/x402/upload/unsigned'
  let isHalf = true
  const uploads = ['a', 'b', 'c'].map((text, at) => {
    const body = Buffer.alloc(90_000, text)
    const headers = { 'content-length': String(body.length) }
    const post = requestOf('POST', path, { headers, from: `20.${at}.7.9` })
    let isPaused = false
    let taken = 0
    const feed = async (sink: BodySink): Promise<void> => {
      for (; taken < body.length; taken += 1400) {
        await eventually('it may go on', () => !isPaused && (taken < 70_000 || !isHalf))
        sink.piece(body.subarray(taken, taken + 1400))
      }
      sink.over(undefined)
    }
    const stream = (sink: BodySink) => {
      void feed(sink)
      return {
        pause: () => {
          isPaused = true
        },
        resume: () => {
          isPaused = false
        },
      }
    }
    return { answer: answered(rig, path, { ...post, stream }), taken: () => taken }
  })
  await eventually('most of it is here', () => uploads.every(({ taken }) => taken() >= 70_000))
  t.ok(rig.memory.bytes <= 80_000, `${rig.memory.bytes} bytes`)
  t.ok(rig.arriving.bytes >= 140_000, `${rig.arriving.bytes} bytes on disk`)
  isHalf = false
  for (const { answer } of uploads) t.match(await answer, { status: 200 })
  t.equal(rig.memory.bytes, 0)
  t.equal(rig.arriving.bytes, 0)
})

t.test('bundles that come slowly from many networks keep nobody out', async (t) => {
  const environment = openUploadTables(t.testdir())
  t.teardown(() => environment.close())
  const options = { memoryMaxBytes: 5_000_000, blockedOwners: new Set(['somebody']), isRich: true }
  const rig = await uploadRig(t, environment, options)
  const slow = Array.from({ length: 40 }, (_, at) => opened(rig, `20.${at}.7.9`, 100_000_000))
  for (const { sink } of slow)
    for (const bytes of [head, table])
      for (let at = 0; at < bytes.length; at += 65_536) sink.piece(bytes.subarray(at, at + 65_536))
  t.ok(slow.every(({ answers }) => answers.length === 0))
  t.ok(rig.memory.bytes < 1_000_000, `${rig.memory.bytes} bytes`)
  t.match(await posted(rig, item(200_000, 'h')), { status: 200 })
  for (const { sink } of slow) sink.over({ refused: 'malformed', fault: 'client', message: 'it left' })
  await eventually('nothing is held', () => rig.memory.bytes === 0)
})
