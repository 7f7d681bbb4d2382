import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import t, { type Test } from 'tap'
import { systemClock } from '../../src/actor/clock.js'
import { readBinaryChunk, writeBinaryChunk } from '../../src/chain/binary-chunk.js'
import { RemoteChain } from '../../src/chain/remote-chain.js'
import { isRefusal } from '../../src/format/refusal.js'
import { fc } from '../property.js'
import { nodeThat, patient } from './hostile.js'

const parts = { chunk: randomBytes(1000), dataPath: randomBytes(96 + 64), txPath: randomBytes(64) }
const json = JSON.stringify({
  chunk: parts.chunk.toString('base64url'),
  data_path: parts.dataPath.toString('base64url'),
  tx_path: parts.txPath.toString('base64url'),
  packing: 'unpacked',
})

function chainOf(t: Test, ...nodes: string[]): RemoteChain {
  const chain = new RemoteChain({ ...patient, nodes }, systemClock)
  t.teardown(async () => {
    assert.equal(chain.underWay, 0, 'every turn was given back')
    await chain.close()
  })
  return chain
}

t.test('what is written is read, and nothing that was cut, changed in its lengths or packed', async (t) => {
  const path = fc.integer({ min: 2, max: 50 }).map((words) => randomBytes(words * 32))
  const made = fc.record({
    chunk: fc.uint8Array({ minLength: 1, maxLength: 2000 }),
    dataPath: path,
    txPath: fc.option(path, { nil: undefined }),
  })
  fc.assert(
    fc.property(made, fc.nat(), ({ chunk, dataPath, txPath }, cut) => {
      const wanted = txPath === undefined ? { chunk, dataPath } : { chunk, dataPath, txPath }
      const bytes = writeBinaryChunk(wanted)
      const read = readBinaryChunk(bytes)
      assert.deepEqual(read && Buffer.from(read.chunk), Buffer.from(chunk))
      assert.deepEqual(read?.dataPath, dataPath)
      assert.deepEqual(read?.txPath, txPath)
      assert.equal(readBinaryChunk(bytes.subarray(0, cut % bytes.length)), undefined)
    }),
  )
  const sound = writeBinaryChunk(parts)
  const packed = Buffer.from(sound)
  packed.write('spora_25', packed.length - 8)
  t.equal(readBinaryChunk(packed), undefined)
  t.equal(readBinaryChunk(writeBinaryChunk({ ...parts, chunk: new Uint8Array(0) })), undefined, 'empty')
  t.equal(readBinaryChunk(writeBinaryChunk({ ...parts, chunk: new Uint8Array(262_145) })), undefined, 'large')
  t.equal(readBinaryChunk(writeBinaryChunk({ ...parts, dataPath: new Uint8Array(65) })), undefined, 'no path')
  t.equal(readBinaryChunk(writeBinaryChunk({ ...parts, dataPath: new Uint8Array(0) })), undefined, 'none')
})

t.test('bytes of anybody are read without an exception', async (t) => {
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 400 }), (bytes) => {
      readBinaryChunk(Buffer.from(bytes))
      return true
    }),
  )
  t.pass()
})

t.test('a node that answers in binary is asked so, and believed where it has no chunk', async (t) => {
  const node = await nodeThat(t, (request, response) => {
    if (request.url === '/chunk2/9') response.end(writeBinaryChunk(parts))
    else response.writeHead(404).end()
  })
  const chain = chainOf(t, node.url)
  const chunk = await chain.chunk(9)
  t.notOk(isRefusal(chunk))
  if (!isRefusal(chunk)) {
    t.ok(parts.chunk.equals(chunk.chunk) && parts.dataPath.equals(chunk.dataPath))
    t.ok(chunk.txPath !== undefined && parts.txPath.equals(chunk.txPath))
    t.equal(chunk.node, node.url)
  }
  t.match(await chain.chunk(10), { refused: 'unknown' })
  t.same(node.requested, ['GET /chunk2/9', 'GET /chunk2/10'], 'no JSON')
})

t.test('a node that does not know the path is asked for JSON from then on', async (t) => {
  for (const [status, body] of [
    [404, ''],
    [400, '{"error":"Request type not found."}'],
    [200, '<html>a page</html>'],
    [500, ''],
  ] as const) {
    const node = await nodeThat(t, (request, response) => {
      if (request.url === '/chunk/9') response.end(json)
      else if (request.url?.startsWith('/chunk2/')) response.writeHead(status).end(body)
      else response.writeHead(404).end()
    })
    const chain = chainOf(t, node.url)
    // Where neither knows it, nothing is learned of the node.
    t.match(await chain.chunk(7), { refused: 'unknown' }, String(status))
    for (const _ of [1, 2]) {
      const chunk = await chain.chunk(9)
      t.ok(!isRefusal(chunk) && parts.chunk.equals(chunk.chunk), String(status))
    }
    const requested = ['GET /chunk2/7', 'GET /chunk/7', 'GET /chunk2/9', 'GET /chunk/9', 'GET /chunk/9']
    t.same(node.requested, requested, String(status))
  }
})

t.test('another server behind the same address is noticed', async (t) => {
  let isNew = true
  const node = await nodeThat(t, (request, response) => {
    if (isNew && request.url === '/chunk2/9') response.end(writeBinaryChunk(parts))
    else if (!isNew && request.url === '/chunk2/9') response.end('what is this?')
    else response.end(json)
  })
  const chain = chainOf(t, node.url)
  t.notOk(isRefusal(await chain.chunk(9)))
  isNew = false
  t.notOk(isRefusal(await chain.chunk(9)))
  t.same(node.requested, ['GET /chunk2/9', 'GET /chunk2/9', 'GET /chunk/9'])
})
