import type { Gateways } from '../client/fetch/gateways.js'
import { encodeBase64url } from '../format/base64url.js'
import { Gathered } from '../format/gathered.js'
import type { Id } from '../format/id.js'
import { itemHeaderSizeMax, parseItemHeader } from '../format/item.js'
import { isRefusal, type Refusal, refuse } from '../format/refusal.js'
import { parseTransactionText } from '../format/transaction.js'
import { BundleVerifier } from '../proof/bundle-verifier.js'
import { DataRootHasher } from '../proof/data-root.js'
import { ItemVerifier } from '../proof/item-verifier.js'
import { nativeAddress, normalizedAddress } from '../proof/owner-address.js'
import { ownerOf, verifyTransaction } from '../proof/transaction-proof.js'
import { isBundle } from '../source/roots/learned.js'

/** A transaction of format 1 has its data in it, as base64url: 12 MiB at most. */
const transactionMaxBytes = 20 * 1024 * 1024

/** The finding whether the bytes are the owner's, where no other one is more precise. */
export const contentFinding = 'content'

/** Takes the payload as it arrives, and reports at the end who signed it. */
export interface Judge {
  update(bytes: Uint8Array): void
  /** The findings, in order. To be called once. */
  findings(): [string, string | Refusal][]
}

/** Judges a data item: its header is read out of the root that the gateway names, and must carry the id itself. */
export async function judgeOfItem(
  gateways: Gateways,
  id: Id,
  place: { root: string; offset: number; headerSizeMax: number },
): Promise<Judge | Refusal> {
  if (place.headerSizeMax > itemHeaderSizeMax())
    return refuse('forged', 'upstream', `no item has a header of ${place.headerSizeMax} bytes`)
  const range = `bytes=${place.offset}-${place.offset + place.headerSizeMax - 1}`
  const response = await gateways.get(`${gateways.urls[0]}/raw/${place.root}`, { range }, undefined, 'all')
  if (response.status !== 206)
    return refuse('upstream', 'upstream', `the root ${place.root} answered ${response.status}`)
  const bytes = await bodyUpTo(gateways, response, place.headerSizeMax)
  if (bytes === undefined) return refuse('forged', 'upstream', 'more bytes came than were requested')
  const header = parseItemHeader(bytes)
  if (header === 'more') return refuse('forged', 'upstream', 'the item header is cut off')
  if (isRefusal(header)) return header
  if (header.id !== id)
    return refuse('forged', 'upstream', `the root holds ${header.id} there, not this item`)
  const verifier = new ItemVerifier(header)
  const inner = isBundle(header.tags) ? new BundleVerifier() : undefined
  return {
    update: (bytes) => {
      verifier.update(bytes)
      inner?.update(bytes)
    },
    findings: () => {
      const held = verifier.finish()
      return [
        ['item signature', held === true ? `type ${header.signatureType}, over header and payload` : held],
        ['owner', ownerText(header.signatureType, header.owner)],
        [
          'in',
          refuse(
            'unknown',
            'upstream',
            `transaction ${place.root}, byte ${place.offset}, by the gateway's word`,
          ),
        ],
        ...itemFindings(inner),
      ]
    },
  }
}

/** Undefined: the body is longer. What a server announces is not relied on. */
async function bodyUpTo(
  servers: Gateways,
  response: Response,
  bytesMax: number,
): Promise<Uint8Array | undefined> {
  const gathered = new Gathered(bytesMax)
  for await (const piece of servers.pieces(response, Number.POSITIVE_INFINITY)) {
    if (gathered.sizeBytes + piece.length > bytesMax) return undefined
    gathered.add(piece)
  }
  return gathered.bytes()
}

/** Judges a transaction: its header comes from a base-layer node, and must carry the id and the data root itself. */
export async function judgeOfTransaction(nodes: Gateways, id: Id): Promise<Judge | Refusal> {
  const [node] = nodes.urls
  const response = await nodes.get(`${node}/tx/${id}`, {}, undefined, 'all')
  if (response.status !== 200) {
    return refuse('unknown', 'upstream', `the node ${node} answered ${response.status} for this transaction`)
  }
  const body = await bodyUpTo(nodes, response, transactionMaxBytes)
  if (body === undefined)
    return refuse('forged', 'upstream', `the node ${node} sends more than a transaction`)
  const tx = parseTransactionText(new TextDecoder().decode(body))
  if (isRefusal(tx)) return tx
  if (tx.id !== id) return refuse('forged', 'upstream', `the node answered with ${tx.id}`)
  const held = verifyTransaction(tx)
  const hasher = new DataRootHasher(tx.dataSize)
  const inner = isBundle(tx.tags) ? new BundleVerifier() : undefined
  return {
    update: (bytes) => {
      hasher.update(bytes)
      inner?.update(bytes)
    },
    findings: () => {
      const tree = hasher.finish()
      const same = !isRefusal(tree) && Buffer.from(tx.dataRoot).equals(tree.root)
      const unbound = refuse(
        'unknown',
        'upstream',
        'a signature of format 1 does not say where the data begins and ends',
      )
      const differs = refuse('forged', 'upstream', 'the bytes have another data root than was signed')
      return [
        ['transaction signature', held === true ? `format ${tx.format}` : held],
        ...(tx.format === 2
          ? [['data root', same ? encodeBase64url(tx.dataRoot) : differs] as [string, string | Refusal]]
          : [[contentFinding, unbound] as [string, string | Refusal]]),
        ['owner', ownerText(1, ownerOf(tx))],
        ...itemFindings(inner),
      ]
    },
  }
}

/** The owner's address, and that of the owner's own network where it differs. */
function ownerText(signatureType: number, owner: Uint8Array): string {
  const [address, native] = [normalizedAddress(owner), nativeAddress(signatureType, owner)]
  return native === address ? address : `${address}, ${native}`
}

/** Whether every item in a bundle is signed by its owner; nothing where it is no bundle. */
function itemFindings(inner: BundleVerifier | undefined): [string, string | Refusal][] {
  if (inner === undefined) return []
  const { items, sound, unsound, broken } = inner.finish()
  const first = broken ?? unsound[0]?.refusal
  return [['items', first ?? `${sound} of ${items}, each signed by its owner`]]
}
