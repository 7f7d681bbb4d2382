import type { RecordChange } from '../../ledger/ledger-port.js'

/** Record of an approval. Its account has the amount that was used. */
export interface Approval {
  readonly id: string
  readonly payer: string
  readonly approved: string
  readonly winc: string
  readonly createdMs: number
  /** 0: never. */
  readonly expiresMs: number
  readonly ended?: {
    readonly why: 'expired' | 'revoked'
    readonly atMs: number
    /** The amount that was spent, or held back, by then. */
    readonly used: string
    /** The item that revoked it. */
    readonly by?: string
  }
}

export type Side = 'given' | 'received'

export const approvalKind = 'approval'

/**
 * Kinds of records that lead to approvals with something left. Each key ends in the id behind its last `|`. Lists of a wallet
 * begin with the largest approval, so that many small ones of strangers hide none. Pairs are listed in the order in which they
 * pay, and once more from the largest.
 */
export const indexKinds = {
  given: 'share-given',
  received: 'share-received',
  pair: 'share-pair',
  pairByAmount: 'share-pair-amount',
  due: 'share-due',
} as const

/**
 * The lists of approvals of older versions: by payer and approved wallet, the other way round, and by time. Used approvals stayed
 * in them, and only the first thousand of a list were read. So later approvals were paid for, but not seen, spent or revoked.
 */
export const oldKinds = {
  given: 'approval-given',
  received: 'approval-received',
  due: 'approval-due',
} as const

/** What is left of all approvals that a wallet has given, or received, and of those of each pair: decimal, by `sumKeys`. */
export const sumKind = 'share-sum'

/** The kind of the records with the sums. */
export const sumKeys = {
  given: (wallet: string): string => `given|${wallet}`,
  received: (wallet: string): string => `received|${wallet}`,
  pair: (payer: string, approved: string): string => sumKeys.pairOf(`${payer}|${approved}`),
  /** The beginning of the keys of a pair, by both names. */
  pairOf: (names: string): string => `pair|${names}`,
} as const

/** The ledger's account of an approval. */
export function approvalAccount(id: string): string {
  return `approval:${id}`
}

const timeDigits = 16

/** A time (ms since 1970) as it stands in keys. */
export function timeKey(ms: number): string {
  return String(ms).padStart(timeDigits, '0')
}

/** Sorts behind every time. */
const never = '9'.repeat(timeDigits)

/** An amount in keys: larger ones sort first. Its length counts down from 99, and so does each digit from 9. */
function amountKey(winc: string): string {
  const digits = winc.replace(/\d/g, (digit) => String(9 - Number(digit)))
  return `${String(99 - winc.length).padStart(2, '0')}${digits}`
}

/** The id that an entry of the index leads to. */
export function idOfKey(key: string): string {
  return key.slice(key.lastIndexOf('|') + 1)
}

/** Where an approval is found while something is left of it. */
export function entriesOf(approval: Approval): readonly { readonly kind: string; readonly key: string }[] {
  const { id, payer, approved, winc, createdMs, expiresMs } = approval
  const amount = amountKey(winc)
  const turn = `${expiresMs === 0 ? never : timeKey(expiresMs)}|${timeKey(createdMs)}|${id}`
  return [
    { kind: indexKinds.given, key: `${payer}|${amount}|${turn}` },
    { kind: indexKinds.received, key: `${approved}|${amount}|${turn}` },
    { kind: indexKinds.pair, key: `${payer}|${approved}|${turn}` },
    { kind: indexKinds.pairByAmount, key: `${payer}|${approved}|${amount}|${turn}` },
    ...(expiresMs === 0 ? [] : [{ kind: indexKinds.due, key: `${timeKey(expiresMs)}|${id}` }]),
  ]
}

/** The sums that an approval counts in. */
export function sumsOf({ payer, approved }: Approval): readonly string[] {
  return [sumKeys.given(payer), sumKeys.received(approved), sumKeys.pair(payer, approved)]
}

/**
 * What is written with transfers that change what is left of an approval that has not ended. `delta`: of the winc that are left.
 * The index follows the account: what is used up leaves it in the same commit, and comes back with a refund.
 */
export function leftChanged(approval: Approval, delta: bigint): RecordChange[] {
  const whileHas = approvalAccount(approval.id)
  return [
    ...entriesOf(approval).map((entry) => ({ ...entry, value: '1', whileHas })),
    ...sums(approval, delta),
  ]
}

/** The records that are written when an approval ends with `left` winc left. */
export function indexEnded(approval: Approval, left: bigint): RecordChange[] {
  return [...entriesOf(approval).map((entry) => ({ ...entry, value: undefined })), ...sums(approval, -left)]
}

function sums(approval: Approval, added: bigint): RecordChange[] {
  return sumsOf(approval).map((key) => ({ kind: sumKind, key, value: undefined, added }))
}
