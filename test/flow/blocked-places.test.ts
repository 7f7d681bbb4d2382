/**
 * What a block covers, by places of items: a block of any data that an item's bytes are read out of holds for these bytes,
 * whoever names the place, before and after the block, and after a restart.
 */
import { randomBytes } from 'node:crypto'
import t from 'tap'
import { encodeBundle } from '../../src/format/bundle.js'
import { eventually } from '../eventually.js'
import { bundleItem, bundleTags, item, type MadeItem } from '../source/weave.js'
import { payerAt } from './payer.js'
import { type Running, run } from './running.js'
import { upstream } from './upstream.js'

const key = 'a-key-for-the-tests'
const folder = t.testdir()
/** What a trusted gateway has: bytes, and the root that it states for them. */
const served = new Map<string, { readonly bytes: Uint8Array; readonly root?: string }>()
const trusted = await upstream(t, (id, _, response) => {
  const found = served.get(id)
  if (found === undefined) response.writeHead(404).end()
  else {
    const root = found.root === undefined ? {} : { 'x-gateway-root-transaction-id': found.root }
    response.writeHead(200, { 'content-length': found.bytes.length, ...root }).end(found.bytes)
  }
})
const settings = {
  DEVNET_SEED: 'false',
  SERVICES: 'gateway',
  ADMIN_API_KEY: key,
  ANS104_UNBUNDLE_FILTER: '{"never":true}',
  TRUSTED_GATEWAYS_URLS: JSON.stringify({ [trusted.url]: { priority: 1, trusted: true } }),
  GATEWAYS_ROOT_TX_URLS: JSON.stringify({ [trusted.url]: 1 }),
  GATEWAYS_ROOT_TX_RATE_LIMIT_BURST_SIZE: '1000',
}
let program: Running = await run(t, folder, settings)
let payer = await payerAt(program.urls.devnet ?? '')

async function restart(more: Readonly<Record<string, string>> = {}): Promise<void> {
  await program.stop()
  program = await run(t, folder, { ...settings, ...more })
  payer = await payerAt(program.urls.devnet ?? '')
}

type Headers = Readonly<Record<string, string>>

async function order(path: 'block-data' | 'unblock-data', id: string): Promise<void> {
  const ground = path === 'block-data' ? { notes: 'a test', source: 'tests' } : {}
  const answer = await fetch(`${program.urls.gateway}/gateway/admin/${path}`, {
    method: 'PUT',
    headers: { authorization: `Bearer ${key}` },
    body: JSON.stringify({ id, ...ground }),
  })
  if (!answer.ok) throw new Error(await answer.text())
}

const block = (id: string): Promise<void> => order('block-data', id)

async function statusOf(id: string, headers: Headers = {}): Promise<number> {
  const answer = await fetch(`${program.urls.gateway}/raw/${id}`, { headers })
  await answer.arrayBuffer()
  return answer.status
}

async function isVerified(id: string): Promise<boolean> {
  const answer = await fetch(`${program.urls.gateway}/raw/${id}`)
  await answer.arrayBuffer()
  return answer.headers.get('x-gateway-verified') === 'true'
}

/** An item in the data of a transaction. */
interface Place {
  /** All that the item lies in: the transaction first. */
  readonly around: readonly string[]
  readonly hints: Headers
}

const some = (bytes = 300): MadeItem => item(randomBytes(bytes))

/** Data that hold an item, in each way in which one can lie somewhere; and the items between. */
const kinds: Readonly<
  Record<string, (made: MadeItem) => { data: Uint8Array; between: MadeItem[]; isBundle: boolean }>
> = {
  'data that is no bundle': (made) => ({
    data: Buffer.concat([randomBytes(1000), made.bytes, randomBytes(50)]),
    between: [],
    isBundle: false,
  }),
  'a bundle that lists it': (made) => ({ data: encodeBundle([some(), made]), between: [], isBundle: true }),
  'a bundle in a bundle': (made) => {
    const inner = bundleItem([some(), made])
    return { data: encodeBundle([some(), inner]), between: [inner], isBundle: true }
  },
  'bundles deeper than a search goes': (made) => {
    const between: MadeItem[] = []
    let last = made
    for (let depth = 0; depth < 14; depth += 1) {
      last = bundleItem([last])
      between.unshift(last)
    }
    return { data: encodeBundle([some(), last]), between, isBundle: true }
  },
  'an item of another kind in a bundle': (made) => {
    const plain = item(Buffer.concat([randomBytes(5000), made.bytes, randomBytes(50)]), {
      'Content-Type': 'application/zip',
    })
    return { data: encodeBundle([some(), plain]), between: [plain], isBundle: true }
  },
  'an item of another kind in two bundles': (made) => {
    const plain = item(Buffer.concat([randomBytes(500), made.bytes]))
    const inner = bundleItem([some(), plain])
    return { data: encodeBundle([inner]), between: [inner, plain], isBundle: true }
  },
}

