/** Killed between a request, its record and its proof, and at any other moment. */
import { randomBytes } from 'node:crypto'
import t from 'tap'
import { pause } from '../../src/actor/clock.js'
import { encodeBundle } from '../../src/format/bundle.js'
import { type Id, parseId } from '../../src/format/id.js'
import { parseItemHeader } from '../../src/format/item.js'
import { isRefusal } from '../../src/format/refusal.js'
import { ed25519Signer, signItem } from '../../src/proof/sign.js'
import { devnetOf, payerOf, postedBy } from '../devnet/posting.js'
import { eventually } from '../eventually.js'
import { random } from '../property.js'
import { scratch } from '../scratch.js'
import { upstream } from '../source/rig.js'
import { payloadOf } from '../store/segments/rig.js'
import { type Running, run } from './running.js'

/** Kills of the whole program; many of them with KILLS=100. */
const kills = Number(process.env.KILLS ?? 2)
t.setTimeout(1_200_000 + kills * 60_000)

/** Bundles that a node gets before each start, and contents without a root, which nobody can prove. */
const bundlesEach = 2
const itemsEach = 40
const hopelessEach = 50

const signer = ed25519Signer(randomBytes(32))
const tags = { 'Bundle-Format': 'binary', 'Bundle-Version': '2.0.0' }

interface Content {
  readonly bytes: Buffer
  readonly rootId?: Id
}

function itemOf(): { readonly id: Id; readonly bytes: Uint8Array; readonly payload: Buffer } {
  const payload = payloadOf(1 + Math.floor(random() * 6000), Math.floor(random() * 2 ** 31))
  const bytes = signItem(signer, { anchor: randomBytes(32) }, payload)
  const header = parseItemHeader(bytes)
  if (header === 'more' || isRefusal(header)) throw new Error('an item of our own does not parse')
  return { id: header.id, bytes, payload }
}

t.test('killed between request, record and proof, it proves all that a node has', async (t) => {
  const contents = new Map<Id, Content>()
  let requests = 0
  const server = await upstream((request, response) => {
    requests += 1
    const id = parseId(request.url?.replace('/raw/', '') ?? '')
    const content = id === undefined ? undefined : contents.get(id)
    if (content === undefined) return void response.writeHead(404).end()
    const { bytes, rootId } = content
    const root = rootId === undefined ? {} : { 'x-ar-io-root-transaction-id': rootId }
    response.writeHead(200, { 'content-length': bytes.length, ...root }).end(bytes)
  })
  t.teardown(() => server.close())
  const devnet = await devnetOf(t)
  const payer = await payerOf(devnet)
  const post = async (): Promise<Id[]> => {
    const ids: Id[] = []
    for (let n = 0; n < bundlesEach; n += 1) {
      const items = Array.from({ length: itemsEach }, itemOf)
      const rootId = await postedBy(payer, encodeBundle(items), tags)
      for (const { id, payload } of items) contents.set(id, { bytes: payload, rootId })
      ids.push(...items.map(({ id }) => id))
    }
    devnet.mine()
    for (let n = 0; n < hopelessEach; n += 1) {
      const { id, payload } = itemOf()
      contents.set(id, { bytes: payload })
    }
    return ids
  }
  const start = (): Promise<Running> =>
    run(t, dataPath, {
      SERVICES: 'gateway',
      TRUSTED_NODE_URL: devnet.url,
      // The index would stand in for a hint that is lost.
      ANS104_UNBUNDLE_FILTER: '{"never":true}',
      TRUSTED_GATEWAYS_URLS: JSON.stringify({ [server.url]: 1 }),
    })
  const dataPath = scratch('proof-kills')
  const provable: Id[] = []
  const read = new Set<Id>()
  for (let round = 0; round <= kills; round += 1) {
    provable.push(...(await post()))
    const program = await start()
    const { gateway = '' } = program.urls
    const left = [...contents.keys()].filter((id) => !read.has(id)).sort(() => random() - 0.5)
    const readers = Array.from({ length: 8 }, async () => {
      for (let id = left.pop(); id !== undefined; id = left.pop()) {
        const bytes = await bodyOf(`${gateway}/raw/${id}`)
        if (bytes === undefined) continue
        if (contents.get(id)?.bytes.equals(bytes) !== true) throw new Error(`wrong bytes of ${id}`)
        read.add(id)
      }
    })
    if (round < kills) {
      await pause(random() * 3500)
      await program.kill()
      await Promise.all(readers)
      continue
    }
    await Promise.all(readers)
    // What was answered right before a kill may have left no record: then it is fetched once more.
    for (const id of provable) t.ok(await bodyOf(`${gateway}/raw/${id}`))
    const unproven = new Set(provable)
    await eventually(
      'a proof of all that a node has',
      async () => {
        for (const id of unproven) {
          const { headers } = await fetch(`${gateway}/raw/${id}`, { method: 'HEAD' })
          if (headers.get('x-gateway-verified') !== 'true') return false
          unproven.delete(id)
        }
        return true
      },
      () => unproven.size,
    )
    const again = requests
    for (const id of provable)
      t.ok(contents.get(id)?.bytes.equals((await bodyOf(`${gateway}/raw/${id}`)) ?? Buffer.alloc(0)))
    t.equal(requests, again, 'what is proven is here')
    t.equal(await program.stop(), 0)
  }
  t.comment(`${kills} kills, ${provable.length} provable contents of ${contents.size}, ${requests} requests`)
})

/** Undefined: the program was killed meanwhile. */
async function bodyOf(url: string): Promise<Buffer | undefined> {
  try {
    const answer = await fetch(url)
    const bytes = Buffer.from(await answer.arrayBuffer())
    return answer.status === 200 ? bytes : undefined
  } catch {
    return undefined
  }
}
