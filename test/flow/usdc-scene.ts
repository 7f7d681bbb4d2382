import { connect } from 'node:net'
import type { Test } from 'tap'
import { ed25519Signer, signItem } from '../../src/proof/sign.js'
import { newAccount, payee } from '../admission/scene.js'
import { type ScriptedFacilitator, scriptedFacilitator } from '../admission/scripted-facilitator.js'
import { scratch } from '../scratch.js'
import { type Running, run } from './running.js'

/** Somebody who pays in USDC, and a facilitator without a chain. */
export interface Scene {
  readonly facilitator: ScriptedFacilitator
  readonly payer: ReturnType<typeof newAccount>
  readonly folder: string
  readonly settings: Record<string, string>
  program: Running
  taken(): bigint
}

/** Who pays, who settles, and the settings of a program that takes USDC. */
export async function buyer(t: Test): Promise<Pick<Scene, 'facilitator' | 'payer' | 'settings'>> {
  const facilitator = await scriptedFacilitator(t)
  const payer = newAccount()
  facilitator.balances.set(payer.address.toLowerCase(), 100_000_000n)
  const settings = {
    DEVNET_SEED: 'false',
    UPLOAD_FREE_ITEM_BYTES: '2000',
    PRIVATE_ROUTE_SECRET: secret,
    X_402_USDC_NETWORK: 'base-sepolia',
    X_402_USDC_WALLET_ADDRESS: payee,
    X_402_USDC_FACILITATOR_URL: facilitator.url,
    X_402_USDC_SETTLE_TIMEOUT_MS: '30000',
  }
  return { facilitator, payer, settings }
}

export async function scene(t: Test): Promise<Scene> {
  const { facilitator, payer, settings } = await buyer(t)
  const folder = scratch('usdc')
  return {
    facilitator,
    payer,
    folder,
    settings,
    program: await run(t, folder, settings),
    taken: () => facilitator.balances.get(payee.toLowerCase()) ?? 0n,
  }
}

/** Another payer at the same program, and the facilitator as it was at its start. */
export function newBuyer(scene: Scene): Scene {
  const { facilitator } = scene
  const payer = newAccount()
  facilitator.calls.length = 0
  facilitator.balances.clear()
  facilitator.balances.set(payer.address.toLowerCase(), 100_000_000n)
  return { ...scene, payer }
}

export const secret = 'a-secret-of-two-services'
const signer = ed25519Signer(Buffer.alloc(32, 7))
export const itemOf = (text: string, bytes = 50_000): Buffer =>
  Buffer.from(signItem(signer, {}, Buffer.alloc(bytes, text)))

export interface Answered {
  readonly status: number
  readonly headers: Headers
  readonly json: Record<string, unknown>
}

export async function post(
  url: string,
  body: Uint8Array,
  headers: Record<string, string> = {},
): Promise<Answered> {
  const answer = await fetch(url, { method: 'POST', body, headers })
  const text = await answer.text()
  const json = text.startsWith('{') ? (JSON.parse(text) as Record<string, unknown>) : { text }
  return { status: answer.status, headers: answer.headers, json }
}

/** The answer to a request whose body never comes. */
export async function answerTo(base: string, head: string): Promise<string> {
  const { hostname: host, port } = new URL(base)
  const socket = connect({ host, port: Number(port) })
  socket.write(head)
  let text = ''
  for await (const piece of socket) text += String(piece)
  return text
}

interface Offer {
  readonly maxAmountRequired: string
  readonly resource: string
  readonly maxTimeoutSeconds: number
}

export function offerIn({ json }: Answered): Offer {
  const [offer] = json.accepts as Offer[]
  if (offer === undefined) throw new Error('nothing was offered')
  return offer
}

/** Of a receipt: what must be the same each time. */
export function signed({ json }: Answered): object {
  const { id, timestamp, deadlineHeight, signature, winc, x402PaymentTxId } = json
  return { id, timestamp, deadlineHeight, signature, winc, x402PaymentTxId }
}