async function placed(kind: string, made = some(3000)): Promise<Place & { readonly made: MadeItem }> {
  const make = kinds[kind]
  if (make === undefined) throw new Error(kind)
  const { data, between, isBundle } = make(made)
  const root = await payer.post(data, isBundle ? bundleTags : {})
  const hints = {
    'x-gateway-root-transaction-id': root,
    'x-gateway-root-item-offset': String(Buffer.from(data).indexOf(made.bytes)),
    'x-gateway-root-item-size': String(made.bytes.length),
  }
  return { made, around: [root, ...between.map(({ id }) => id)], hints }
}

/** The first, the last and one between. */
const ends = (around: readonly string[]): readonly string[] => [
  ...new Set([around[0], around[1], around[around.length >> 1], around.at(-1)].flatMap((id) => id ?? [])),
]

for (const kind of Object.keys(kinds)) {
  t.test(`of an item in ${kind}, all around it counts`, async (t) => {
    const { around } = await placed(kind)
    for (const [at] of ends(around).entries()) {
      const before = await placed(kind)
      await block(ends(before.around)[at] ?? '')
      const { id } = before.made
      t.equal(await statusOf(id, before.hints), 451, `${at}: blocked before it was asked for`)
      t.equal(await statusOf(id, { ...before.hints, range: 'bytes=0-50' }), 451, `${at}: a part`)
      t.not(await statusOf(id), 200, `${at}: without a hint`)

      const after = await placed(kind)
      t.equal(await statusOf(after.made.id, after.hints), 200, `${at}: nothing is blocked`)
      t.equal(await statusOf(after.made.id), 200)
      await block(ends(after.around)[at] ?? '')
      t.equal(await statusOf(after.made.id), 451, `${at}: blocked after it was served`)
      t.equal(await statusOf(after.made.id, after.hints), 451)
    }
  })
}

t.test('an item in a bundle that was asked for itself', async (t) => {
  const kind = 'bundles deeper than a search goes'
  const { made, around, hints } = await placed(kind)
  const parent = around.at(-1) ?? ''
  // The parent is here as a file of its own, and a hint may name it like a root.
  const inner = { ...hints, 'x-gateway-root-transaction-id': parent, 'x-gateway-root-item-offset': '96' }
  t.equal(await statusOf(made.id, hints), 200)
  await block(around[2] ?? '')
  t.equal(await statusOf(made.id, inner), 451)
  t.equal(await statusOf(made.id), 451)
})

t.test('hints that are false, or lead across items, have nothing served', async (t) => {
  const { made, hints } = await placed('a bundle that lists it')
  const at = Number(hints['x-gateway-root-item-offset'])
  for (const offset of [at - 1, at + 1, 0, 10 ** 9]) {
    const wrong = { ...hints, 'x-gateway-root-item-offset': String(offset) }
    // The root is right: its directory leads to the item.
    t.equal(await statusOf(made.id, wrong), 200)
  }
  const across = some(3000)
  const halves = [across.bytes.subarray(0, 1000), across.bytes.subarray(1000)]
  const data = Buffer.concat([encodeHeader(halves), ...halves])
  const root = await payer.post(data, bundleTags)
  const named = {
    'x-gateway-root-transaction-id': root,
    'x-gateway-root-item-offset': String(data.indexOf(across.bytes)),
    'x-gateway-root-item-size': String(across.bytes.length),
  }
  t.not(await statusOf(across.id, named), 200)
})

/** The header of a bundle of such items, under other ids. */
function encodeHeader(items: readonly Uint8Array[]): Uint8Array {
  const made = items.map(() => some())
  const listed = items.map((bytes, at) => ({ id: made[at]?.id ?? '', payload: bytes, bytes }))
  const whole = encodeBundle(listed as readonly MadeItem[])
  return whole.subarray(0, 32 + 64 * items.length)
}

for (const [kind, other] of [
  ['a bundle that lists it', 'data that is no bundle'],
  ['a bundle that lists it', 'a bundle that lists it'],
  ['data that is no bundle', 'a bundle in a bundle'],
  ['bundles deeper than a search goes', 'an item of another kind in a bundle'],
] as const) {
  t.test(`an item in ${kind}, and a copy in ${other}`, async (t) => {
    const own = await placed(kind)
    const copy = await placed(other, own.made)
    const { id } = own.made
    t.equal(await statusOf(id, copy.hints), 200)
    t.equal(await statusOf(id), 200)
    await block(copy.around.at(-1) ?? '')
    t.equal(await statusOf(id, copy.hints), 451)
    t.equal(await statusOf(id), 451, 'nothing else is at hand')
    t.equal(await statusOf(id, { ...own.hints, range: 'bytes=7-50' }), 206, 'a part from elsewhere')
    t.equal(await statusOf(id, own.hints), 200, 'it lies elsewhere, too')
    t.equal(await statusOf(id), 200)
    t.equal(await statusOf(id, copy.hints), 200)
    await block(own.around[0] ?? '')
    t.equal(await statusOf(id, own.hints), 451, 'both are blocked')
    t.equal(await statusOf(id), 451)
    await order('unblock-data', copy.around.at(-1) ?? '')
    t.equal(await statusOf(id, copy.hints), 200)
    await block(id)
    t.equal(await statusOf(id, copy.hints), 451, 'the item is blocked, wherever it lies')
  })
}

