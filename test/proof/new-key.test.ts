import { createPrivateKey, createPublicKey, sign, verify } from 'node:crypto'
import t from 'tap'
import { newEd25519Key, newRsaKey } from '../../src/proof/new-key.js'

const message = Buffer.from('a message')

t.test('a new Ed25519 key signs what its 32 bytes verify', async (t) => {
  const { privateKey, publicKey } = newEd25519Key()
  t.equal(publicKey.length, 32)
  const jwk = { kty: 'OKP', crv: 'Ed25519', x: publicKey.toString('base64url') }
  const key = createPublicKey({ key: jwk, format: 'jwk' })
  t.ok(verify(null, message, key, sign(null, message, privateKey)))
  t.not(newEd25519Key().publicKey.equals(publicKey), true)
})

t.test('a new RSA key has all of its numbers, and the usual exponent', async (t) => {
  const jwk = await newRsaKey(2048)
  t.match(jwk, {
    kty: 'RSA',
    e: 'AQAB',
    n: String,
    d: String,
    p: String,
    q: String,
    dp: String,
    dq: String,
    qi: String,
  })
  t.equal(Buffer.from(jwk.n ?? '', 'base64url').length, 256)
  const signature = sign('sha256', message, createPrivateKey({ key: jwk, format: 'jwk' }))
  t.ok(verify('sha256', message, createPublicKey({ key: jwk, format: 'jwk' }), signature))
})
