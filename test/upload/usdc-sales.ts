import type { Test } from 'tap'
import type { UploadAnswer } from '../../src/upload/requests/upload-answers.js'
import { eventually } from '../eventually.js'
import { answered, type RigOptions, requestOf, type UploadRig } from './upload-rig.js'

/** Payments in USDC that are settled by hand. */
export function salesByHand(t: Test) {
  const open: ((isPaid: boolean) => void)[] = []
  const made = { payment: 'p', units: '1000', transaction: '0x1', payer: '0xa', network: 'base-sepolia' }
  const options: Pick<RigOptions, 'look' | 'pay'> = {
    look: async () => ({ good: true, units: '1000' }),
    pay: async () => {
      const isPaid = await new Promise<boolean>((resolve) => open.push(resolve))
      if (!isPaid) return { status: 402, json: {}, lines: '' }
      return { paid: true, winc: '7', lines: '', ...made }
    },
  }
  // Timers of the system's clock keep no process alive.
  const awake = setInterval(() => undefined, 1000)
  t.teardown(() => clearInterval(awake))
  let nonce = 0
  const path = '/x402/upload/signed'
  const ordered = (rig: UploadRig, item: Buffer, earlier?: number): Promise<UploadAnswer> => {
    if (earlier === undefined) nonce += 1
    const headers = { 'content-length': String(item.length), 'x-payment': payment(earlier ?? nonce) }
    return answered(rig, path, requestOf('POST', path, { headers, pieces: [item] }))
  }
  return {
    options,
    /** Settlements that were requested. */
    orders: () => open.length,
    /** By a new payment, or by an `earlier` one (from 1 on). */
    ordered,
    /** The same; resolves when the payment is being settled. */
    async buy(
      rig: UploadRig,
      item: Buffer,
      earlier?: number,
    ): Promise<{ readonly answer: Promise<UploadAnswer> }> {
      const number = open.length + 1
      const answer = ordered(rig, item, earlier)
      await eventually('its payment is being settled', () => open.length === number)
      return { answer }
    },
    /** A payment, by the order in which they came, is made or fails. */
    settle: (number: number, isPaid: boolean) => open[number]?.(isPaid),
  }
}

function payment(nonce: number): string {
  const authorization = {
    from: `0x${'a1'.repeat(20)}`,
    to: `0x${'b2'.repeat(20)}`,
    value: '1000',
    validAfter: '0',
    validBefore: String(Math.floor(Date.now() / 1000) + 600),
    nonce: `0x${nonce.toString(16).padStart(64, '0')}`,
  }
  const payload = { signature: `0x${'c3'.repeat(65)}`, authorization }
  const given = { x402Version: 1, scheme: 'exact', network: 'base-sepolia', payload }
  return Buffer.from(JSON.stringify(given)).toString('base64')
}
