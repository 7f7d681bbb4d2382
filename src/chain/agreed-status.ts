import { isRefusal, type Refusal, refuse } from '../format/refusal.js'
import { type Transaction, transactionJson } from '../format/transaction.js'
import type { TransactionStatus } from './chain.js'

/** Nodes hear of a block some seconds, and so some blocks at most, after each other. */
const depthsApart = 2

type Mined = Extract<TransactionStatus, { readonly kind: 'mined' }>

/**
 * What several nodes state of one transaction, as one. `mined` where most of those that were queried have it in the same block,
 * with the confirmations in the middle; `unknown` where most do not know it, and none does; `pending` where they differ.
 * Another refusal where too few answer. `queried`: how many nodes are to decide, also those that are away. So a node that lies,
 * or is behind the others, decides nothing alone, however long the others do not answer.
 */
export function agreedStatus(
  stated: readonly (TransactionStatus | Refusal)[],
  queried: number = stated.length,
): TransactionStatus | Refusal {
  const isMost = (many: readonly unknown[]): boolean => many.length * 2 > queried
  const mined = minedOf(stated)
  const agreed = sameBlocks(mined).find(isMost)
  if (agreed !== undefined) {
    const [middle] = agreed
      .sort((a, b) => a.confirmations - b.confirmations)
      .slice((agreed.length - 1) >> 1) as [Mined]
    return middle
  }
  const unknown = stated.filter((one): one is Refusal => isRefusal(one) && one.refused === 'unknown')
  const answers = stated.filter((one) => !isRefusal(one) || one.refused === 'unknown')
  if (isMost(unknown) && unknown.length === answers.length) return unknown[0] as Refusal
  if (isMost(answers))
    return {
      kind: 'pending',
      ...(mined.length > 0 ? { isContested: true } : {}),
      ...(isMost(unknown) ? { isUnknownToMost: true } : {}),
    }
  const failed = stated.find((one): one is Refusal => isRefusal(one) && one.refused !== 'unknown')
  return failed ?? refuse('upstream', 'upstream', 'too few nodes answer about the transaction')
}

function minedOf(stated: readonly (TransactionStatus | Refusal)[]): Mined[] {
  return stated.filter((one): one is Mined => !isRefusal(one) && one.kind === 'mined')
}

function sameBlocks(mined: readonly Mined[]): Mined[][] {
  return mined.map((one) => mined.filter((other) => isSameBlock(one, other)))
}

/**
 * Whether most of so many nodes have it in the same block, as deep but for some blocks: what the others state changes nothing.
 * One of two that stands still is found by the third.
 */
export function isMinedByMost(come: readonly (TransactionStatus | Refusal)[], queried: number): boolean {
  return sameBlocks(minedOf(come)).some((group) => {
    const depths = group.map(({ confirmations }) => confirmations)
    return group.length * 2 > queried && Math.max(...depths) - Math.min(...depths) <= depthsApart
  })
}

function isSameBlock(one: Mined, other: Mined): boolean {
  return one.block === other.block && one.height === other.height
}

/** One transaction as most of so many nodes have it, where no other one has another; else a refusal. */
export function agreedTransaction(
  answers: readonly (Transaction | Refusal)[],
  queried: number,
): Transaction | Refusal {
  const [first] = answers
  if (first === undefined) throw new Error('no node got the request')
  const found = answers.filter((answer): answer is Transaction => !isRefusal(answer))
  const [one] = found
  if (one === undefined) return first
  // Where all other fields are the same, the signature covers the same data.
  const textOf = (tx: Transaction): string => JSON.stringify(transactionJson(tx, { withData: false }))
  const text = textOf(one)
  if (found.some((other) => textOf(other) !== text))
    return refuse('upstream', 'upstream', `nodes have different transactions under ${one.id}`)
  if (found.length * 2 > queried) return one
  return refuse('upstream', 'upstream', `too few nodes answer about the transaction ${one.id}`)
}
