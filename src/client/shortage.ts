import type { PaymentAccount } from './account.js'
import { decimalText, wincOf } from './amounts.js'
import { ClientError } from './errors.js'

/**
 * Runs the upload of an item of so many bytes with its header. Where credits do not suffice, the service states no amount, so
 * a second request finds how much is missing.
 */
export async function withShortage<Result>(
  account: PaymentAccount,
  address: string | undefined,
  bytes: number,
  work: () => PromiseLike<Result>,
): Promise<Result> {
  try {
    return await work()
  } catch (error) {
    const isShort =
      error instanceof ClientError && ['insufficient-credits', 'free-tier-exhausted'].includes(error.code)
    if (!isShort || address === undefined) throw error
    throw (await shortage(account, address, bytes, error)) ?? error
  }
}

/**
 * The failure of an upload that credits do not suffice for, with what is missing; undefined where the numbers cannot be had, or
 * do not explain it. `bytes`: of the item with its header.
 */
async function shortage(
  account: PaymentAccount,
  address: string,
  bytes: number,
  error: ClientError,
): Promise<ClientError | undefined> {
  try {
    const [[cost], { winc }] = await Promise.all([
      account.getUploadCosts({ bytes: [bytes] }),
      account.getBalance(address),
    ])
    const missing = wincOf(cost?.winc ?? 0) - wincOf(winc)
    if (missing <= 0n) return undefined
    const [lacks, costs, has] = [missing, cost?.winc ?? 0, winc].map((each) => creditsOf(BigInt(each)))
    const found = `${error.message}: ${lacks} credits are missing, it costs ${costs} and the wallet has ${has}`
    const { code, advice, status } = error
    return new ClientError(code, found, advice, { cause: error, ...(status !== undefined && { status }) })
  } catch (other) {
    if (other instanceof ClientError) return undefined
    throw other
  }
}

/** A credit is 10^12 winc. */
function creditsOf(winc: bigint): string {
  return decimalText(winc, 12)
}
