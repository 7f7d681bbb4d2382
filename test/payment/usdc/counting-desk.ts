import { randomBytes } from 'node:crypto'
import { isUnreadable, paymentName, type ReadPayment } from '../../../src/admission/presented.js'
import type { UsdcOrder } from '../../../src/payment/credits-port.js'
import type { X402Processor } from '../../../src/payment/usdc/x402-processor.js'
import type { X402Sales } from '../../../src/payment/usdc/x402-sales.js'

/** A payment as a client brings it. */
export interface Brought {
  /** Its name. */
  readonly payment: string
  readonly order: Omit<UsdcOrder, 'itemId' | 'bytes'>
}

const payer = `0x${'ab'.repeat(20)}`

/** A payment of so many units that nobody has signed: `countingDesk` does not ask for that. */
export function paymentOf(units: bigint): Brought {
  const nonce = `0x${randomBytes(32).toString('hex')}`
  const times = { validAfter: '0', validBefore: '99999999999' }
  const authorization = { from: payer, to: payer, value: String(units), nonce, ...times }
  const payload = { signature: `0x${'11'.repeat(65)}`, authorization }
  const presented = { x402Version: 1, scheme: 'exact', network: 'base-sepolia', payload }
  const header = Buffer.from(JSON.stringify(presented)).toString('base64')
  return {
    payment: `84532:${payer}:${nonce}`,
    order: { header, version: 1, resource: 'http://t.test/', mimeType: '', asker: '127.0.0.1' },
  }
}

/**
 * Sells by a desk without cashier and facilitator: whatever is brought with the wanted amount is settled at once, and credited
 * as the cashier does it. One unit is one winc.
 */
export function countingDesk(
  open: (desk: X402Processor) => X402Sales,
  priceOf: (bytes: number) => bigint,
): X402Sales {
  const denial = { status: 402, body: Buffer.from('{}'), lines: '' }
  const settle = async (
    read: ReadPayment,
    { units }: { units: bigint },
    { beneficiary }: { beneficiary: string },
  ): Promise<unknown> => {
    if (isUnreadable(read) || BigInt(read.authorization.value) !== units) return denial
    const payment = paymentName(read) ?? ''
    await sales.reserveSettled(beneficiary, payment, {
      units: String(units),
      payer,
      transaction: '0x1',
    } as never)
    return { payment, transaction: '0x1', lines: '' }
  }
  const sales = open({
    network: 'base-sepolia',
    most: 10n ** 12n,
    unitsOf: async (bytes: number) => priceOf(bytes),
    cashier: { find: () => undefined },
    requested: async () => undefined,
    x402: { settle, offer: () => denial, receipt: () => '', isSignedByPayer: () => true },
  } as unknown as X402Processor)
  return sales
}
