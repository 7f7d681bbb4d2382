import { createPrivateKey, type JsonWebKey, sign } from 'node:crypto'
import { secp256k1 } from '@noble/curves/secp256k1.js'
import { privateKeyToAccount } from 'viem/accounts'
import { encodeBase58 } from '../../src/format/base58.js'
import { sha256 } from '../../src/proof/digest.js'
import { ethereumMessage } from '../../src/proof/ethereum.js'
import { newEd25519Key } from '../../src/proof/new-key.js'
import { fixtureJson } from '../fixture-file.js'

/** A wallet that signs requests as wallets of its kind do. */
export interface TestWallet {
  readonly name: string
  readonly signatureType: number
  readonly address: string
  headers(nonce: string): Record<string, string>
}

const text = (bytes: Uint8Array): string => Buffer.from(bytes).toString('base64url')

function wallet(
  name: string,
  signatureType: number,
  address: string,
  owner: Uint8Array,
  signed: (message: Buffer) => Uint8Array,
): TestWallet {
  return {
    name,
    signatureType,
    address,
    headers: (nonce) => ({
      'x-nonce': nonce,
      'x-public-key': text(owner),
      'x-signature': text(signed(Buffer.from(nonce))),
      ...(signatureType === 1 ? {} : { 'x-signature-type': String(signatureType) }),
    }),
  }
}

/** One wallet of every kind, and of every way to sign. The RSA key is a fixture, because to make one takes seconds. */
export function testWallets(): TestWallet[] {
  const jwk = fixtureJson<JsonWebKey>('rsa-4096.jwk.json')
  const rsa = createPrivateKey({ key: jwk, format: 'jwk' })
  const modulus = Buffer.from(jwk.n ?? '', 'base64url')
  const pss = (saltLength: number) => (message: Uint8Array) =>
    sign('sha256', message, { key: rsa, padding: 6, saltLength })
  const arweave = text(sha256(modulus))
  const ed = newEd25519Key()
  const edOwner = ed.publicKey
  const edAddress = encodeBase58(edOwner)
  const raw = (message: Uint8Array): Uint8Array => sign(null, message, ed.privateKey)
  const hex = (message: Buffer): Uint8Array => raw(Buffer.from(message.toString('hex')))
  const secret = Buffer.alloc(32, 7)
  const point = secp256k1.getPublicKey(secret, false)
  const evm = (message: Uint8Array): Uint8Array => {
    const signature = secp256k1.sign(ethereumMessage(message), secret, {
      prehash: false,
      format: 'recovered',
    })
    return Buffer.concat([signature.subarray(1), Uint8Array.of(27 + (signature[0] ?? 0))])
  }
  return [
    wallet('Arweave, longest salt', 1, arweave, modulus, pss(478)),
    wallet('Arweave, salt of 32', 1, arweave, modulus, pss(32)),
    wallet('Arweave, of the hash', 1, arweave, modulus, (message) => pss(32)(sha256(message))),
    wallet('Ethereum', 3, privateKeyToAccount(`0x${secret.toString('hex')}`).address, point, evm),
    wallet('Solana, hexadecimal', 4, edAddress, edOwner, hex),
    wallet('Solana, raw', 4, edAddress, edOwner, raw),
    wallet('Ed25519, raw', 2, edAddress, edOwner, raw),
    wallet('Ed25519, hexadecimal', 2, edAddress, edOwner, hex),
  ]
}
