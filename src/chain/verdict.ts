import { isRefusal, type Refusal, refuse } from '../format/refusal.js'
import type { Posted } from './chain.js'
import { fieldsOf } from './json-fields.js'
import type { Node, NodeAnswer } from './node.js'
import { passing, pending } from './passing.js'

/** Statuses by which a node states that what was posted is wrong. Others (401, 403, 429, ...) are about who posted it. */
const wrongStatuses: ReadonlySet<number> = new Set([400, 413, 422])

/** Texts of a 400 that is no fault of the transaction: nodes state 208 only for the first ten minutes after they took it. */
const alreadyThere = /^Transaction is already (?:on the weave|in the mempool)/
const poolFull = /^Mempool is full/

/**
 * How nodes answer `POST /tx`: 200 or 202 taken, 208 or a 400 of `alreadyThere` known, `wrongStatuses`: it is wrong; the rest: a
 * failure of the node.
 */
export function readTransactionPosted(answer: NodeAnswer, node: Node): Posted | Refusal {
  const text = answer.status === 400 ? words(answer.body) : ''
  if (alreadyThere.test(text)) return 'known'
  return poolFull.test(text)
    ? passing(refuse('upstream', 'upstream', `${node.name}: ${text}`))
    : verdict(answer, node)
}

/** Error codes of a 400 that are about the node, not about the chunk. */
const ownTrouble = new Set(['not_joined', 'timeout', 'exceeds_disk_pool_size_limit', 'disk_full'])

/**
 * How nodes answer `POST /chunk`: 303: kept temporarily; 400 with `data_root_not_found`: ask again later or ask
 * another node.
 */
export function readChunkPosted(answer: NodeAnswer, node: Node): Posted | Refusal {
  if (answer.status === 303) return 'accepted'
  const outcome = verdict(answer, node)
  if (!isRefusal(outcome) || outcome.refused !== 'malformed') return outcome
  const error = fieldsOf(answer.body.toString('utf8'))?.error
  if (error === 'data_root_not_found') {
    return refuse('unknown', 'upstream', `${node.name} does not know the data root`)
  }
  return ownTrouble.has(String(error))
    ? refuse('upstream', 'upstream', `${node.name}: ${String(error)}`)
    : outcome
}

function verdict(answer: NodeAnswer, node: Node): Posted | Refusal {
  const { status } = answer
  if (status === 200 || status === 202) return 'accepted'
  if (status === 208) return 'known'
  if (wrongStatuses.has(status)) {
    return refuse('malformed', 'client', `${node.name} refuses: ${words(answer.body)}`)
  }
  return trouble(status, node)
}

/** A node's error text, shortened and restricted to printable characters. */
function words(body: Buffer): string {
  return body
    .subarray(0, 200)
    .toString('latin1')
    .replace(/[^\x20-\x7e]/g, ' ')
    .trim()
}

/** What every status but 200 means for a question about something that may be there or not. */
export function absenceRefusal(status: number, node: Node): Refusal {
  if (status === 404 || status === 410) return refuse('unknown', 'upstream', `${node.name} does not know it`)
  if (status === 202) return pending(refuse('unknown', 'upstream', `${node.name} has it pending only`))
  return trouble(status, node)
}

function trouble(status: number, node: Node): Refusal {
  const refusal = refuse('upstream', 'upstream', `${node.name} answers ${status}`)
  return status >= 500 ? passing(refusal) : refusal
}
