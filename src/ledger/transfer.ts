import { hash } from 'node:crypto'

/**
 * Money as a double-entry ledger has it: every transfer takes an amount from one account and gives it to another, so that all
 * accounts together hold nothing. Amounts are whole numbers of winc (a millionth of a millionth of an AR) of any length.
 */

/**
 * An amount that goes from one account to another. `posted`: it is moved at once, and stays so. `pending`: it is only held back,
 * until an `EndOrder` (`post` or `void`) or its timeout ends it.
 */
export interface MoveOrder {
  /** Names the transfer for ever: the same id again is the same transfer. 1 to 200 characters. */
  readonly id: string
  readonly kind: 'posted' | 'pending'
  readonly debit: string
  readonly credit: string
  /** At least 1. */
  readonly amount: bigint
  /** What it is for: a word of a closed list (the payment service's). */
  readonly reason: string
  /** What it belongs to: the id of an item, of a payment, of an approval. */
  readonly reference: string
  /** A pending transfer that is neither posted nor void after so long is void. Absent: never. */
  readonly timeoutMs?: number
  /** The account may go below zero: only for a payment that is taken back by its provider. */
  readonly mayOverdraw?: true
  /** Facts of the source, shown in the history. */
  readonly about?: Readonly<Record<string, string>>
}

/**
 * The end of a pending transfer. `post`: its amount, or a part of it, is moved after all. Not to be taken for `posted`, the kind
 * of a transfer that never was pending. `void`: nothing is moved, and the amount is free again.
 */
export interface EndOrder {
  readonly id: string
  readonly kind: 'post' | 'void'
  /** Id of the pending transfer. */
  readonly pending: string
  /** The part that a post moves; the rest is free again. Absent: all. */
  readonly amount?: bigint
  readonly reason: string
  readonly reference: string
}

export type TransferOrder = MoveOrder | EndOrder

/** Ends a pending transfer whose time is over. The id follows from the transfer, so that two who see it end it once. */
export function expiryOf({ id, reference }: Pick<Transfer, 'id' | 'reference'>): EndOrder {
  return { id: `expire:${id}`, kind: 'void', pending: id, reason: 'timeout', reference }
}

/** A transfer as it happened. Never changed. */
export interface Transfer {
  /** From 1, without gaps. */
  readonly sequence: number
  readonly id: string
  readonly kind: TransferOrder['kind']
  readonly debit: string
  readonly credit: string
  readonly amount: bigint
  readonly reason: string
  readonly reference: string
  /** Does not go back from one transfer to the next. */
  readonly timeMs: number
  /** When a pending transfer becomes void by itself; 0: never. */
  readonly untilMs: number
  /** Id of the pending transfer that a post or void ends; else empty. */
  readonly pending: string
  readonly about: Readonly<Record<string, string>>
}

/** What a transfer adds to both of its accounts: for good, and as pending. `pending`: the amount of what it ends. */
export function effectOf(
  { kind, amount }: Pick<Transfer, 'kind' | 'amount'>,
  pending: bigint,
): { readonly posted: bigint; readonly held: bigint } {
  switch (kind) {
    case 'posted':
      return { posted: amount, held: 0n }
    case 'pending':
      return { posted: 0n, held: amount }
    case 'post':
      return { posted: amount, held: -pending }
    case 'void':
      return { posted: 0n, held: -pending }
  }
}

/** Text that is the same between the quotes of JSON. */
const plainShape = /^[\x20\x21\x23-\x5b\x5d-\x7e]*$/

function quoted(text: string): string {
  return plainShape.test(text) ? `"${text}"` : JSON.stringify(text)
}

/** Facts of a transfer without any. */
export const noFacts: Transfer['about'] = {}

/**
 * What a transfer is on disk, and what is hashed: JSON of an array with a fixed order (`Encoded`), exactly as JSON.stringify
 * writes it. The sequence is its key.
 */
export function encodeTransfer(transfer: Transfer): string {
  const { id, kind, debit, credit, amount, reason, reference, timeMs, untilMs, pending, about } = transfer
  const facts = about === noFacts ? '{}' : JSON.stringify(about)
  // Takes half of the time of JSON.stringify.
  const front = `[${quoted(id)},"${kind}",${quoted(debit)},${quoted(credit)},"${amount}",${quoted(reason)}`
  return `${front},${quoted(reference)},${timeMs},${untilMs},${quoted(pending)},${facts}]`
}

type Encoded = [
  id: string,
  kind: Transfer['kind'],
  debit: string,
  credit: string,
  amount: string,
  reason: string,
  reference: string,
  timeMs: number,
  untilMs: number,
  pending: string,
  about: Readonly<Record<string, string>>,
]

/** Reads what `encodeTransfer` wrote. Throws on anything else: the store is broken. */
export function decodeTransfer(sequence: number, text: string): Transfer {
  const [id, kind, debit, credit, amount, reason, reference, timeMs, untilMs, pending, about] = JSON.parse(
    text,
  ) as Encoded
  const facts = { sequence, id, kind, debit, credit, amount: BigInt(amount), reason, reference }
  return Object.assign(facts, { timeMs, untilMs, pending, about })
}

const headBytes = 32
const numberBytes = 8
/** Bytes of what is hashed in front of the text. */
const leadBytes = headBytes + numberBytes

/** The head of the chain before the first transfer. Heads are hex. */
export const firstHead = '00'.repeat(headBytes)

/** A number as 8 bytes, big-endian, written into `to`. */
export function putNumber(to: Buffer, value: number, at: number): void {
  to.writeUInt32BE(Math.floor(value / 2 ** 32), at)
  to.writeUInt32BE(value >>> 0, at + 4)
}

/** What is hashed next: one after the other, so that one buffer is enough. */
let hashed = Buffer.allocUnsafe(4096)

/**
 * The head behind a transfer: SHA-256 over the head before it (32 bytes), its sequence (8 bytes, big-endian) and its text.
 */
export function nextHead(head: string, sequence: number, text: string): string {
  return chained(head, sequence, text).head
}

/** The same, and the text as bytes, which are valid until the next call: both are wanted of each transfer, and made once. */
export function chained(
  head: string,
  sequence: number,
  text: string,
): { readonly head: string; readonly bytes: Uint8Array } {
  // Three bytes of UTF-8 at most for each unit of a JavaScript string.
  const most = leadBytes + text.length * 3
  if (hashed.length < most) hashed = Buffer.allocUnsafe(2 * most)
  hashed.write(head, 0, 'hex')
  putNumber(hashed, sequence, headBytes)
  const end = leadBytes + hashed.write(text, leadBytes)
  return { head: hash('sha256', hashed.subarray(0, end), 'hex'), bytes: hashed.subarray(leadBytes, end) }
}

/** Whether a stored transfer matches an order: then the order was carried out before. */
export function isSameTransfer(stored: Transfer, order: TransferOrder): boolean {
  if (stored.kind !== order.kind || stored.reason !== order.reason || stored.reference !== order.reference)
    return false
  if ('pending' in order)
    return stored.pending === order.pending && stored.amount === (order.amount ?? stored.amount)
  return stored.debit === order.debit && stored.credit === order.credit && stored.amount === order.amount
}
