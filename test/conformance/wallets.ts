import { randomBytes } from 'node:crypto'
import type { ArweaveJwk } from '../../src/client/rsa.js'
import {
  type ClientSigner,
  signerOfArweave,
  signerOfEthereum,
  signerOfSolana,
} from '../../src/client/signer.js'
import { encodeBase58 } from '../../src/format/base58.js'
import { fixtureLines } from '../fixture-file.js'

export const walletKinds = ['arweave', 'ethereum', 'solana'] as const
export type WalletKind = (typeof walletKinds)[number]

/** A new key, for our client and in the form that other clients take. */
export interface NewWallet {
  readonly signer: ClientSigner
  readonly privateKey: unknown
}

/** Kept, because to make one takes seconds of processor time. */
const rsaKeys = fixtureLines<ArweaveJwk>('rsa-4096-keys.ndjson')

/** A key that this process did not use before. */
export async function newWallet(kind: WalletKind): Promise<NewWallet> {
  if (kind === 'arweave') {
    const jwk = rsaKeys.pop()
    if (jwk === undefined) throw new Error('test/fixture/rsa-4096-keys.ndjson has no more keys')
    return { signer: await signerOfArweave(jwk), privateKey: jwk }
  }
  const secret = randomBytes(32)
  if (kind === 'ethereum')
    return { signer: await signerOfEthereum(secret), privateKey: `0x${secret.toString('hex')}` }
  const signer = await signerOfSolana(secret)
  return { signer, privateKey: encodeBase58(Buffer.concat([secret, signer.owner])) }
}
