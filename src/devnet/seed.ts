import { generateKeyPair, type JsonWebKey } from 'node:crypto'
import { mkdir, open, readFile, rename } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { pause } from '../actor/clock.js'
import type { Log } from '../actor/log.js'
import type { Chain } from '../chain/chain.js'
import { encodeBase64url } from '../format/base64url.js'
import { encodeBundle } from '../format/bundle.js'
import { type Id, idOfBytes } from '../format/id.js'
import { isRefusal, type Refusal } from '../format/refusal.js'
import { type Tag, tagOf } from '../format/tag.js'
import { transactionJson } from '../format/transaction.js'
import { dataTree } from '../proof/data-root.js'
import { sha256 } from '../proof/digest.js'
import { rsaSigner, signItem, signTransaction } from '../proof/sign.js'
import { largeFile, sitePages } from './site.js'

/** Name to id: what a fresh devnet has to show. */
export type Examples = Readonly<Record<string, string>>

export interface Planting {
  /** Base URLs. */
  readonly gateway: string
  readonly node: string
  readonly chain: Chain
  /** Where it is remembered what was planted. */
  readonly folder: string
  readonly log: Log
  /** Stops the work; rejects with its reason. */
  readonly end: AbortSignal
}

interface Planted {
  readonly examples: Examples
  /** Example name to the bundle that holds it. */
  readonly roots: Readonly<Record<string, string>>
}

/** How long the gateway may take to have an example proven and in its cache. */
const warmMs = 30_000

/**
 * Puts the site onto the embedded chain, once, and has every example in the gateway's cache when it resolves. A start that was
 * killed half way plants again: ids differ, nothing else is lost. Rejects where node or gateway do not do their part.
 */
export async function plant(planting: Planting): Promise<Examples> {
  const file = join(planting.folder, 'seed.json')
  const known = await remembered(file)
  if (known === undefined) planting.log.info('putting a small site onto the embedded chain')
  const planted = known ?? (await grow(planting))
  if (known === undefined) await remember(file, planted)
  for (const [name, id] of Object.entries(planted.examples)) await warm(planting, id, planted.roots[name])
  return planted.examples
}

async function remembered(file: string): Promise<Planted | undefined> {
  try {
    return JSON.parse(await readFile(file, 'utf8')) as Planted
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined
    throw error
  }
}

async function remember(file: string, planted: Planted): Promise<void> {
  const draft = await open(`${file}.new`, 'w')
  await draft.writeFile(JSON.stringify(planted, null, 2))
  await draft.sync()
  await draft.close()
  await rename(`${file}.new`, file)
}

async function grow({ chain, node, folder, end }: Planting): Promise<Planted> {
  await mkdir(folder, { recursive: true })
  // A throw-away wallet: nobody needs it again.
  const { privateKey } = await promisify(generateKeyPair)('rsa', {
    modulusLength: 4096,
    publicExponent: 65537,
  })
  const wallet = privateKey.export({ format: 'jwk' })
  const address = encodeBase64url(sha256(Buffer.from(wallet.n ?? '', 'base64url')))
  await told(`${node}/mint/${address}/${10n ** 15n}`)
  const post = (bytes: Uint8Array, tags: readonly Tag[]): Promise<Id> => {
    end.throwIfAborted()
    return postData(chain, wallet, bytes, tags)
  }

  const ids = new Map<string, Id>()
  for (const { path, contentType, bytes } of sitePages()) {
    ids.set(path, await post(bytes, [tagOf('Content-Type', contentType)]))
  }
  ids.set('large.bin', await post(largeFile(), [tagOf('Content-Type', 'application/octet-stream')]))
  const { bundle, item, nested } = bundleOf(wallet)
  const root = await post(bundle, bundleTags)
  const site = await post(manifestOf(ids), [tagOf('Content-Type', 'application/x.arweave-manifest+json')])
  await told(`${node}/mine`)
  const id = (path: string): Id => {
    const found = ids.get(path)
    if (found === undefined) throw new Error(`the site has no ${path}`)
    return found
  }
  return {
    examples: { site, page: id('index.html'), image: id('image.png'), item, nested, large: id('large.bin') },
    roots: { item: root, nested: root },
  }
}

