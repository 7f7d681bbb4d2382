/** Whose uploads they are: a key of this browser, a key from a file, or a wallet. */
import {
  signerOfArweave,
  signerOfArweaveWallet,
  signerOfEd25519,
  signerOfEthereumWallet,
  signerOfSolanaWallet,
} from 'sluice/client'

const place = 'sluice-upload-key'

function toHex(bytes) {
  return [...bytes].map((byte) => byte.toString(16).padStart(2, '0')).join('')
}

function fromHex(text) {
  return Uint8Array.from(text.match(/../g) ?? [], (pair) => Number.parseInt(pair, 16))
}

/** A key as it is kept here: the text of its file, as `sluice put --key` takes it. */
export function keptKey() {
  return localStorage.getItem(place) ?? undefined
}

export function keepKey(text) {
  localStorage.setItem(place, text)
}

export function forgetKey() {
  localStorage.removeItem(place)
}

export function newKey() {
  return toHex(crypto.getRandomValues(new Uint8Array(32)))
}

/** The signer of a key's text: 64 hexadecimal digits, or the JSON Web Key of an Arweave wallet. Throws where it is neither. */
export async function signerOfText(text) {
  const trimmed = text.trim()
  if (/^[0-9a-f]{64}$/i.test(trimmed)) return signerOfEd25519(fromHex(trimmed))
  const jwk = trimmed.startsWith('{') ? JSON.parse(trimmed) : undefined
  if (jwk?.kty === 'RSA' && typeof jwk.d === 'string') return signerOfArweave(jwk)
  throw new Error('This is no key: a file of 64 hexadecimal digits or of an Arweave wallet is wanted.')
}

/** Wallets that this browser has, by the names that people know. */
export function wallets() {
  const { arweaveWallet, ethereum, solana } = globalThis
  return [
    ...(arweaveWallet === undefined
      ? []
      : [
          {
            name: 'Arweave wallet',
            open: async () => {
              await arweaveWallet.connect([
                'ACCESS_ADDRESS',
                'ACCESS_PUBLIC_KEY',
                'SIGN_TRANSACTION',
                'SIGNATURE',
              ])
              return signerOfArweaveWallet(arweaveWallet)
            },
          },
        ]),
    ...(ethereum === undefined
      ? []
      : [{ name: 'Ethereum wallet', open: () => signerOfEthereumWallet(ethereum) }]),
    ...(solana === undefined
      ? []
      : [
          {
            name: 'Solana wallet',
            open: async () => {
              await solana.connect()
              return signerOfSolanaWallet(solana)
            },
          },
        ]),
  ]
}
