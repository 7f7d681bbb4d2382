import { randomBytes } from 'node:crypto'
import type { Test } from 'tap'
import { systemClock } from '../../src/actor/clock.js'
import { RemoteChain } from '../../src/chain/remote-chain.js'
import type { Devnet } from '../../src/devnet/devnet.js'
import { encodeBundle } from '../../src/format/bundle.js'
import type { Id } from '../../src/format/id.js'
import { parseItemHeader } from '../../src/format/item.js'
import { isRefusal } from '../../src/format/refusal.js'
import { type Tag, tagOf } from '../../src/format/tag.js'
import { ed25519Signer, signItem } from '../../src/proof/sign.js'
import { patient } from '../chain/hostile.js'
import { devnetOf, type Payer, payerOf, postedBy } from '../devnet/posting.js'

/** An embedded node with a payer, and a client of it. */
export interface Weave {
  readonly devnet: Devnet
  readonly payer: Payer
  readonly chain: RemoteChain
  /** Posts data as one transaction; mined at once. */
  post(data: Uint8Array, tags?: Readonly<Record<string, string>>): Promise<Id>
}

export async function weave(t: Test): Promise<Weave> {
  const devnet = await devnetOf(t)
  const payer = await payerOf(devnet)
  const chain = new RemoteChain(
    { ...patient, nodes: [devnet.url], callsMax: 100, waitingMax: 1000 },
    systemClock,
  )
  t.teardown(() => chain.close())
  return {
    devnet,
    payer,
    chain,
    async post(data, tags) {
      const id = await postedBy(payer, data, tags)
      devnet.mine()
      return id
    },
  }
}

export interface MadeItem {
  readonly id: Id
  readonly bytes: Uint8Array
  readonly payload: Uint8Array
}

const signer = ed25519Signer(randomBytes(32))

/** A signed data item. */
export function item(payload: Uint8Array, tags: Readonly<Record<string, string>> = {}): MadeItem {
  const list: Tag[] = Object.entries(tags).map(([name, value]) => tagOf(name, value))
  const bytes = signItem(signer, { tags: list, anchor: randomBytes(32) }, payload)
  const header = parseItemHeader(bytes)
  if (header === 'more' || isRefusal(header)) throw new Error('an item of our own does not parse')
  return { id: header.id, bytes, payload }
}

/** The same item under a signature that nobody made. */
export function unsigned({ bytes, payload }: MadeItem): MadeItem {
  const spoiled = Buffer.from(bytes)
  // Behind the two bytes of the signature's type.
  randomBytes(64).copy(spoiled, 2)
  const header = parseItemHeader(spoiled)
  if (header === 'more' || isRefusal(header)) throw new Error('an item of our own does not parse')
  return { id: header.id, bytes: spoiled, payload }
}

export const bundleTags = { 'Bundle-Format': 'binary', 'Bundle-Version': '2.0.0' }

/** A bundle as the payload of an item. */
export function bundleItem(items: readonly MadeItem[]): MadeItem {
  return item(encodeBundle(items), bundleTags)
}
