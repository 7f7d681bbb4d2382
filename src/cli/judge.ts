import { encodeBase64url } from '../format/base64url.js'
import type { Id } from '../format/id.js'
import { parseItemHeader } from '../format/item.js'
import { isRefusal, type Refusal, refuse } from '../format/refusal.js'
import { parseTransactionText } from '../format/transaction.js'
import { DataRootHasher } from '../proof/data-root.js'
import { sha256 } from '../proof/digest.js'
import { ItemVerifier } from '../proof/item.js'
import { verifyTransaction } from '../proof/transaction.js'

/** Takes the payload as it arrives and says in the end who signed it. */
export interface Judge {
  update(bytes: Uint8Array): void
  /** What was found out, in order. Once only. */
  findings(): [string, string | Refusal][]
}

/** Judges a data item: its header is read out of the root that the gateway names, and must carry the id itself. */
export async function judgeOfItem(
  gateway: string,
  id: Id,
  place: { root: string; offset: number; headerSizeMax: number },
): Promise<Judge | Refusal> {
  const range = `bytes=${place.offset}-${place.offset + place.headerSizeMax - 1}`
  const response = await fetch(`${gateway}/raw/${place.root}`, { headers: { range } })
  if (response.status !== 206)
    return refuse('upstream', 'upstream', `the root ${place.root} answered ${response.status}`)
  const header = parseItemHeader(new Uint8Array(await response.arrayBuffer()))
  if (header === 'more') return refuse('forged', 'upstream', 'the item header is cut off')
  if (isRefusal(header)) return header
  if (header.id !== id)
    return refuse('forged', 'upstream', `the root holds ${header.id} there, not this item`)
  const verifier = new ItemVerifier(header)
  return {
    update: (bytes) => verifier.update(bytes),
    findings: () => {
      const held = verifier.finish()
      return [
        ['item signature', held === true ? `type ${header.signatureType}, over header and payload` : held],
        ['owner', encodeBase64url(sha256(header.owner))],
        ['in', `transaction ${place.root}, byte ${place.offset}`],
      ]
    },
  }
}

/** Judges a transaction: its header comes from a base-layer node, and must carry the id and the data root itself. */
export async function judgeOfTransaction(node: string, id: Id): Promise<Judge | Refusal> {
  const response = await fetch(`${node}/tx/${id}`)
  if (response.status !== 200) {
    return refuse('unknown', 'upstream', `the node ${node} answered ${response.status} for this transaction`)
  }
  const tx = parseTransactionText(await response.text())
  if (isRefusal(tx)) return tx
  if (tx.id !== id) return refuse('forged', 'upstream', `the node answered with ${tx.id}`)
  const held = verifyTransaction(tx)
  const hasher = new DataRootHasher(tx.dataSize)
  return {
    update: (bytes) => hasher.update(bytes),
    findings: () => {
      const tree = hasher.finish()
      const same = !isRefusal(tree) && Buffer.from(tx.dataRoot).equals(tree.root)
      const differs = refuse('forged', 'upstream', 'the bytes have another data root than was signed')
      return [
        ['transaction signature', held === true ? `format ${tx.format}` : held],
        ...(tx.format === 2
          ? [['data root', same ? encodeBase64url(tx.dataRoot) : differs] as [string, string | Refusal]]
          : []),
        ['owner', encodeBase64url(sha256(tx.owner))],
      ]
    },
  }
}
