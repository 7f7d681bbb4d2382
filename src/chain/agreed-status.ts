import { isRefusal, type Refusal, refuse } from '../format/refusal.js'
import { type Transaction, transactionJson } from '../format/transaction.js'
import type { TransactionStatus } from './chain.js'

/**
 * What several nodes state of one transaction, as one: the fewest confirmations where all that answer have it in the same block,
 * `pending` where they differ, `unknown` where none of them knows it. Another refusal where none answers.
 */
export function agreedStatus(stated: readonly (TransactionStatus | Refusal)[]): TransactionStatus | Refusal {
  const [first] = stated
  if (first === undefined) throw new Error('no node got the request')
  const answers = stated.filter((one) => !isRefusal(one) || one.refused === 'unknown')
  const [one = first, ...others] = answers
  let agreed: TransactionStatus | Refusal = one
  for (const other of others) agreed = together(agreed, other)
  return agreed
}

function together(
  one: TransactionStatus | Refusal,
  other: TransactionStatus | Refusal,
): TransactionStatus | Refusal {
  if (isRefusal(one) && isRefusal(other)) return one
  const isSame =
    !isRefusal(one) &&
    !isRefusal(other) &&
    one.kind === 'mined' &&
    other.kind === 'mined' &&
    one.block === other.block &&
    one.height === other.height
  if (!isSame) return { kind: 'pending' }
  return one.confirmations <= other.confirmations ? one : other
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
