import type { Test } from 'tap'
import { generatePrivateKey, privateKeyToAccount } from 'viem/accounts'
import { type ScriptedFacilitator, scriptedFacilitator } from './scripted-facilitator.js'
import { openShop, type Shop, type ShopOptions } from './shop.js'

export const newAccount = () => privateKeyToAccount(generatePrivateKey())
export const payee = newAccount().address

export interface Scene {
  readonly facilitator: ScriptedFacilitator
  readonly shop: Shop
  readonly payer: ReturnType<typeof newAccount>
  readonly taken: () => bigint
}

/** A shop with a facilitator of its own, and a payer with money. */
export async function scene(t: Test, options: Partial<ShopOptions> = {}): Promise<Scene> {
  const facilitator = await scriptedFacilitator(t)
  const payer = newAccount()
  facilitator.balances.set(payer.address.toLowerCase(), 10_000n)
  const shop = await openShop(t, { facilitatorUrl: facilitator.url, wallet: payee, ...options })
  return { facilitator, shop, payer, taken: () => facilitator.balances.get(payee.toLowerCase()) ?? 0n }
}