const bundleTags = [tagOf('Bundle-Format', 'binary'), tagOf('Bundle-Version', '2.0.0')]

/** A bundle of an item and of a bundle that holds another (ANS-104). */
function bundleOf(wallet: JsonWebKey): { bundle: Uint8Array; item: Id; nested: Id } {
  const signer = rsaSigner(wallet)
  const make = (tags: readonly Tag[], payload: Uint8Array): { id: Id; bytes: Uint8Array } => {
    const bytes = signItem(signer, { tags }, payload)
    return { id: idOfBytes(sha256(bytes.subarray(2, 514))), bytes }
  }
  const text = (body: string): { id: Id; bytes: Uint8Array } =>
    make([tagOf('Content-Type', 'text/plain; charset=utf-8'), tagOf('App-Name', 'Sluice')], Buffer.from(body))
  const item = text('An item: signed data inside a bundle.\n')
  const nested = text('An item inside a bundle inside a bundle.\n')
  const inner = make(bundleTags, encodeBundle([nested]))
  return { bundle: encodeBundle([item, inner]), item: item.id, nested: nested.id }
}

function manifestOf(ids: ReadonlyMap<string, Id>): Uint8Array {
  const paths = Object.fromEntries([...ids].map(([path, id]) => [path, { id }]))
  const index = { path: 'index.html' }
  const fallback = { id: ids.get('404.html') }
  return Buffer.from(JSON.stringify({ manifest: 'arweave/paths', version: '0.2.0', index, fallback, paths }))
}

async function postData(
  chain: Chain,
  wallet: JsonWebKey,
  bytes: Uint8Array,
  tags: readonly Tag[],
): Promise<Id> {
  const tree = dataTree(bytes)
  const nothing = new Uint8Array(0)
  const tx = signTransaction(
    {
      format: 2,
      lastTx: Buffer.from(done(await chain.anchor()), 'base64url'),
      tags,
      target: nothing,
      quantity: 0n,
      data: nothing,
      dataSize: bytes.length,
      dataRoot: tree.root,
      reward: done(await chain.price(bytes.length)),
      denomination: 0,
    },
    wallet,
  )
  done(await chain.postTransaction(transactionJson(tx, { withData: false })))
  let start = 0
  for (const [index, { end }] of tree.leaves.entries()) {
    // The leaf of a zero-length last chunk belongs to the tree, but there is nothing to post.
    if (end === start) continue
    const chunk = {
      data_root: encodeBase64url(tree.root),
      data_size: String(bytes.length),
      data_path: encodeBase64url(tree.path(index)),
      offset: String(end - 1),
      chunk: encodeBase64url(bytes.subarray(start, end)),
    }
    done(await chain.postChunk(chunk))
    start = end
  }
  return tx.id
}

/** The value, or an error: on one's own node nothing is expected to fail. */
function done<T>(outcome: T | Refusal): T {
  if (isRefusal(outcome)) throw new Error(`the embedded node refused: ${outcome.message}`)
  return outcome
}

async function told(url: string): Promise<void> {
  const answer = await fetch(url)
  if (!answer.ok) throw new Error(`${url} answered ${answer.status}: ${await answer.text()}`)
  await answer.arrayBuffer()
}

/** Asks the gateway for an id until it answers from its cache with proven bytes. */
async function warm({ gateway, end }: Planting, id: string, root: string | undefined): Promise<void> {
  const headers = root === undefined ? {} : { 'X-GATEWAY-Root-Transaction-Id': root }
  for (let waited = 0; waited <= warmMs; waited += 100) {
    const answer = await fetch(`${gateway}/raw/${id}`, { headers, signal: end })
    await answer.arrayBuffer()
    // The operator's limits hold for this machine too: what they do not let through comes when it is asked for.
    if (answer.status === 429 || answer.status === 402) return
    const hit = answer.headers.get('x-cache') === 'HIT'
    const verified = answer.headers.get('x-gateway-verified') ?? answer.headers.get('x-ar-io-verified')
    // What the operator has blocked, or put behind a limit, is an answer too.
    if ((answer.ok && hit && verified === 'true') || [402, 429, 451].includes(answer.status)) return
    await pause(100, end)
  }
  throw new Error(`the gateway did not serve the example ${id} from its cache within ${warmMs / 1000} s`)
}
