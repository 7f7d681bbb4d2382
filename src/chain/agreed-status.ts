import { isRefusal, type Refusal } from '../format/refusal.js'
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
