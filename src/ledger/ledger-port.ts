import { isDiskError } from '../store/disk-error.js'
import type { LedgerAccount } from './ledger-account.js'
import type { Transfer, TransferOrder } from './transfer.js'

/** A fact that belongs to the money (a quote, an approval, a receipt), kept in the same transaction as the transfers. */
export interface LedgerRecord {
  readonly kind: string
  readonly key: string
  /** JSON. */
  readonly value: string
  /** Changes with every write; never used twice for one key while it is there. */
  readonly version: number
}

export interface RecordChange {
  readonly kind: string
  /** 1 to 400 bytes of UTF-8 together with its kind. */
  readonly key: string
  /** JSON; undefined removes it. */
  readonly value: string | undefined
  /** What must be there before: nothing (0), or exactly this version. Absent: whatever is there. */
  readonly expected?: number
  /**
   * Binds the record to this account. It exists while the account has an available amount after the transfers of the order, and
   * is removed with the last of it.
   */
  readonly whileHas?: string
  /** In place of a value: is added to the whole number that the record holds. A sum of 0 is no record. */
  readonly added?: bigint
}

/** Transfers and records that happen all or not at all. */
export interface CommitOrder {
  readonly transfers: readonly TransferOrder[]
  readonly records?: readonly RecordChange[]
}

/** Why a commit did not happen. Nothing of it did. */
export interface Rejected {
  readonly rejected: /** An account that may not go below zero would. */
    | 'insufficient'
    /** A record is not what was expected: read again, decide again. */
    | 'conflict'
    /** A transfer of that id exists, and is another one. */
    | 'differs'
    /** There is no such pending transfer. */
    | 'unknown'
    /** The pending transfer was posted or void already, or its time is over. */
    | 'ended'
    /** The order makes no sense: a bug of the caller. */
    | 'invalid'
  /** Id of the transfer, or key of the record. */
  readonly at: string
  /** The account that has too little. */
  readonly account?: string
}

export interface Committed {
  /** The transfers of the order, in its order. */
  readonly transfers: readonly Transfer[]
  /** The first transfer was there before, with all others: nothing happened this time. */
  readonly existed: boolean
}

export type CommitOutcome = Committed | Rejected

/** A signed statement that the chain of transfers had this head. */
export interface SignedHead {
  readonly sequence: number
  /** Hex. */
  readonly head: string
  readonly timeMs: number
  /** Ed25519 over `headMessage`, base64url. */
  readonly signature: string
}

/** What a check of everything found. */
export interface LedgerReport {
  readonly transfers: number
  readonly accounts: number
  readonly signedHeads: number
  /** Hex: the head of the chain, computed anew. */
  readonly head: string
  /** Each a sentence; none: all is right. */
  readonly faults: readonly string[]
}

/** Questions about one state of a ledger, whatever is written meanwhile. */
export type LedgerReading = Pick<MoneyLedger, 'account' | 'accounts' | 'record' | 'records'>

/** Records of a kind whose keys begin with `start`, behind `after`. */
export interface RecordSpan {
  readonly start: string
  readonly after: string
}

/** Where money is kept. Every engine passes test/conformance/ledger.test.ts. */
export interface MoneyLedger {
  /** Resolves when it would survive a power cut, or with why nothing happened. Rejects where the store is gone. */
  commit(order: CommitOrder): Promise<CommitOutcome>
  account(name: string): Promise<LedgerAccount | undefined>
  /** Accounts whose names begin with `start`, in the order of names, behind `after`. */
  accounts(start: string, after: string, limit: number): Promise<LedgerAccount[]>
  transfer(id: string): Promise<Transfer | undefined>
  /** How a pending transfer ended; undefined while it is pending, and where there is none. */
  ending(pendingId: string): Promise<Transfer | undefined>
  /** Transfers of an account, youngest first, with lower sequences than `before`. Posts and voids are not among them. */
  history(account: string, before: number, limit: number): Promise<Transfer[]>
  record(kind: string, key: string): Promise<LedgerRecord | undefined>
  /** Records of a kind whose keys begin with `start`, in the order of keys, behind `after`. */
  records(kind: string, start: string, after: string, limit: number): Promise<LedgerRecord[]>
  /** The accounts of these names that exist, in any order. This and the next four are each one round trip to the store. */
  accountsNamed(names: readonly string[]): Promise<LedgerAccount[]>
  /** The transfers of these ids that exist, in any order. */
  transfersNamed(ids: readonly string[]): Promise<Transfer[]>
  /** How those of these pending transfers ended that have ended, in any order. */
  endingsOf(pendingIds: readonly string[]): Promise<Transfer[]>
  /** The records of a kind with these keys that exist, in any order. */
  recordsNamed(kind: string, keys: readonly string[]): Promise<LedgerRecord[]>
  /** What `records` answers for each span, in their order. `limit`: of each one. */
  recordSpans(kind: string, spans: readonly RecordSpan[], limit: number): Promise<LedgerRecord[][]>
  /** Voids what is pending and over at a time, milliseconds since 1970. Resolves with how many. */
  expire(atMs: number): Promise<number>
  /** The time of day by the clock of the store, which all services with this ledger share. */
  timeMs(): Promise<number>
  /** Signs the head of the chain where it has moved since it was last signed. */
  signHead(): Promise<SignedHead | undefined>
  /**
   * True where this process is the one, of all that share the ledger, that does a work which only one should do at a time. Called
   * before each piece of it: who has it keeps it until it closes, or its connection ends.
   */
  leads(work: string): Promise<boolean>
  /**
   * Reads everything and computes it anew. `also` compares what the ledger does not know the meaning of, in the same state, and
   * resolves with its faults; it must wait for nothing else.
   */
  check(also?: (reading: LedgerReading) => Promise<readonly string[]>): Promise<LedgerReport>
  close(): Promise<void>
}

