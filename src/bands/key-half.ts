import { createDiffieHellman, type DiffieHellman, randomBytes } from 'node:crypto'

/** Diffie-Hellman as message stream encryption has it: a prime of 768 bits, 2 as generator. */

/** Of each half, and of the secret. */
export const keyBytes = 96

const prime = Buffer.from(
  'ffffffffffffffffc90fdaa22168c234c4c6628b80dc1cd129024e088a67cc74020bbea63b139b22' +
    '514a08798e3404ddef9519b3cd3a431b302b0a6df25f14374fe1356d6d51c245e485b576625e7ec6f44c42e9a63a3621' +
    '0000000000090563',
  'hex',
)
/** As others take it: 160 bits. A longer one takes longer and hides no better what RC4 hides. */
const exponentBytes = 20

let group: DiffieHellman | undefined

/** Our half of a secret, new each time; and what makes the secret of the other's half, undefined where that is none. */
export function keyHalf(): { readonly own: Buffer; secret(others: Buffer): Buffer | undefined } {
  // OpenSSL looks for 25 ms whether a prime is one: once.
  group ??= createDiffieHellman(prime, 2)
  const dh = group
  const exponent = randomBytes(exponentBytes)
  dh.setPrivateKey(exponent)
  const own = Buffer.alloc(keyBytes)
  const made = dh.generateKeys()
  made.copy(own, keyBytes - made.length)
  return {
    own,
    secret(others) {
      dh.setPrivateKey(exponent)
      try {
        return dh.computeSecret(others)
      } catch (error) {
        // 0, 1 and the like: no half of anything.
        if (error instanceof Error && 'code' in error && error.code === 'ERR_CRYPTO_INVALID_KEYLEN') {
          return undefined
        }
        throw error
      }
    },
  }
}
