import { createPublicKey, generateKeyPairSync, type KeyObject, verify } from 'node:crypto'
import t from 'tap'
import { generatePrivateKey, privateKeyToAccount } from 'viem/accounts'
import { systemClock } from '../../src/actor/clock.js'
import { cdpAuthorizing } from '../../src/admission/cdp-token.js'
import { newEd25519Key } from '../../src/proof/new-key.js'
import { scriptedFacilitator } from './scripted-facilitator.js'
import { get, openShop, payment } from './shop.js'

const ec = generateKeyPairSync('ec', { namedCurve: 'P-256' })
const ed = newEd25519Key()
const edSecret = Buffer.concat([
  // The structure of a private key ends with its bytes (RFC 8410, section 7).
  ed.privateKey.export({ type: 'pkcs8', format: 'der' }).subarray(-32),
  ed.publicKey,
]).toString('base64')
const pem = (type: 'sec1' | 'pkcs8'): string => ec.privateKey.export({ type, format: 'pem' }).toString()

interface Token {
  readonly header: Record<string, unknown>
  readonly claims: Record<string, unknown> & { iat: number; exp: number }
  readonly isSigned: boolean
}

function read(authorization: string | undefined, key: KeyObject): Token {
  const [header = '', claims = '', signature = ''] = (authorization ?? '').replace(/^Bearer /, '').split('.')
  const json = (part: string) => JSON.parse(Buffer.from(part, 'base64url').toString())
  const given = { key, dsaEncoding: 'ieee-p1363' } as const
  const algorithm = key.asymmetricKeyType === 'ec' ? 'sha256' : null
  const signed = Buffer.from(`${header}.${claims}`)
  return {
    header: json(header),
    claims: json(claims),
    isSigned: verify(algorithm, signed, given, Buffer.from(signature, 'base64url')),
  }
}

t.test('a token names one request, and its signature holds', async (t) => {
  const url = new URL('https://api.cdp.coinbase.com/platform/v2/x402/verify')
  const kinds = [
    ['ES256', pem('sec1'), ec.publicKey],
    ['ES256', pem('pkcs8'), ec.publicKey],
    ['ES256', pem('pkcs8').replaceAll('\n', '\\n'), ec.publicKey],
    ['EdDSA', edSecret, createPublicKey(ed.privateKey)],
  ] as const
  for (const [alg, secret, key] of kinds) {
    const authorize = cdpAuthorizing('key-1', secret, systemClock)
    const { header, claims, isSigned } = read(await authorize('POST', url), key)
    t.ok(isSigned, alg)
    t.match(header, { alg, kid: 'key-1', typ: 'JWT', nonce: /^[0-9a-f]{32}$/ })
    t.match(claims, { sub: 'key-1', iss: 'cdp', uris: ['POST api.cdp.coinbase.com/platform/v2/x402/verify'] })
    t.equal(claims.exp - claims.iat, 120)
    t.not(await authorize('POST', url), await authorize('POST', url), 'each has a nonce of its own')
  }
})

t.test('a key that cannot be read stops the start, and is not repeated', async (t) => {
  const rsa = generateKeyPairSync('rsa', { modulusLength: 2048 }).privateKey
  const bad = ['secret-text', edSecret.slice(4), rsa.export({ type: 'pkcs8', format: 'pem' }).toString()]
  bad.push(pem('sec1').slice(0, 90), '-----BEGIN EC PRIVATE KEY-----')
  for (const secret of bad) {
    t.throws(() => cdpAuthorizing('key', secret, systemClock), /^CDP_API_KEY_SECRET is neither/)
  }
})

t.test('every request to the facilitator carries a token of its own', async (t) => {
  const facilitator = await scriptedFacilitator(t)
  const payer = privateKeyToAccount(generatePrivateKey())
  facilitator.balances.set(payer.address.toLowerCase(), 5000n)
  const authorizing = cdpAuthorizing('key', pem('sec1'), systemClock)
  // With a slash at the end, as some write it: it is not doubled.
  const facilitatorUrl = `${facilitator.url}/platform/v2/`
  const shop = await openShop(t, { facilitatorUrl, wallet: `0x${'12'.repeat(20)}`, authorizing })
  const got = await get(`${shop.url}/file`, await payment(payer, 1, { to: `0x${'12'.repeat(20)}` }))
  t.equal(got.status, 200)
  const { host } = new URL(facilitator.url)
  const uris = facilitator.headers.map(({ authorization }) => read(authorization, ec.publicKey))
  t.ok(uris.every(({ isSigned }) => isSigned))
  t.same(
    uris.map(({ claims }) => claims.uris),
    ['GET', 'POST', 'POST'].map((method, at) => [`${method} ${host}/platform/v2/${facilitator.calls[at]}`]),
  )
})
