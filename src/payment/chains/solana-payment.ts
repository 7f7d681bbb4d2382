import { decodeBase58 } from '../../format/base58.js'
import { type JsonFields, jsonFields } from '../../format/json.js'
import { beneficiaryIn, type NoPayment, type SeenPayment } from './seen-payment.js'

const systemProgram = '1'.repeat(32)
const tokenPrograms = [
  'TokenkegQfeZyiNwAJbNbGKPFXCWuBvf9Ss623VQ5DA',
  'TokenzQdBNbLqP5VEhdkAS6EPFLC1PHnBqCXEpPxuEb',
]
const memoPrograms = [
  'MemoSq4gqABAXKb96qnH8TysNcWxMyWCqXgDLGmfcHr',
  'Memo1UhkJRfHyvLMcVucJwxXeuD728EqVddwQDxFMNo',
]
/** Characters of an instruction's data that are read: a transaction has at most 1232 bytes. */
const dataMax = 2000

/** One instruction, of the transaction or called by one of it. */
interface Step {
  readonly program: string | undefined
  /** Positions of its accounts among those of the transaction. */
  readonly accounts: readonly number[]
  readonly data: Buffer
}

/** Positions of accounts. `payer`: who owns what moves, or signs for it. */
interface Move {
  readonly payer: number
  readonly to: number
  readonly amount: bigint
}

/** What a transaction pays in coins, or in the token of `mint`. */
type Paid = Pick<SeenPayment, 'quantity' | 'sender' | 'beneficiary'>

/**
 * What a transaction pays to `wallet`. How much has come is read from the balances. Who has paid is read from the transfers, also
 * of programs that were called: the first account is only who pays the fee, and a balance may fall for other reasons.
 */
export function solanaPayment(found: JsonFields, wallet: string, mint: string | undefined): Paid | NoPayment {
  const meta = jsonFields(found.meta)
  if (meta.err !== null) return { wrong: 'The transaction has failed on its chain' }
  const message = jsonFields(jsonFields(found.transaction).message)
  const loaded = jsonFields(meta.loadedAddresses)
  // Balances are those of the transaction's own accounts, and behind them of those that it names by lookup tables.
  const named = [message.accountKeys, loaded.writable, loaded.readonly].flatMap(listOf)
  const keys = named.map((key) => (typeof key === 'string' ? key : String(jsonFields(key).pubkey)))
  const received = mint === undefined ? coinsOf(keys, wallet, meta) : tokensOf(mint, wallet, meta)
  if (received <= 0n) return { wrong: 'The transaction does not pay this service' }
  const own = stepsIn(message.instructions, keys)
  const called = listOf(meta.innerInstructions).flatMap((one) => stepsIn(jsonFields(one).instructions, keys))
  const owners = mint === undefined ? keys : ownersOf(mint, meta)
  const moves = [...own, ...called]
    .flatMap((step) => (mint === undefined ? coinMoves(step) : tokenMoves(step)))
    .filter(({ payer, to }) => owners[to] === wallet && owners[payer] !== wallet)
  const [sender, ...others] = new Set(moves.map(({ payer }) => owners[payer] ?? ''))
  if (sender === undefined || sender === '' || others.length > 0)
    return { wrong: 'The transaction does not say which wallet has paid', isUnclear: true }
  const moved = moves.reduce((sum, { amount }) => sum + amount, 0n)
  // Less than `received`: the rest came in another way, and has no payer that is known. More: a fee was kept on the way.
  let quantity = received
  if (moved < received) quantity = moved
  // Where the payer has not signed, because a program pays for it, anybody may have written the memo beside.
  const { numRequiredSignatures: signers } = jsonFields(message.header)
  const hasSigned = keys.slice(0, isWhole(signers) ? signers : 0).includes(sender)
  const text = own.find(
    (step) => hasSigned && isOf(step, memoPrograms) && beneficiaryIn(step.data.toString()) !== undefined,
  )
  const beneficiary = text && beneficiaryIn(text.data.toString())
  return { quantity, sender, ...(beneficiary === undefined ? {} : { beneficiary }) }
}

function coinsOf(keys: readonly string[], wallet: string, meta: JsonFields): bigint {
  const at = keys.indexOf(wallet)
  const [before, after] = [listOf(meta.preBalances)[at], listOf(meta.postBalances)[at]]
  return isWhole(before) && isWhole(after) ? BigInt(after) - BigInt(before) : 0n
}

function tokensOf(mint: string, wallet: string, meta: JsonFields): bigint {
  const sum = (list: unknown): bigint =>
    listOf(list)
      .map(jsonFields)
      .filter((one) => one.mint === mint && one.owner === wallet)
      .map((one) => String(jsonFields(one.uiTokenAmount).amount))
      .reduce((total, amount) => total + (/^\d{1,39}$/.test(amount) ? BigInt(amount) : 0n), 0n)
  return sum(meta.postTokenBalances) - sum(meta.preTokenBalances)
}

/** By position: whose the accounts of a token are. '': of several in this transaction. */
function ownersOf(mint: string, meta: JsonFields): readonly string[] {
  const owners: string[] = []
  for (const { accountIndex, mint: its, owner } of [meta.preTokenBalances, meta.postTokenBalances]
    .flatMap(listOf)
    .map(jsonFields)) {
    if (its !== mint || !isWhole(accountIndex) || typeof owner !== 'string') continue
    owners[accountIndex] = (owners[accountIndex] ?? owner) === owner ? owner : ''
  }
  return owners
}

function stepsIn(list: unknown, keys: readonly string[]): Step[] {
  return listOf(list)
    .map(jsonFields)
    .map(({ programIdIndex, accounts, data }) => ({
      program: isWhole(programIdIndex) ? keys[programIdIndex] : undefined,
      // A position that is no number stays one that is no account's: the others keep their places.
      accounts: listOf(accounts).map((at) => (isWhole(at) ? at : -1)),
      data: Buffer.from((typeof data === 'string' ? decodeBase58(data, dataMax) : undefined) ?? []),
    }))
}

/** Transfer (2) and TransferWithSeed (11) of the system program: the account at whose address the coins are, or its base. */
function coinMoves(step: Step): Move[] {
  const { data, accounts } = step
  if (!isOf(step, [systemProgram]) || data.length < 12) return []
  const kind = data.readUInt32LE(0)
  const amount = data.readBigUInt64LE(4)
  const [first = -1, second = -1, third = -1] = accounts
  if (kind === 2) return [{ payer: first, to: second, amount }]
  return kind === 11 ? [{ payer: second, to: third, amount }] : []
}

/** Transfer (3), TransferChecked (12) and TransferCheckedWithFee (26, 1): the owner's tokens, also where a delegate signs. */
function tokenMoves(step: Step): Move[] {
  const { data, accounts } = step
  if (!isOf(step, tokenPrograms)) return []
  const start = data[0] === 26 && data[1] === 1 ? 2 : 1
  const hasMint = data[0] === 12 || start === 2
  if ((data[0] !== 3 && !hasMint) || data.length < start + 8) return []
  const [payer = -1, second = -1, third = -1] = accounts
  return [{ payer, to: hasMint ? third : second, amount: data.readBigUInt64LE(start) }]
}

function isOf({ program }: Step, programs: readonly string[]): boolean {
  return program !== undefined && programs.includes(program)
}

function isWhole(value: unknown): value is number {
  return typeof value === 'number' && Number.isSafeInteger(value)
}

function listOf(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : []
}
