import { createPublicKey, verify } from 'node:crypto'
import * as strict from 'http-message-sig'
import { httpbis } from 'http-message-signatures'

/** A response as a client holds it, with the request it sent. */
export interface Exchange {
  readonly method: string
  readonly url: string
  readonly status: number
  readonly fields: readonly (readonly [string, string])[]
}

/** Verifies an Ed25519 signature with nothing but the key that the keyid spells. */
function check(keyId: string, base: Uint8Array, signature: Uint8Array): boolean {
  const raw = Buffer.from(keyId.replace('ed25519:', ''), 'base64url')
  const der = Buffer.concat([Buffer.from('302a300506032b6570032100', 'hex'), raw])
  return verify(null, base, createPublicKey({ key: der, format: 'der', type: 'spki' }), signature)
}

/** By http-message-signatures. */
export async function verifiedByFirst(exchange: Exchange): Promise<boolean> {
  const headers: Record<string, string | string[]> = {}
  for (const [name, value] of exchange.fields) {
    const lower = name.toLowerCase()
    const before = headers[lower]
    headers[lower] = before === undefined ? value : [...(Array.isArray(before) ? before : [before]), value]
  }
  const config: Parameters<typeof httpbis.verifyMessage>[0] = {
    async keyLookup(parameters) {
      const keyId = String(parameters.keyid)
      return {
        id: keyId,
        algs: ['ed25519'],
        verify: async (base, signature) => check(keyId, base, signature),
      }
    },
  }
  const request = { method: exchange.method, url: exchange.url, headers: {} }
  return (await httpbis.verifyMessage(config, { status: exchange.status, headers }, request)) === true
}

/** By http-message-sig. */
export async function verifiedBySecond(exchange: Exchange): Promise<boolean> {
  const message: strict.ResponseDescriptor = {
    kind: 'response',
    status: exchange.status,
    fields: exchange.fields.map(([name, value]) => ({ name, value })),
    request: { kind: 'request', method: exchange.method, targetUri: exchange.url, fields: [] },
  }
  try {
    await strict.verifySignature(message, {
      label: 'sig1',
      policy: {
        algorithms: ['ed25519'],
        requiredComponents: ['@status'],
        requiredParameters: ['created', 'keyid', 'alg'],
      },
      resolveVerifier: (candidate) => ({
        algorithm: 'ed25519',
        verify: (base, signature) => check(String(candidate.parameters.keyid), base, signature),
      }),
    })
    return true
  } catch (error) {
    if (strict.isSignatureError(error)) return false
    throw error
  }
}
