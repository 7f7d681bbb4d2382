import type { Test } from 'tap'
import { newAccount, payee } from '../../admission/scene.js'
import { type ScriptedFacilitator, scriptedFacilitator } from '../../admission/scripted-facilitator.js'
import { type PaymentRig, paymentRig } from '../rig.js'

/** A payment service that takes USDC, and somebody who has 100 of it. */
export interface UsdcScene {
  readonly facilitator: ScriptedFacilitator
  readonly rig: PaymentRig
  readonly payer: ReturnType<typeof newAccount>
}

/** Its clock tells the time of this machine, because payments are good for a time. */
export async function usdcScene(
  t: Test,
  given: Pick<Parameters<typeof paymentRig>[1] & object, 'monotonic' | 'networkPrice'> = {},
): Promise<UsdcScene> {
  const facilitator = await scriptedFacilitator(t)
  const payer = newAccount()
  facilitator.balances.set(payer.address.toLowerCase(), 100_000_000n)
  const rig = await paymentRig(t, {
    ...given,
    x402: {
      network: 'base-sepolia',
      wallet: payee.toLowerCase(),
      facilitatorUrl: facilitator.url,
      protocol: 'http',
      verifyMs: 30_000,
      settleMs: 30_000,
    },
  })
  rig.setTime(Date.now())
  return { facilitator, rig, payer }
}
