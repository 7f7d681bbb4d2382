/** Whether nodes have the data of a transaction is what their chunks prove, not what they state. */
import t, { type Test } from 'tap'
import { systemClock } from '../../src/actor/clock.js'
import { type DataWish, DataWitnesses } from '../../src/chain/data-witnesses.js'
import { encodeBase64url } from '../../src/format/base64url.js'
import { chunkSizeMax } from '../../src/format/chunk.js'
import { idOfBytes } from '../../src/format/id.js'
import { nodeThat, patient } from './hostile.js'
import { chunksOf } from './made-chunks.js'

const sizeBytes = 3 * chunkSizeMax + 50_000
const data = Buffer.alloc(sizeBytes, 'data of a bundle ')
const chunks = chunksOf(data, 'borders')
const id = idOfBytes(Buffer.alloc(32, 7))
const offsets = [0, chunkSizeMax, 2 * chunkSizeMax, sizeBytes - 1]

/** A node that has the data at a place of its own, but for some chunks; `change` works on what it sends. */
async function nodeOf(
  t: Test,
  lacks: readonly number[] = [],
  start = 1001,
  change: (chunk: Buffer) => Buffer = (chunk) => chunk,
) {
  return nodeThat(t, (request, response) => {
    const url = request.url ?? ''
    if (url === `/tx/${id}/offset`) {
      response.end(JSON.stringify({ size: String(sizeBytes), offset: String(start + sizeBytes - 1) }))
      return
    }
    const at = Number(/^\/chunk\/(\d+)$/.exec(url)?.[1] ?? Number.NaN) - start
    const index = chunks.findIndex((one) => one.start <= at && at < one.end)
    const found = lacks.includes(index) ? undefined : chunks[index]
    if (found === undefined) {
      response.writeHead(404).end('{}')
      return
    }
    const chunk = encodeBase64url(change(Buffer.from(found.chunk)))
    response.end(JSON.stringify({ chunk, data_path: encodeBase64url(found.dataPath), packing: 'unpacked' }))
  })
}

const silent = (t: Test) => nodeThat(t, (_, response) => response.writeHead(500).end())

function look(t: Test, urls: readonly string[], wish: Partial<DataWish> = {}) {
  const witnesses = new DataWitnesses(urls, { ...patient, nodes: urls }, systemClock)
  t.teardown(() => witnesses.close())
  const dataRoot = chunks[0]?.dataRoot ?? new Uint8Array(32)
  const whole = { id, dataRoot, sizeBytes, offsets, last: new Set<string>(), ...wish }
  return witnesses.look(whole, new AbortController().signal)
}

t.test('chunks that prove are seen, whichever nodes have them', async (t) => {
  const [one, other] = [await nodeOf(t, [0, 2]), await nodeOf(t, [1, 3], 5001)]
  t.equal(await look(t, [(await nodeOf(t)).url]), 'seen')
  t.equal(await look(t, [one.url]), 'missing')
  t.equal(await look(t, [one.url, other.url]), 'seen')
  t.equal(
    await look(t, [(await silent(t)).url, (await nodeOf(t)).url]),
    'seen',
    'a node that fails is passed',
  )
})

t.test('what does not prove is missing', async (t) => {
  const wrong = await nodeOf(t, [], 1001, (chunk) => {
    chunk[100] = (chunk[100] ?? 0) ^ 1
    return chunk
  })
  t.equal(await look(t, [wrong.url]), 'missing')
  t.equal(await look(t, [wrong.url, (await nodeOf(t)).url]), 'seen')
  t.equal(await look(t, [(await nodeThat(t, (_, response) => response.writeHead(404).end())).url]), 'missing')
})

t.test('nodes that do not answer say nothing', async (t) => {
  t.match(await look(t, [(await silent(t)).url]), { refused: 'upstream' })
  t.equal(await look(t, [(await silent(t)).url, (await nodeOf(t, [3])).url]), 'missing')
})

t.test('who took the chunks comes behind the others', async (t) => {
  const [taker, other] = [await nodeOf(t), await nodeOf(t)]
  t.equal(await look(t, [taker.url, other.url], { last: new Set([taker.url]) }), 'seen')
  t.strictSame(taker.requested, [])
  const lacking = await nodeOf(t, [0, 1, 2, 3])
  t.equal(await look(t, [taker.url, lacking.url], { last: new Set([taker.url]) }), 'seen')
})
