import { isRefusal } from '../format/refusal.js'
import type { Accounts } from './accounts.js'
import { type Call, type CallRoute, json, type ServiceAnswer } from './call.js'
import { addressKind } from './wallets.js'
import type { X402TopUps } from './x402-topups.js'

const bodyMax = 4096
const wallet = '{signatureType}/{address}'

/** Top-ups by x402. Errors are JSON here, as clients of that protocol read them. */
export function x402CreditRoutes(topUps: X402TopUps, accounts: Accounts): CallRoute[] {
  return [
    {
      path: `/v1/x402/price/${wallet}`,
      summary: 'What so many bytes cost in USDC, as an offer to be signed',
      statuses: [200, 400],
      query: ['bytes'],
      answer: async (call) => {
        const bytes = readBytes(call.query.get('bytes') ?? '')
        if (bytes === undefined) return wrong('Invalid byte count')
        const offer = await offered(topUps, call, bytes)
        if (offer.status !== 402) return offer
        const { x402Version, accepts } = offer.json as { x402Version: number; accepts: unknown }
        return json({ x402Version, accepts })
      },
    },
    {
      path: `/v1/x402/top-up/${wallet}`,
      summary: 'Puts a payment in USDC into a wallet; without one: what so many bytes cost',
      statuses: [200, 400, 402],
      method: 'POST',
      bodyMax,
      answer: (call) => topUpAnswer(topUps, accounts, call),
    },
  ]
}

async function topUpAnswer(topUps: X402TopUps, accounts: Accounts, call: Call): Promise<ServiceAnswer> {
  const { request, path, body } = call
  const [, address = ''] = path
  if (addressKind(address) === undefined) return wrong('Invalid address')
  const taken = await topUps.take(request, address)
  if (taken === undefined) {
    const bytes = bytesIn(body)
    return bytes === undefined ? wrong('Invalid byte count') : offered(topUps, call, bytes)
  }
  if ('status' in taken) return taken
  const { payment, transaction, winc, lines } = taken
  const balance = await accounts.balance(address)
  const money = { creditsGranted: winc, balance: balance?.winc ?? '0' }
  const said = { success: true, ...money, txHash: transaction, paymentId: payment, network: topUps.network }
  return json(said, lines)
}

async function offered(
  topUps: X402TopUps,
  { request }: Call,
  bytes: number,
): Promise<{ readonly status: number; readonly json: unknown; readonly lines: string }> {
  const offer = await topUps.offer(request, bytes)
  if (!isRefusal(offer)) return offer
  return { status: 503, json: { error: 'Pricing Oracle Unavailable' }, lines: '\r\nRetry-After: 5' }
}

function wrong(error: string): ServiceAnswer {
  return { status: 400, json: { error } }
}

function readBytes(text: string): number | undefined {
  const bytes = /^[1-9]\d{0,15}$/.test(text) ? Number(text) : Number.NaN
  return Number.isSafeInteger(bytes) ? bytes : undefined
}

function bytesIn(body: Uint8Array): number | undefined {
  try {
    const given: unknown = JSON.parse(Buffer.from(body).toString())
    if (typeof given !== 'object' || given === null || !('bytes' in given)) return undefined
    return readBytes(String(given.bytes))
  } catch (error) {
    if (error instanceof SyntaxError) return undefined
    throw error
  }
}
