import { ceilDivided, type PaymentAccount, type TopUpResult, tokenDecimals } from './account.js'
import { ClientError } from './errors.js'
import type { ResumeStore } from './resume-store.js'
import { nowMs, waited } from './timing.js'

/** A transfer of the token to the payment service; the caller's wallet sends it. Resolves with its transaction id. */
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
      /** 1.1 unless said: prices move between quote and upload. */
      readonly topUpBufferMultiplier?: number
    }
  | {
      readonly mode: 'x402'
      /** The most that one upload may cost, in micro-USDC; 0.10 USDC unless said. */
      readonly maxMUSDCAmount?: bigint
    }

export const defaultMUSDCMax = 100_000n

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

/**
 * Sends tokens and tells the service of it. `key`: under which the transaction is remembered before it is submitted, so that a
 * repetition submits the same and sends no second one. Resolves as soon as the service knows the transaction.
 */
export async function topUp(
  account: PaymentAccount,
  token: string,
  store: ResumeStore,
  key: string,
  request: TopUpRequest,
): Promise<TopUpResult> {
  let txId = await store.get(key)
  if (txId === undefined) {
    const { turboCreditDestinationAddress: creditDestination, feeMultiplier = 1 } = request
    const to = await account.receivingAddress()
    const transfer = { token, to, amount: request.tokenAmount, feeMultiplier }
    txId = await request.sendTokens({ ...transfer, ...(creditDestination && { creditDestination }) })
    await store.set(key, txId)
  }
  for (const untilMs = nowMs() + notFoundMs; ; ) {
    try {
      return await account.submitFundTransaction({ txId })
    } catch (error) {
      const isYoung = error instanceof ClientError && error.code === 'not-found' && nowMs() < untilMs
      if (!isYoung) throw error
      await waited(request.pollMs ?? pollMs, request.signal)
    }
  }
}

/** Tops up what an upload of so many credits lacks, and waits until it is credited. */
export async function fundOnDemand(
  account: PaymentAccount,
  token: string,
  store: ResumeStore,
  key: string,
  winc: bigint,
  mode: Extract<FundingMode, { mode: 'on-demand' }>,
  signal: AbortSignal | undefined,
): Promise<void> {
  const balance = BigInt((await account.getBalance()).effectiveBalance)
  const remembered = await store.get(key)
  if (balance >= winc && remembered === undefined) return
  const buffer = BigInt(Math.round((mode.topUpBufferMultiplier ?? 1.1) * 1000))
  const tokenAmount = await tokensFor(account, token, ((winc - balance) * buffer) / 1000n)
  if (mode.maxTokenAmount !== undefined && tokenAmount > mode.maxTokenAmount && remembered === undefined) {
    const found = `it takes ${tokenAmount} of ${token}, the cap is ${mode.maxTokenAmount}`
    throw new ClientError('over-cap', found, 'raise maxTokenAmount if that price is right')
  }
  const request = { tokenAmount, sendTokens: mode.sendTokens, ...(signal && { signal }) }
  for (;;) {
    const { status, id } = await topUp(account, token, store, key, request)
    if (status === 'confirmed') break
    if (status === 'failed')
      throw new ClientError('rejected', `the top-up ${id} failed`, 'look at the transaction on its chain')
    await waited(pollMs, signal)
  }
  await store.delete(key)
}

/** How much of the token gives at least so many credits: asked for one whole token, then for its share, until it suffices. */
async function tokensFor(account: PaymentAccount, token: string, winc: bigint): Promise<bigint> {
  let amount = 10n ** BigInt(tokenDecimals[token] ?? 12)
  for (let asked = 0; asked < 8; asked++) {
    const given = BigInt((await account.getWincForToken({ tokenAmount: amount })).winc)
    if (asked > 0 && given >= winc) return amount
    if (given <= 0n) break
    amount = ceilDivided(winc * amount, given) + BigInt(asked)
  }
  throw new ClientError('unavailable', `no price of ${token} that suffices`, 'top up by hand')
}