t.test('what a trusted gateway sends is not blocked by a place that a client named', async (t) => {
  const own = some(3000)
  const copy = await placed('a bundle that lists it', own)
  served.set(own.id, { bytes: own.payload })
  t.equal(await statusOf(own.id, copy.hints), 200)
  t.ok(trusted.requested.includes(own.id))
  await eventually('the item is verified', () => isVerified(own.id))
  await block(copy.around[0] ?? '')
  t.equal(await statusOf(own.id), 200)

  const fresh = some(3000)
  const other = await placed('data that is no bundle', fresh)
  served.set(fresh.id, { bytes: fresh.payload })
  await block(other.around[0] ?? '')
  t.equal(await statusOf(fresh.id, other.hints), 200, 'also where it was blocked before')
})

t.test('what a trusted gateway sends is blocked by the place that it states', async (t) => {
  for (const isNamed of [false, true]) {
    const { made, around, hints } = await placed('a bundle that lists it')
    served.set(made.id, { bytes: made.payload, root: around[0] ?? '' })
    t.equal(await statusOf(made.id, isNamed ? hints : {}), 200)
    await eventually('the made item is verified', () => isVerified(made.id))
    await block(around[0] ?? '')
    t.equal(await statusOf(made.id), 451)
    t.equal(await statusOf(made.id, hints), 451)
  }
})

t.test('bytes without a place do not stand in for a copy that was blocked', async (t) => {
  const { made, around, hints } = await placed('an item of another kind in a bundle')
  t.equal(await statusOf(made.id, hints), 200)
  served.set(made.id, { bytes: made.payload })
  await block(around[1] ?? '')
  t.equal(await statusOf(made.id), 451, 'it may have read them in the same place')

  const stated = await placed('an item of another kind in a bundle')
  const other = await placed('a bundle that lists it', stated.made)
  t.equal(await statusOf(stated.made.id, stated.hints), 200)
  served.set(stated.made.id, { bytes: stated.made.payload, root: other.around[0] ?? '' })
  await block(stated.around[1] ?? '')
  t.equal(await statusOf(stated.made.id), 200, 'it states a place that is not blocked')
})

t.test(
  'caches in front do not keep what is blocked by a place, which the next client may not name',
  async (t) => {
    const { made, around, hints } = await placed('a bundle that lists it')
    const kept = async (headers: Headers = {}): Promise<[number, string | null]> => {
      const answer = await fetch(`${program.urls.gateway}/raw/${made.id}`, { headers })
      await answer.arrayBuffer()
      return [answer.status, answer.headers.get('cache-control')]
    }
    await block(around[0] ?? '')
    t.same(await kept(hints), [451, 'no-store'])
    await order('unblock-data', around[0] ?? '')
    t.equal(await statusOf(made.id, hints), 200)
    await block(around[0] ?? '')
    const [status, caching] = await kept()
    t.equal(status, 451)
    t.match(caching ?? '', /must-revalidate/)
    await block(made.id)
    t.match(await kept(hints), [451, /immutable/])
  },
)

t.test('after a restart', async (t) => {
  const scenes = await Promise.all([
    placed('an item of another kind in a bundle'),
    placed('bundles deeper than a search goes'),
  ])
  for (const { made, hints } of scenes) t.equal(await statusOf(made.id, hints), 200)
  await restart()
  for (const { made, around } of scenes) {
    t.equal(await statusOf(made.id), 200)
    await block(around[1] ?? '')
    t.equal(await statusOf(made.id), 451)
  }
  await restart()
  for (const { made, hints } of scenes) {
    t.equal(await statusOf(made.id), 451)
    t.equal(await statusOf(made.id, hints), 451)
    const elsewhere = await placed('a bundle that lists it', made)
    t.equal(await statusOf(made.id, elsewhere.hints), 200)
    t.equal(await statusOf(made.id), 200)
  }
})

t.test(
  'where the index has the item, a block of its place there holds for it, and one of a copy does not',
  async (t) => {
    await restart({ ANS104_UNBUNDLE_FILTER: '{"always":true}' })
    const own = await placed('a bundle in a bundle')
    const { id } = own.made
    await eventually('the content is verified', () => isVerified(id))
    const copy = await placed('data that is no bundle', own.made)
    t.equal(await statusOf(id, copy.hints), 200)
    await block(copy.around[0] ?? '')
    t.equal(await statusOf(id, copy.hints), 200)
    await block(own.around[1] ?? '')
    const third = await placed('a bundle that lists it', own.made)
    t.equal(await statusOf(id, third.hints), 451)
    t.equal(await statusOf(id), 451)
  },
)
