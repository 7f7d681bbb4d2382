/** What a stranger may hold with requests that are not over: what has come, and nothing that was only announced. */

import { setImmediate as turn } from 'node:timers/promises'
import t, { type Test } from 'tap'
import { ed25519Signer, signItem } from '../../src/proof/sign.js'
import { openUploadTables } from '../../src/upload/records/uploads.js'
import { scratch } from '../scratch.js'
import { answered, type RigOptions, requestOf, type UploadRig, uploadRig } from './upload-rig.js'

const signer = ed25519Signer(Buffer.alloc(32, 7))

async function rigOf(t: Test, options: RigOptions = {}): Promise<UploadRig> {
  const environment = openUploadTables(scratch('strangers'))
  t.teardown(() => environment.close())
  return uploadRig(t, environment, options)
}

async function begun(rig: UploadRig, from?: string): Promise<string> {
  const path = '/chunks/{token}/-1/-1'
  const request = requestOf('GET', path, {
    query: 'chunkSize=5242880',
    ...(from === undefined ? {} : { from }),
  })
  return ((await answered(rig, path, request)).json as { id: string }).id
}

const partPath = '/chunks/{token}/{uploadId}/{offset}'

/** A part that comes as `pieces` do; `bytes` are announced. */
function part(rig: UploadRig, uploadId: string, bytes: number, pieces: Iterable<Uint8Array>, offset = '0') {
  const request = requestOf('POST', partPath, { headers: { 'content-length': String(bytes) }, pieces })
  return { request, answer: answered(rig, partPath, request, { uploadId, offset }) }
}

t.test('a part holds what has come of it', async (t) => {
  const rig = await rigOf(t)
  const id = await begun(rig)
  const held: number[] = []
  function* pieces(): Generator<Uint8Array> {
    for (const size of [1000, 2000]) {
      yield new Uint8Array(size)
      held.push(rig.partsRoom.bytes)
    }
  }
  const { answer } = part(rig, id, 400_000_000, pieces())
  t.match(await answer, { status: 200 })
  t.strictSame(held, [1000, 3000])
  const again = part(rig, id, 2000, [new Uint8Array(2000)])
  t.match(await again.answer, { status: 200 })
  t.equal(rig.partsRoom.bytes, 2000, 'what is replaced is held no more')
})

t.test('a part of an upload that had to make room is ended at once', async (t) => {
  const rig = await rigOf(t)
  const id = await begun(rig)
  function* pieces(): Generator<Uint8Array> {
    yield new Uint8Array(1000)
    rig.open.drop(id)
    for (let at = 0; at < 100; at += 1) yield new Uint8Array(1000)
  }
  const { request, answer } = part(rig, id, 101_000, pieces())
  t.match(await answer, { status: 503, text: /dropped/ })
  t.ok(request.taken() <= 3000, `${request.taken()} bytes were read`)
  t.equal(rig.partsRoom.bytes, 0)
})

t.test('a body without a length is not taken further than somebody pays', async (t) => {
  const rig = await rigOf(t)
  const large = signItem(signer, {}, Buffer.alloc(20_000_000, 'x'))
  function* pieces(): Generator<Uint8Array> {
    for (let at = 0; at < large.length; at += 65_536) yield large.subarray(at, at + 65_536)
  }
  const request = requestOf('POST', '/tx', { pieces: pieces() })
  t.match(await answered(rig, '/tx', request), { status: 402 })
  t.ok(request.taken() < 500_000, `${request.taken()} bytes were read`)
  t.equal(rig.arriving.bytes, 0)
  const rich = await rigOf(t, { isRich: true })
  const paying = requestOf('POST', '/tx', { pieces: pieces() })
  t.match(await answered(rich, '/tx', paying), { status: 200 })
  t.ok(rich.questions.filter((word) => word === 'check').length > 3, 'asked again as it grows')
  t.equal(rich.arriving.bytes, 0)
})

t.test('what a request brings is counted while it comes, and makes room for others', async (t) => {
  const rig = await rigOf(t, { isRich: true })
  const large = signItem(signer, {}, Buffer.alloc(2_000_000, 'y'))
  let most = 0
  function* pieces(): Generator<Uint8Array> {
    for (let at = 0; at < large.length; at += 65_536) {
      yield large.subarray(at, at + 65_536)
      most = Math.max(most, rig.arriving.bytes)
    }
  }
  const headers = { 'content-length': String(large.length) }
  t.match(await answered(rig, '/tx', requestOf('POST', '/tx', { headers, pieces: pieces() })), {
    status: 200,
  })
  t.equal(most, large.length)
  t.equal(rig.arriving.bytes, 0)
})

t.test('an upload that nobody pays is not read again each time that it is finalized', async (t) => {
  const rig = await rigOf(t)
  const id = await begun(rig)
  const item = signItem(signer, {}, Buffer.alloc(3_000_000, 'z'))
  t.match(await part(rig, id, item.length, [item]).answer, { status: 200 })
  const path = '/chunks/{token}/{uploadId}/-1'
  for (let time = 0; time < 2; time += 1)
    t.match(await answered(rig, path, requestOf('POST', path), { uploadId: id, token: 'arweave' }), {
      status: 402,
    })
  t.strictSame(rig.questions, ['check', 'check'], 'asked by its header, and nothing is held back')
})

t.test('questions for thousands of contents leave time for others', async (t) => {
  const rig = await rigOf(t)
  const sha256 = Array.from({ length: 2000 }, (_, at) => at.toString(16).padStart(64, '0'))
  const body = Buffer.from(JSON.stringify({ owner: 'o'.repeat(43), sha256 }))
  const ask = (from: string) =>
    answered(rig, '/check-missing', requestOf('POST', '/check-missing', { pieces: [body], from }))
  let turns = 0
  let isOver = false
  const other = (async () => {
    for (; !isOver; turns += 1) await turn()
  })()
  const answers = await Promise.all(
    Array.from({ length: 40 }, (_, at) => ask(at < 30 ? '198.51.100.1' : `203.0.113.${at}`)),
  )
  isOver = true
  await other
  t.ok(turns > 50, `${turns} turns of others`)
  t.strictSame(
    answers.map(({ status }) => status),
    [...Array(20).fill(200), ...Array(10).fill(503), ...Array(10).fill(200)],
    'one client has a share of those that wait',
  )
  const first = answers[0]?.json as { readonly missing: readonly string[] } | undefined
  t.equal(first?.missing.length, 2000)
})
