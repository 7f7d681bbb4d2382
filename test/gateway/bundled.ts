import { randomBytes } from 'node:crypto'
import type { Test } from 'tap'
import type { Attributes } from '../../src/catalog/attributes.js'
import { type JudgedItem, packJudged } from '../../src/catalog/judged-items.js'
import { bundleCountSize, bundleEntrySize, encodeBundle } from '../../src/format/bundle.js'
import type { Id } from '../../src/format/id.js'
import { parseItemHeader } from '../../src/format/item.js'
import { isRefusal } from '../../src/format/refusal.js'
import { tagOf } from '../../src/format/tag.js'
import { ed25519Signer, type ItemSigner, signItem } from '../../src/proof/sign.js'
import { learnedOfItem } from '../../src/source/roots/learned.js'
import { sha256, someId } from '../source/rig.js'
import type { Stage } from './rig.js'

export const ed25519 = ed25519Signer(randomBytes(32))

/** A signed item. */
export interface Made {
  readonly id: Id
  readonly bytes: Buffer
  readonly payload: Buffer
  readonly headerSize: number
}

export function itemOf(payload: Buffer, signer: ItemSigner = ed25519, type = 'text/html'): Made {
  const bytes = Buffer.from(
    signItem(signer, { anchor: randomBytes(32), tags: [tagOf('Content-Type', type)] }, payload),
  )
  const header = parseItemHeader(bytes)
  if (header === 'more' || isRefusal(header)) throw new Error('an item of our own does not parse')
  return { id: header.id, bytes, payload, headerSize: header.headerSize }
}

/** Puts a bundle into the store, and tells where its items lie. */
export async function bundled(on: Stage, items: readonly Made[], root: Partial<Attributes> = {}) {
  const bytes = Buffer.from(encodeBundle(items))
  const rootId = someId()
  const path = await on.keep(rootId, bytes, { height: 7, ...root })
  let at = bundleCountSize + items.length * bundleEntrySize
  for (const { id, bytes: item, headerSize } of items) {
    const offsets = { rootItemOffset: at, parentItemOffset: at, itemSize: item.length, headerSize }
    const place = { rootId, parentId: rootId, path: [rootId], ...offsets }
    const known = { id, size: item.length - headerSize, verified: false, trusted: false, place }
    await on.rig.keeper.ask({ kind: 'learn', attributes: [known] })
    at += item.length
  }
  return { rootId, digest: sha256(bytes), path }
}

export async function isServed(t: Test, on: Stage, { id, payload }: Made): Promise<void> {
  const answer = await on.ask(`/${id}`)
  t.equal(answer.status, 200)
  t.ok(answer.body.equals(payload))
  t.equal(answer.headers['x-cache'], 'HIT')
  t.equal(answer.headers['content-type'], 'text/html')
  t.equal(answer.headers['x-gateway-verified'], 'true')
  t.equal(answer.headers['x-gateway-digest'], sha256(payload).toString('base64url'))
  t.equal(answer.headers['content-digest'], `sha-256=:${sha256(payload).toString('base64')}:`)
}

/** Tells the catalog what the opening of a bundle tells: headers of its items, and what was judged in it. */
export async function opened(on: Stage, digest: Uint8Array, items: readonly Made[]) {
  const judged: JudgedItem[] = []
  for (const { id, bytes, payload } of items) {
    const known = on.rig.catalog.attributes(id)
    const header = parseItemHeader(bytes)
    if (known?.place === undefined || header === 'more' || isRefusal(header)) throw new Error('no item')
    await on.rig.keeper.ask({ kind: 'learn', attributes: [{ ...known, ...learnedOfItem(header) }] })
    judged.push({ id, place: known.place, digest: sha256(payload) })
  }
  await on.rig.keeper.ask({ kind: 'judged', bundle: digest, items: packJudged(digest, judged) })
}
