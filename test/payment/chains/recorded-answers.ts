/** Answers of nodes in the shapes that clients of others read (see recorded-shapes.test.ts). */
import { encodeBase58 } from '../../../src/format/base58.js'

export const key = (byte: number): string => encodeBase58(Buffer.alloc(32, byte))
const systemProgram = '1'.repeat(32)
const tokenProgram = 'TokenkegQfeZyiNwAJbNbGKPFXCWuBvf9Ss623VQ5DA'
const memoProgram = 'MemoSq4gqABAXKb96qnH8TysNcWxMyWCqXgDLGmfcHr'

/** An instruction of one of the programs; `accounts` are positions. */
export interface Pay {
  readonly program: 'system' | 'token'
  readonly accounts: readonly number[]
  readonly data: Uint8Array
}

/** What an instruction of this kind has for data, where it begins with an amount. */
export function amountData(kind: readonly number[], amount: bigint, ...rest: number[]): Uint8Array {
  const bytes = Buffer.alloc(8)
  bytes.writeBigUInt64LE(amount)
  return Uint8Array.from([...kind, ...bytes, ...rest])
}

/** A transfer of coins between the accounts at two positions. */
export function coinPay(from: number, to: number, amount: bigint): Pay {
  return { program: 'system', accounts: [from, to], data: amountData([2, 0, 0, 0], amount) }
}

/** TransferChecked of tokens. `signer`: the position of their owner, or of his delegate. */
export function tokenPay(from: number, to: number, amount: bigint, signer: number): Pay {
  return { program: 'token', accounts: [from, signer, to, signer], data: amountData([12], amount, 6) }
}

/** A transaction in the shape of `getTransaction` with encoding json (Solana JSON-RPC). */
export interface Recorded {
  readonly keys: readonly string[]
  readonly before: readonly number[]
  readonly after: readonly number[]
  readonly tokens?: readonly [mint: string, owner: string, before: string, after: string][]
  readonly memo?: string
  /** Accounts that have signed, the first ones; absent: the first alone. */
  readonly signers?: number
  /** Its instructions that pay; absent: one, from the first account, or from that of the first of `tokens`. */
  readonly pays?: readonly Pay[]
  /** The same of programs that its instructions call. */
  readonly inner?: readonly Pay[]
  readonly err?: unknown
  /** Of lookup tables: their balances follow those of `keys` and of the two programs. Then the version is 0. */
  readonly loaded?: { readonly writable: readonly string[]; readonly readonly: readonly string[] }
}

export function recorded(given: Recorded): object {
  const { keys, before, after, tokens = [], memo, err = null, loaded } = given
  const mints = tokens.length > 0 ? [tokenProgram] : []
  const rises = after.findIndex((one, at) => one > (before[at] ?? one))
  const [, , had = '0', has = '0'] = tokens[1] ?? []
  const tokensPay = tokens.length > 0 ? [tokenPay(1, 2, BigInt(has) - BigInt(had), 0)] : undefined
  const isWhole = rises >= 0 && after.every(Number.isSafeInteger) && before.every(Number.isSafeInteger)
  const coinsPay = isWhole ? [coinPay(0, rises, BigInt((after[rises] ?? 0) - (before[rises] ?? 0)))] : []
  const written = ({ program, accounts, data }: Pay) => ({
    programIdIndex: keys.length + (program === 'system' ? 0 : 2),
    accounts,
    data: encodeBase58(data),
    stackHeight: null,
  })
  const data = memo === undefined ? [] : [encodeBase58(Buffer.from(memo))]
  const memos = data.map((text) => ({
    programIdIndex: keys.length + 1,
    accounts: [],
    data: text,
    stackHeight: null,
  }))
  const inner = given.inner === undefined ? [] : [{ index: 0, instructions: given.inner.map(written) }]
  const amounts = (at: 2 | 3) =>
    tokens.map((one, index) => ({
      accountIndex: index + 1,
      mint: one[0],
      owner: one[1],
      programId: tokenProgram,
      uiTokenAmount: {
        amount: one[at],
        decimals: 6,
        uiAmount: Number(one[at]) / 1e6,
        uiAmountString: String(Number(one[at]) / 1e6),
      },
    }))
  const logs = [`Program ${systemProgram} invoke [1]`, `Program ${systemProgram} success`]
  const memoLogs =
    memo === undefined ? [] : [`Program log: Memo (len ${memo.length}): ${JSON.stringify(memo)}`]
  return {
    blockTime: 1_790_000_000,
    slot: 331_000_123,
    version: loaded === undefined ? 'legacy' : 0,
    meta: {
      err,
      fee: 5000,
      computeUnitsConsumed: 300,
      innerInstructions: inner,
      loadedAddresses: loaded ?? { writable: [], readonly: [] },
      preBalances: before,
      postBalances: after,
      rewards: [],
      preTokenBalances: amounts(2),
      postTokenBalances: amounts(3),
      logMessages: [...logs, ...memoLogs],
      status: err === null ? { Ok: null } : { Err: err },
    },
    transaction: {
      signatures: [encodeBase58(Buffer.alloc(64, 1))],
      message: {
        accountKeys: [...keys, systemProgram, memoProgram, ...mints],
        header: {
          numRequiredSignatures: given.signers ?? 1,
          numReadonlySignedAccounts: 0,
          numReadonlyUnsignedAccounts: 2 + mints.length,
        },
        ...(loaded && { addressTableLookups: [] }),
        instructions: [...(given.pays ?? tokensPay ?? coinsPay).map(written), ...memos],
        recentBlockhash: key(99),
      },
    },
  }
}

export const [kyveOwn, kyvePayer] = [`kyve1${'q'.repeat(38)}`, `kyve1${'p'.repeat(38)}`]

/** As a node of KYVE answers (REST of the Cosmos SDK, /cosmos/tx/v1beta1/txs/{hash}). */
export function sent(
  hash: string,
  change: { to?: string; denom?: string; amount?: string; code?: number; memo?: string } = {},
) {
  const { to = kyveOwn, denom = 'ukyve', amount = '1000000', code = 0, memo = '' } = change
  const message = {
    '@type': '/cosmos.bank.v1beta1.MsgSend',
    from_address: kyvePayer,
    to_address: to,
    amount: [{ denom, amount }],
  }
  return {
    tx: { body: { messages: [message], memo, timeout_height: '0' }, auth_info: {}, signatures: [] },
    tx_response: {
      height: '9876543',
      txhash: hash,
      code,
      gas_used: '80000',
      timestamp: '2026-01-01T00:00:00Z',
    },
  }
}
