import type { PaymentAccount } from './account.js'
import type { TopUpResult } from './account-answers.js'
import { ceilDivided, tokenDecimals, wincOf } from './amounts.js'
import { ClientError } from './errors.js'
import type { ResumeStore } from './resume-store.js'
import { nowMs, waited } from './timing.js'

/**
 * A transfer of the token to the payment service; the caller's wallet sends it. Resolves with its transaction id. A
 * ClientError, or an error with the code 4001, says that nothing was sent; after any other error nothing is sent again for
 * the same upload.
 */
export type SendTokens = (transfer: {
  readonly token: string
  readonly to: string
  /** In the smallest unit. */
  readonly amount: bigint
  readonly feeMultiplier: number
  /** Whose credits it becomes, where not the sender's: it has to be written into the transaction. */
  readonly creditDestination?: string
}) => Promise<string>

/** Who pays for an upload, and how. */
export type FundingMode =
  | { readonly mode: 'credits' }
  | {
      readonly mode: 'on-demand'
      readonly sendTokens: SendTokens
      /** The most that one upload may top up, in the token's smallest unit. */
      readonly maxTokenAmount?: bigint
      /** At least 1; 1.1 by default: prices move between quote and upload. */
      readonly topUpBufferMultiplier?: number
    }
  | {
      readonly mode: 'x402'
      /** The most that one upload may cost, in micro-USDC; 0.10 USDC by default. */
      readonly maxMUSDCAmount?: bigint
    }

const notFoundMs = 120_000
const pollMs = 3000

export interface TopUpRequest {
  readonly tokenAmount: bigint
  readonly sendTokens: SendTokens
  readonly feeMultiplier?: number
  readonly turboCreditDestinationAddress?: string
  readonly signal?: AbortSignal
  /** Pause between two questions whether it was credited. */
  readonly pollMs?: number
}

/** What is remembered in place of a transaction's id while the wallet sends it. */
const sending = 'sending'
/** EIP-1193: the user rejected the request in the wallet. */
const userRejected = 4001

/**
 * Sends tokens and tells the service of it. `key`: under which the transaction is remembered before it is submitted, so that a
 * repetition submits the same and sends no second one. Where the program ended while the wallet was sending, nobody here knows
 * whether it did: that is `payment-uncertain`, and nothing is sent again. Resolves as soon as the service knows the transaction.
 */
export async function topUp(
  account: PaymentAccount,
  token: string,
  store: ResumeStore,
  key: string,
  request: TopUpRequest,
): Promise<TopUpResult> {
  const { turboCreditDestinationAddress: creditDestination, feeMultiplier = 1 } = request
  if (!(feeMultiplier > 0 && Number.isFinite(feeMultiplier)))
    throw noFactor('feeMultiplier', feeMultiplier, 'above 0')
  let txId = await store.get(key)
  let target = {}
  if (txId === sending) {
    const found = `a transfer of ${token} was begun before, and whether it was sent is not known`
    const advice =
      'look in the wallet; tell of it by submitFundTransaction, or top up anew by topUpWithTokens'
    throw new ClientError('payment-uncertain', found, advice)
  }
  if (txId === undefined) {
    const to = await account.receivingAddress()
    target = { target: to }
    const transfer = { token, to, amount: request.tokenAmount, feeMultiplier }
    await store.set(key, sending)
    try {
      txId = await request.sendTokens({ ...transfer, ...(creditDestination && { creditDestination }) })
    } catch (error) {
      // Only where it is sure that nothing was sent: a wallet that lost its node may have sent it nevertheless.
      if (error instanceof ClientError || (error as { code?: unknown }).code === userRejected)
        await store.delete(key)
      throw error
    }
    await store.set(key, txId)
  }
  for (const untilMs = nowMs() + notFoundMs; ; ) {
    try {
      return { ...(await account.submitFundTransaction({ txId })), ...target }
    } catch (error) {
      const isYoung = error instanceof ClientError && error.code === 'not-found' && nowMs() < untilMs
      if (!isYoung) throw error
      await waited(request.pollMs ?? pollMs, request.signal)
    }
  }
}

function noFactor(name: string, value: unknown, bound: string): ClientError {
  return new ClientError('invalid-input', `${name} is ${String(value)}`, `give a number ${bound}`)
}

/** Throws where the buffer is no factor that suffices for the price. */
export function checkBuffer({
  topUpBufferMultiplier = 1.1,
}: Extract<FundingMode, { mode: 'on-demand' }>): void {
  if (!(topUpBufferMultiplier >= 1 && Number.isFinite(topUpBufferMultiplier)))
    throw noFactor('topUpBufferMultiplier', topUpBufferMultiplier, 'of at least 1')
}

/** Tops up what an upload of so many credits lacks, and waits until it is credited. Undefined: there was enough. */
export async function fundOnDemand(
  account: PaymentAccount,
  token: string,
  store: ResumeStore,
  key: string,
  winc: bigint,
  mode: Extract<FundingMode, { mode: 'on-demand' }>,
  signal: AbortSignal | undefined,
): Promise<TopUpResult | undefined> {
  const balance = wincOf((await account.getBalance()).effectiveBalance)
  if (balance >= winc) {
    await store.delete(key)
    return undefined
  }
  const isBegun = (await store.get(key)) !== undefined
  const tokenAmount = isBegun ? 0n : await missingTokens(account, token, winc - balance, mode)
  const request = { tokenAmount, sendTokens: mode.sendTokens, ...(signal && { signal }) }
  for (;;) {
    const result = await topUp(account, token, store, key, request)
    const { status, id } = result
    if (status !== 'pending') await store.delete(key)
    if (status === 'confirmed') return result
    if (status === 'failed')
      throw new ClientError('rejected', `the top-up ${id} failed`, 'look at the transaction on its chain')
    await waited(pollMs, signal)
  }
}

async function missingTokens(
  account: PaymentAccount,
  token: string,
  winc: bigint,
  { topUpBufferMultiplier = 1.1, maxTokenAmount }: Extract<FundingMode, { mode: 'on-demand' }>,
): Promise<bigint> {
  const buffer = BigInt(Math.round(topUpBufferMultiplier * 1000))
  const amount = await tokensFor(account, token, ceilDivided(winc * buffer, 1000n))
  if (maxTokenAmount === undefined || amount <= maxTokenAmount) return amount
  const found = `it takes ${amount} of ${token}, the cap is ${maxTokenAmount}`
  throw new ClientError('over-cap', found, 'raise maxTokenAmount if that price is right')
}

/** How much of the token gives at least so many credits: prices one whole token, then its share, until it suffices. */
async function tokensFor(account: PaymentAccount, token: string, winc: bigint): Promise<bigint> {
  let amount = 10n ** BigInt(tokenDecimals[token] ?? 12)
  for (let tried = 0; tried < 8; tried++) {
    const given = wincOf((await account.getWincForToken({ tokenAmount: amount })).winc)
    if (tried > 0 && given >= winc) return amount
    if (given <= 0n) break
    amount = ceilDivided(winc * amount, given) + BigInt(tried)
  }
  throw new ClientError('unavailable', `no price of ${token} that suffices`, 'top up by hand')
}
