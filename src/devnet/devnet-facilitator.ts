import { createHash } from 'node:crypto'
import { authorizationDigest, signerOf } from '../admission/authorization.js'
import { isUnreadable, type Presented, readPayment } from '../admission/presented.js'
import { type Usdc, usdcOf } from '../admission/usdc.js'
import { fieldsOf } from '../chain/json-fields.js'
import { jsonReply, type NodeReply } from './node-reply.js'

/** Where the embedded node settles payments by x402, below its address. */
export const facilitatorPath = 'x402'

/**
 * A facilitator (x402, both versions) for a chain of one's own: signatures are checked, and everybody is rich. Nothing is kept:
 * the same payment has the same transaction each time, so asking again after a kill is answered alike.
 */
export function facilitate(order: string | undefined, body: string | undefined): NodeReply | undefined {
  if (order === 'supported' && body === undefined) return jsonReply(supported)
  if (body === undefined || (order !== 'verify' && order !== 'settle')) return undefined
  const paid = readBody(body)
  if (paid === undefined) return jsonReply({ error: 'malformed' }, 400)
  const { read, usdc, network } = paid
  const payer = read.authorization.from
  const fault = faultOf(read, usdc)
  if (order === 'verify')
    return jsonReply(
      fault === undefined ? { isValid: true, payer } : { isValid: false, invalidReason: fault, payer },
    )
  const hash = createHash('sha256').update(`${payer}:${read.authorization.nonce}`.toLowerCase()).digest('hex')
  return jsonReply(
    fault === undefined
      ? { success: true, transaction: `0x${hash}`, network, payer }
      : { success: false, errorReason: fault, transaction: '', network, payer },
  )
}

const supported = {
  kinds: Object.values(usdcOf).flatMap(({ network, caip2 }) => [
    { x402Version: 1, scheme: 'exact', network },
    { x402Version: 2, scheme: 'exact', network: caip2 },
  ]),
  extensions: [],
  signers: {},
}

interface Paid {
  readonly read: Presented
  readonly usdc: Usdc
  /** The network, as the version of the payment calls it. */
  readonly network: string
}

function readBody(body: string): Paid | undefined {
  const given = fieldsOf(body)
  const payload = given?.paymentPayload
  const version = given?.x402Version
  if (version !== 1 && version !== 2) return undefined
  const read = readPayment(Buffer.from(JSON.stringify(payload ?? null)).toString('base64'), version)
  if (isUnreadable(read)) return undefined
  const { network } = read
  const usdc = Object.values<Usdc>(usdcOf).find((one) => one.network === network || one.caip2 === network)
  return usdc === undefined ? undefined : { read, usdc, network }
}

function faultOf({ authorization, signature }: Presented, usdc: Usdc): string | undefined {
  const digest = authorizationDigest(usdc, authorization)
  const signer = signerOf(digest, Buffer.from(signature.slice(2), 'hex'))
  return signer === authorization.from.toLowerCase() ? undefined : 'invalid_exact_evm_payload_signature'
}
