import { isRefusal, type Refusal, refuse } from '../format/refusal.js'
import { type Transaction, transactionJson } from '../format/transaction.js'
import type { TransactionStatus } from './chain.js'

type Mined = Extract<TransactionStatus, { readonly kind: 'mined' }>

/**
 * What several nodes state of one transaction, as one: the fewest confirmations where most of those that answer have it in the
 * same block, `pending` where they differ, `unknown` where none of them knows it. Another refusal where none answers. So a node
 * that lies, or is behind the others, decides nothing alone.
 */
export function agreedStatus(stated: readonly (TransactionStatus | Refusal)[]): TransactionStatus | Refusal {
  const [first] = stated
  if (first === undefined) throw new Error('no node got the request')
  const answers = stated.filter((one) => !isRefusal(one) || one.refused === 'unknown')
  const mined = answers.filter((one): one is Mined => !isRefusal(one) && one.kind === 'mined')
  const groups = mined.map((one) => mined.filter((other) => isSameBlock(one, other)))
  const agreed = groups.find((group) => group.length * 2 > answers.length)
  if (agreed !== undefined)
    return agreed.reduce((least, one) => (one.confirmations < least.confirmations ? one : least))
  if (mined.length > 0) return { kind: 'pending', isContested: true }
  const unknown = answers.find(isRefusal)
  if (unknown !== undefined && answers.every(isRefusal)) return unknown
  return answers.length === 0 ? first : { kind: 'pending' }
}

function isSameBlock(one: Mined, other: Mined): boolean {
  return one.block === other.block && one.height === other.height
}

/** One transaction as several nodes have it, where all that have it have the same; else a refusal. */
export function agreedTransaction(answers: readonly (Transaction | Refusal)[]): Transaction | Refusal {
  const [first] = answers
  if (first === undefined) throw new Error('no node got the request')
  const [one, ...others] = answers.filter((answer): answer is Transaction => !isRefusal(answer))
  if (one === undefined) return first
  // Where all other fields are the same, the signature covers the same data.
  const textOf = (tx: Transaction): string => JSON.stringify(transactionJson(tx, { withData: false }))
  const text = textOf(one)
  const isSame = others.every((other) => textOf(other) === text)
  return isSame ? one : refuse('upstream', 'upstream', `nodes have different transactions under ${one.id}`)
}
