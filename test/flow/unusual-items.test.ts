/** Items in forms that the network takes and few clients write: served, found, proven and bundled with their own bytes. */
import { gzipSync } from 'node:zlib'
import { DataItem } from 'arbundles'
import t, { type Test } from 'tap'
import { ProvingFetcher } from '../../src/client/fetch/index.js'
import { encodeTags } from '../../src/format/avro-tags.js'
import { encodeBundle } from '../../src/format/bundle.js'
import { encodeItem } from '../../src/format/item.js'
import { tagOf } from '../../src/format/tag.js'
import { itemMessage, verifyItem } from '../../src/proof/item-verifier.js'
import { ed25519Signer } from '../../src/proof/sign.js'
import { eventually } from '../eventually.js'
import { fixture, sound } from '../fixture-file.js'
import { payerAt } from './payer.js'
import { run, sluice } from './running.js'

const settings = { SERVICES: 'gateway,upload', DEVNET_BLOCK_MS: '0', UPLOAD_BUNDLE_WAIT_SECONDS: '0' }
const program = await run(t, t.testdir(), settings)
const { upload = '', gateway = '', devnet: node = '' } = program.urls
const payer = await payerAt(node)
const signer = ed25519Signer(Buffer.alloc(32, 21))

/** A signed item with just these bytes for its tags. */
function itemOf(rawTags: Uint8Array, count: number, payload: Uint8Array): Buffer {
  const { signatureType, owner } = signer
  const none = new Uint8Array(0)
  const signature = signer.sign(
    itemMessage({ signatureType, owner, target: none, anchor: none, rawTags }, payload),
  )
  const head = encodeItem({ signatureType, owner, signature }, none)
  const counts = Buffer.alloc(16)
  counts.writeBigUInt64LE(BigInt(count), 0)
  counts.writeBigUInt64LE(BigInt(rawTags.length), 8)
  return Buffer.concat([head.subarray(0, head.length - 16), counts, rawTags, payload])
}

function tagged(tags: Readonly<Record<string, string>>, payload: Uint8Array | string): Buffer {
  const list = Object.entries(tags).map(([name, value]) => tagOf(name, value))
  return itemOf(encodeTags(list), list.length, Buffer.from(payload))
}

const type = Buffer.from(encodeTags([tagOf('Content-Type', 'text/plain')]))
/** The same tag in other forms. */
const forms: Readonly<Record<string, Buffer>> = {
  'no closing zero': type.subarray(0, -1),
  'bytes after the end': Buffer.concat([type, Buffer.from('more')]),
  'a block with its size': Buffer.concat([Buffer.of(1, 2 * (type.length - 2)), type.subarray(1)]),
  'a block with a false size': Buffer.concat([Buffer.of(1, 6), type.subarray(1)]),
  'an overlong count': Buffer.concat([Buffer.of(0x82, 0x80, 0), type.subarray(1)]),
}

async function query(id: string): Promise<{
  readonly tags: readonly { readonly name: string; readonly value: string }[]
  readonly data: { readonly type: string | null }
  readonly bundledIn: { readonly id: string } | null
}> {
  const text = `{ transaction(id: "${id}") { tags { name value } data { type } bundledIn { id } } }`
  const answer = await fetch(`${gateway}/graphql`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ query: text }),
  })
  const { data } = (await answer.json()) as { data: { transaction: never } }
  return data.transaction
}

async function post(item: Uint8Array): Promise<string> {
  const answer = await fetch(`${upload}/v1/tx`, { method: 'POST', body: item })
  if (answer.status !== 200) throw new Error(`${answer.status} ${await answer.text()}`)
  return ((await answer.json()) as { id: string }).id
}

/** Forms of which a gateway tells too little before the item lies in a bundle. */
const unguessed = ['bytes after the end', 'a block with a false size', 'an overlong count']

/** One item as it must be seen from everywhere. */
async function looked(t: Test, name: string, item: Buffer, isBundled: boolean): Promise<void> {
  t.ok(await DataItem.verify(item), `${name}: the usual library takes it`)
  const library = new DataItem(item)
  const served = await fetch(`${gateway}/raw/${library.id}`)
  t.equal(served.status, 200, name)
  t.equal(served.headers.get('content-type'), library.tags[0]?.value, name)
  const found = await query(library.id)
  t.strictSame(found.tags, library.tags, name)
  t.equal(found.data.type, library.tags[0]?.value, name)
  const fetcher = new ProvingFetcher({ gatewayUrls: [gateway] })
  if (!isBundled && unguessed.includes(name)) {
    await t.rejects(fetcher.content(library.id), { message: /tags are in an unusual form/ }, name)
    return
  }
  const proven = await fetcher.content(library.id)
  t.equal(proven.headers.get('x-verified'), 'owner', name)
  t.ok(library.rawData.equals(Buffer.from(await proven.arrayBuffer())), name)
}

const odd = [
  ...Object.entries(forms).map(([name, raw]) => [name, itemOf(raw, 1, Buffer.from(`has ${name}`))] as const),
  ['of the network', Buffer.from(fixture('items/no-closing-zero.item'))] as const,
]