/** Bytes of a key together with its kind, and of the name of an account. */
const nameMax = 400

/** Halves of pairs of UTF-16 are all written alike in UTF-8, so that two texts would be one key. */
const halfPair = /\p{Cs}/u

/** False where no record can have this key, no account this name, no transfer this id: keys come from requests of strangers. */
export function isKey(text: string, kind = ''): boolean {
  if (text.length + kind.length > nameMax || text.includes('\0') || halfPair.test(text)) return false
  return Buffer.byteLength(text) <= nameMax
}

/** How often a commit is tried again with records read anew, where another commit came before it. */
export const commitTriesMax = 100

/** Codes of sockets and of PostgreSQL's client. */
const lostShape =
  /^(?:CONNECTION_\w+|CONNECT_TIMEOUT|ECONN\w+|EPIPE|ETIMEDOUT|ENOTFOUND|EAI_AGAIN|E(?:HOST|NET)\w+)$/
/**
 * SQLSTATEs: connection, read-only and ended transactions, credentials, no such database, conflicts and locks, rights, resources,
 * an operator, the server stops or starts, its system.
 */
const refusedShape = /^(?:08\w{3}|25006|25P0[23]|28\w{3}|3D000|40\w{3}|42501|53\w{3}|55P03|57\w{3}|58\w{3})$/

/** True where the store could not be reached or does not write now: a later request may succeed. */
export function isLedgerGone(error: unknown): boolean {
  if (!(error instanceof Error)) return false
  const { code } = error as Error & { readonly code?: unknown }
  if (isDiskError(error)) return true
  return typeof code === 'string' && (lostShape.test(code) || refusedShape.test(code))
}

/** A commit of which it is not known whether it happened: its orders may be given again. The log names them by this. */
export class CommitFailure extends Error {
  readonly transfers: readonly string[]
  readonly records: readonly string[]
  readonly code: unknown

  constructor(cause: unknown, { transfers, records = [] }: CommitOrder) {
    const ids = transfers.map(({ id }) => id)
    const keys = records.map(({ kind, key }) => `${kind} ${key}`)
    const reason = cause instanceof Error ? cause.message : String(cause)
    super(`the ledger did not confirm ${[...ids, ...keys].slice(0, 5).join(', ')}: ${reason}`, { cause })
    this.transfers = ids
    this.records = keys
    this.code = (cause as { readonly code?: unknown } | undefined)?.code
  }
}

/** True where a commit did not happen. */
export function isRejected(outcome: CommitOutcome): outcome is Rejected {
  return 'rejected' in outcome
}

/** The bytes that are signed: a head can be shown to others, so they begin with what they are. */
export function headMessage(sequence: number, head: string, timeMs: number): Uint8Array {
  return Buffer.from(`sluice-ledger-head ${sequence} ${head} ${timeMs}`)
}

/** Reads a signed head as it is stored (JSON). Throws where it is none: the store is broken. */
export function decodeHead(text: string): SignedHead {
  const { sequence, head, timeMs, signature } = JSON.parse(text) as Partial<SignedHead>
  if (sequence === undefined || head === undefined || timeMs === undefined || signature === undefined)
    throw new Error('a signed head cannot be read')
  return { sequence, head, timeMs, signature }
}
