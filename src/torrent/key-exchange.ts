import { createDiffieHellman, type DiffieHellman, randomBytes } from 'node:crypto'

/** Diffie-Hellman as message stream encryption has it: a prime of 768 bits, 2 as generator. */

/** Bytes of each half, and of the secret. */
export const dhKeyBytes = 96

const prime = Buffer.from(
  'ffffffffffffffffc90fdaa22168c234c4c6628b80dc1cd129024e088a67cc74020bbea63b139b22' +
    '514a08798e3404ddef9519b3cd3a431b302b0a6df25f14374fe1356d6d51c245e485b576625e7ec6f44c42e9a63a3621' +
    '0000000000090563',
  'hex',
)
/** 160 bits, as in other programs. A longer exponent takes more time, and RC4 remains the weaker part. */
const exponentBytes = 20

let group: DiffieHellman | undefined

/** A new key pair: our public key, and the secret shared with the owner of another one (undefined where that is invalid). */
export function keyHalf(): { readonly own: Buffer; secret(others: Buffer): Buffer | undefined } {
  // Made once: OpenSSL takes 25 ms to check that the number is a prime.
  group ??= createDiffieHellman(prime, 2)
  const dh = group
  const exponent = randomBytes(exponentBytes)
  dh.setPrivateKey(exponent)
  const own = Buffer.alloc(dhKeyBytes)
  const made = dh.generateKeys()
  made.copy(own, dhKeyBytes - made.length)
  return {
    own,
    secret(others) {
      dh.setPrivateKey(exponent)
      try {
        return dh.computeSecret(others)
      } catch (error) {
        // 0, 1 and p - 1 are no valid public keys: everybody would know the secret that they give.
        if (error instanceof Error && 'code' in error && error.code === 'ERR_CRYPTO_INVALID_KEYLEN') {
          return undefined
        }
        throw error
      }
    },
  }
}