t.test('unusual arrays of tags are uploaded, and go into a bundle with their own bytes', async (t) => {
  for (const [, item] of odd) await post(item)
  for (const [name, item] of odd) await looked(t, name, item, false)
  for (const [name, item] of odd) {
    const { id } = sound(verifyItem(item))
    const root = await eventually('the gateway knows the root', async () => {
      await fetch(`${node}/mine`)
      const place = await fetch(`${gateway}/raw/${id}`, { method: 'HEAD' })
      return place.headers.get('x-gateway-root-transaction-id') ?? undefined
    })
    const head = await fetch(`${gateway}/raw/${id}`, { method: 'HEAD' })
    const from = Number(head.headers.get('x-gateway-root-data-item-offset'))
    const range = { range: `bytes=${from}-${from + item.length - 1}` }
    const bytes = Buffer.from(await (await fetch(`${gateway}/raw/${root}`, { headers: range })).arrayBuffer())
    t.ok(bytes.equals(item), `${name}: the bundle has the uploaded bytes`)
    await looked(t, name, item, true)
  }
})

t.test('unusual arrays of tags in a bundle of others are opened, found and proven', async (t) => {
  const items = Object.entries(forms).map(
    ([name, raw]) => [name, itemOf(raw, 1, Buffer.from(`foreign, with ${name}`))] as const,
  )
  const bundle = encodeBundle(items.map(([, item]) => ({ id: sound(verifyItem(item)).id, bytes: item })))
  await payer.post(bundle, { 'Bundle-Format': 'binary', 'Bundle-Version': '2.0.0' })
  for (const [name, item] of items) {
    await eventually(
      'the item is in the index',
      async () => (await query(sound(verifyItem(item)).id)) ?? undefined,
    )
    await looked(t, name, item, true)
  }
  const [, first = Buffer.alloc(0)] = items[0] ?? []
  const report = await sluice(['verify', sound(verifyItem(first)).id, '--gateway', gateway, '--node', node])
  t.match(report.out, /yes item signature/, report.out + report.err)
})

t.test('names of tags that become header fields have no letter case', async (t) => {
  const page = '<h1>a page</h1>'
  const id = await post(tagged({ 'content-type': 'text/html', 'Content-Type': 'image/png' }, page))
  const shown = await fetch(`${gateway}/raw/${id}`)
  t.match(shown.headers.get('content-type'), /^text\/html/)
  t.equal((await query(id)).data.type, 'text/html')

  const packed = await post(
    tagged({ 'content-type': 'text/plain', 'content-encoding': 'gzip' }, gzipSync(page)),
  )
  const unpacked = await fetch(`${gateway}/raw/${packed}`)
  t.equal(unpacked.headers.get('content-encoding'), 'gzip')
  t.equal(await unpacked.text(), page)

  const manifest = { manifest: 'arweave/paths', version: '0.2.0', index: { path: 'a' }, paths: { a: { id } } }
  const words = 'Application/X.Arweave-Manifest+JSON; charset=utf-8'
  const site = await post(tagged({ 'CONTENT-TYPE': words }, JSON.stringify(manifest)))
  for (const path of ['/', '/a']) {
    const answer = await fetch(`${gateway}/${site}${path}`)
    t.equal(answer.status, 200, path)
    t.equal(await answer.text(), page)
  }
  const proven = await new ProvingFetcher({ gatewayUrls: [gateway] }).fetch(`${site}/a`)
  t.equal(await proven.text(), page)
})

t.test('a type without a slash is the end of a name', async (t) => {
  for (const [stated, type] of [
    ['png', 'image/png'],
    ['rabbit', 'application/octet-stream'],
  ] as const) {
    const id = await post(tagged({ 'Content-Type': stated }, `a ${stated}`))
    t.equal((await fetch(`${gateway}/raw/${id}`)).headers.get('content-type'), type)
    t.equal((await query(id)).data.type, stated, 'the tag itself stays')
    const proven = await new ProvingFetcher({ gatewayUrls: [gateway] }).content(id)
    t.equal(proven.headers.get('content-type'), type)
  }
})

t.test('items that follow each other are listed in that order, the newest first', async (t) => {
  const ids: string[] = []
  for (let at = 0; at < 12; at++) ids.push(await post(tagged({ 'Drive-Id': 'in order' }, `revision ${at}`)))
  const text =
    '{ transactions(first: 100, tags: [{name: "Drive-Id", values: ["in order"]}]) { edges { node { id } } } }'
  const answer = await fetch(`${gateway}/graphql?query=${encodeURIComponent(text)}`)
  const { data } = (await answer.json()) as {
    data: { transactions: { edges: readonly { node: { id: string } }[] } }
  }
  t.strictSame(
    data.transactions.edges.map(({ node }) => node.id),
    ids.toReversed(),
  )
})

t.test('the program ends when it is told to', async (t) => {
  t.equal(await program.stop(), 0)
})
