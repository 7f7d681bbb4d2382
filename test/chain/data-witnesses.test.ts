/** Whether nodes have the data of a transaction is what their chunks prove, not what they state. */
import t, { type Test } from 'tap'
import { type Clock, systemClock } from '../../src/actor/clock.js'
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

const all = { seen: offsets, missing: [] }

function witnessesOf(t: Test, urls: readonly string[], clock: Clock = systemClock) {
  const witnesses = new DataWitnesses(urls, { ...patient, nodes: urls }, clock)
  t.teardown(() => witnesses.close())
  const dataRoot = chunks[0]?.dataRoot ?? new Uint8Array(32)
  return (wish: Partial<DataWish> = {}) => {
    const whole = { id, dataRoot, sizeBytes, offsets, last: new Set<string>(), ...wish }
    return witnesses.look(whole, new AbortController().signal)
  }
}

function look(t: Test, urls: readonly string[], wish: Partial<DataWish> = {}) {
  return witnessesOf(t, urls)(wish)
}

/** A clock on which time passes by ten seconds, when the test says so. */
class LateClock {
  now = systemClock.now
  every = systemClock.every
  #aheadMs = 0
  readonly #late = new Set<() => void>()
  monotonic = (): number => this.#aheadMs
  after = (ms: number, act: () => void): { cancel: () => void } => {
    if (ms !== 10_000) return systemClock.after(ms, act)
    this.#late.add(act)
    return { cancel: () => void this.#late.delete(act) }
  }
  tenSeconds(): void {
    this.#aheadMs += 10_000
    for (const act of this.#late) act()
  }
}

t.test('chunks that prove are seen, whichever nodes have them', async (t) => {
  const [one, other] = [await nodeOf(t, [0, 2]), await nodeOf(t, [1, 3], 5001)]
  t.strictSame(await look(t, [(await nodeOf(t)).url]), all)
  t.strictSame(await look(t, [one.url]), {
    seen: [offsets[1], offsets[3]],
    missing: [offsets[0], offsets[2]],
  })
  t.strictSame(await look(t, [one.url, other.url]), all)
  t.strictSame(
    await look(t, [(await silent(t)).url, (await nodeOf(t)).url]),
    all,
    'a node that fails is passed',
  )
})

t.test('failures of the only node that has the data', async (t) => {
  const holder = await nodeOf(t)
  const none = await nodeOf(t, [0, 1, 2, 3])
  let failures = 2
  const busy = await nodeThat(t, async (request, response) => {
    if (failures > 0) {
      failures -= 1
      response.writeHead(503).end()
      return
    }
    const answer = await fetch(`${holder.url}${request.url}`)
    response.writeHead(answer.status).end(await answer.text())
  })
  const lookAgain = witnessesOf(t, [none.url, busy.url])
  const seen = { seen: offsets.slice(2), missing: [], doubtful: offsets.slice(0, 2) }
  t.strictSame(await lookAgain(), seen, 'that is no denial')
  t.match(await lookAgain({ offsets: offsets.slice(0, 2) }), { seen: offsets.slice(0, 2), missing: [] })
})

t.test('what a node that was late too often may have is not missing', async (t) => {
  const clock = new LateClock()
  const hung = await nodeThat(t, () => clock.tenSeconds())
  const none = await nodeOf(t, [0, 1, 2, 3])
  const seen = await witnessesOf(t, [hung.url, none.url], clock)()
  t.strictSame(seen, { seen: [], missing: [], doubtful: offsets })
  t.ok(hung.requested.length < offsets.length)
})

t.test('what does not prove is missing', async (t) => {
  const wrong = await nodeOf(t, [], 1001, (chunk) => {
    chunk[100] = (chunk[100] ?? 0) ^ 1
    return chunk
  })
  const none = { seen: [], missing: offsets }
  t.strictSame(await look(t, [wrong.url]), none)
  t.strictSame(await look(t, [wrong.url, (await nodeOf(t)).url]), all)
  t.strictSame(await look(t, [(await nodeThat(t, (_, response) => response.writeHead(404).end())).url]), none)
})

t.test('nodes that do not answer say nothing', async (t) => {
  t.match(await look(t, [(await silent(t)).url]), { seen: [], missing: [], refusal: { refused: 'upstream' } })
  t.match(await look(t, [(await silent(t)).url, (await nodeOf(t, [3])).url]), {
    missing: [],
    doubtful: [offsets[3]],
  })
})

t.test('who took the chunks comes behind the others', async (t) => {
  const [taker, other] = [await nodeOf(t), await nodeOf(t)]
  const last = new Set([taker.url])
  t.strictSame(await look(t, [taker.url, other.url], { last }), all)
  t.strictSame(taker.requested, [])
  const lacking = await nodeOf(t, [0, 1, 2, 3])
  t.strictSame(await look(t, [taker.url, lacking.url], { last }), all)
})

t.test('a node that does not answer costs its time once, and comes last afterwards', async (t) => {
  const clock = new LateClock()
  const hung = await nodeThat(t, () => clock.tenSeconds())
  const well = await nodeOf(t)
  const lookAgain = witnessesOf(t, [hung.url, well.url], clock)
  t.strictSame(await lookAgain(), all)
  t.equal(hung.requested.length, 1)
  t.strictSame(await lookAgain(), all)
  t.equal(hung.requested.length, 1, 'the others are queried first')
})

t.test('a node that hangs takes nothing back of what was seen', async (t) => {
  const clock = new LateClock()
  const well = await nodeOf(t)
  const hangs = await nodeThat(t, async (request, response) => {
    if (request.url?.startsWith('/chunk') === true && hangs.requested.length > 4) {
      clock.tenSeconds()
      return
    }
    const answer = await fetch(`${well.url}${request.url}`)
    response.writeHead(answer.status).end(Buffer.from(await answer.arrayBuffer()))
  })
  const seen = await witnessesOf(t, [hangs.url], clock)()
  t.match(seen, { missing: [], refusal: { refused: 'late', message: /10 s/ } })
  t.ok(seen.seen.length > 0 && seen.seen.length < offsets.length)
  const rest = offsets.filter((offset) => !seen.seen.includes(offset))
  t.strictSame(await look(t, [well.url], { offsets: rest }), { seen: rest, missing: [] })
})
