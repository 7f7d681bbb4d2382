import { type JsonWebKey, randomBytes } from 'node:crypto'
import { mkdir } from 'node:fs/promises'
import type { Chain } from '../chain/chain.js'
import { encodeBase64url } from '../format/base64url.js'
import { encodeBundle } from '../format/bundle.js'
import { type Id, idOfBytes } from '../format/id.js'
import { isRefusal, type Refusal } from '../format/refusal.js'
import { type Tag, tagOf } from '../format/tag.js'
import { transactionJson } from '../format/transaction.js'
import { dataTree } from '../proof/data-root.js'
import { sha256 } from '../proof/digest.js'
import { newRsaKey } from '../proof/new-key.js'
import { ed25519Signer, signItem, signTransaction } from '../proof/sign.js'
import { getHead } from './get-head.js'
import type { Planted } from './seed.js'
import { largeFile, sitePages } from './site.js'

export interface PlantingParts {
  readonly chain: Chain
  /** Base URL of the embedded node. */
  readonly node: string
  readonly folder: string
  /** Stops the work; rejects with its reason. */
  readonly end: AbortSignal
}

/** Makes the site, signs it with a wallet of its own and posts it. Rejects where the node refuses. */
export async function postSite({ chain, node, folder, end }: PlantingParts): Promise<Planted> {
  await mkdir(folder, { recursive: true })
  // A wallet for this purpose only; its key is not kept. One of 4096 bits takes a slow machine more than two seconds to make.
  const wallet = await newRsaKey(2048)
  const address = encodeBase64url(sha256(Buffer.from(wallet.n ?? '', 'base64url')))
  await getOrThrow(`${node}/mint/${address}/${10n ** 15n}`)
  const post = (bytes: Uint8Array, tags: readonly Tag[]): Promise<Id> => {
    end.throwIfAborted()
    return postData(chain, wallet, bytes, tags)
  }

  const ids = new Map<string, Id>()
  for (const { path, contentType, bytes } of sitePages()) {
    ids.set(path, await post(bytes, [tagOf('Content-Type', contentType)]))
  }
  ids.set('large.bin', await post(largeFile(), [tagOf('Content-Type', 'application/octet-stream')]))
  const { bundle, item, nested } = bundleOf()
  const root = await post(bundle, bundleTags)
  const site = await post(manifestOf(ids), [tagOf('Content-Type', 'application/x.arweave-manifest+json')])
  await getOrThrow(`${node}/mine`)
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

/** A bundle of an item and of a bundle that holds another (ANS-104), signed by a new Ed25519 key. */
function bundleOf(): { bundle: Uint8Array; item: Id; nested: Id } {
  const signer = ed25519Signer(randomBytes(32))
  const make = (tags: readonly Tag[], payload: Uint8Array): { id: Id; bytes: Uint8Array } => {
    const bytes = signItem(signer, { tags }, payload)
    return { id: idOfBytes(sha256(bytes.subarray(2, 66))), bytes }
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
      lastTx: Buffer.from(done(await chain.tip()).anchor, 'base64url'),
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

/** The value; throws a refusal, because the embedded node has no reason to refuse. */
function done<T>(outcome: T | Refusal): T {
  if (isRefusal(outcome)) throw new Error(`the embedded node refused: ${outcome.message}`)
  return outcome
}

async function getOrThrow(url: string): Promise<void> {
  const { statusCode } = await getHead(url)
  if (statusCode !== 200) throw new Error(`${url} answered ${statusCode}`)
}
