import { decodeBase58, encodeBase58 } from '../format/base58.js'
import { decodeBase64url, encodeBase64url } from '../format/base64url.js'
import { decodeHex, encodeHex } from '../format/hex.js'
import type { TokenDomain, TransferAuthorization } from '../proof/transfer-authorization.js'
import { solanaMessage } from '../proof/wrapped-message.js'
import { utf8 } from './bytes.js'
import { ed25519Pair } from './curve25519.js'
import { ClientError } from './errors.js'
import { hash256 } from './hash.js'
import { type ArweaveJwk, rsaSigningKey } from './rsa.js'
import type { TextTag } from './tags.js'

/** A key that signs data items and requests. Made by the functions below, or by the caller for hardware and services of keys. */
export interface ClientSigner {
  /** ANS-104 number. */
  readonly signatureType: number
  /** Public key as it stands in items. */
  readonly owner: Uint8Array
  /** The address that credits are kept under: base64url, EIP-55 or base58, as the key's own network spells it. */
  readonly address: string
  /** Which word names the key's network in the services' paths. */
  readonly token: string
  /** Signs a message the way the type wraps it (EIP-191, hex text, or as it is). */
  sign(message: Uint8Array): Promise<Uint8Array>
  /** The same, and the same signature each time: present where `sign` is salted. An item signed twice is then one item. */
  readonly signRepeatable?: (message: Uint8Array) => Promise<Uint8Array>
  /** Signs a transfer of USDC: only EVM keys can. */
  readonly signTransfer?: (domain: TokenDomain, transfer: TransferAuthorization) => Promise<Uint8Array>
  /** Present where the wallet signs only whole items: resolves with an item's bytes. */
  readonly signWhole?: (parts: WholeItem) => Promise<Uint8Array>
}

/** What a wallet is given that signs only whole items. */
export interface WholeItem {
  readonly data: Uint8Array
  readonly tags: readonly TextTag[]
  readonly target?: string
  readonly anchor?: string
}

const loadEvm = () => import('./evm.js')

/** The address that queries and receipts use for every key: base64url SHA-256 of the owner. */
export function addressOfOwner(owner: Uint8Array): string {
  return encodeBase64url(hash256(owner))
}

/** Signs with the JWK of an Arweave wallet (type 1). */
export async function signerOfArweave(jwk: ArweaveJwk): Promise<ClientSigner> {
  const { owner, sign } = await rsaSigningKey(jwk)
  return {
    signatureType: 1,
    owner,
    address: addressOfOwner(owner),
    token: 'arweave',
    sign: (message) => sign(message),
    signRepeatable: (message) => sign(message, 0),
  }
}

/** Signs with a 32-byte Ed25519 seed (type 2). */
export async function signerOfEd25519(seed: Uint8Array): Promise<ClientSigner> {
  const { owner, sign } = await ed25519Pair(seed)
  return { signatureType: 2, owner, address: encodeBase58(owner), token: 'solana', sign }
}

/** Signs as Solana wallets do (type 4). `secret`: 64 or 32 bytes, or base58 of them. */
export async function signerOfSolana(secret: Uint8Array | string): Promise<ClientSigner> {
  const bytes = typeof secret === 'string' ? decodeBase58(secret) : secret
  if (bytes?.length !== 64 && bytes?.length !== 32)
    throw new ClientError('invalid-input', 'no Solana secret', 'give 32 or 64 bytes, or base58 of them')
  const { owner, sign } = await ed25519Pair(bytes.subarray(0, 32))
  const signHex = (message: Uint8Array): Promise<Uint8Array> => sign(solanaMessage(message))
  return { signatureType: 4, owner, address: encodeBase58(owner), token: 'solana', sign: signHex }
}

/** Signs with a secp256k1 secret (type 3), and pays in USDC. `secret`: 32 bytes or their hexadecimal digits. */
export async function signerOfEthereum(
  secret: Uint8Array | string,
  token: 'ethereum' | 'base-eth' | 'base-usdc' | 'matic' | 'pol' = 'ethereum',
): Promise<ClientSigner> {
  const bytes = typeof secret === 'string' ? decodeHex(secret) : secret
  if (bytes?.length !== 32)
    throw new ClientError('invalid-input', 'no secp256k1 secret', 'give 32 bytes or 64 hexadecimal digits')
  const { digestSigner, evmAddress, evmPublicKey, ethereumMessage, transferDigest } = await loadEvm()
  const owner = evmPublicKey(bytes)
  const sign = digestSigner(bytes)
  return {
    signatureType: 3,
    owner,
    address: evmAddress(owner),
    token,
    sign: async (message) => sign(ethereumMessage(message)),
    signTransfer: async (domain, transfer) => sign(transferDigest(domain, transfer)),
  }
}

/** An injected Ethereum wallet (EIP-1193). */
export interface EthereumWallet {
  request(call: { method: string; params?: readonly unknown[] }): Promise<unknown>
}

/** Signs by an injected Ethereum wallet. Requests one signature at once: only a signature reveals the public key. */
export async function signerOfEthereumWallet(
  wallet: EthereumWallet,
  token: 'ethereum' | 'base-eth' | 'base-usdc' = 'ethereum',
): Promise<ClientSigner> {
  const { evmAddress, ethereumMessage, recoverKey, transferFields } = await loadEvm()
  const [address] = (await wallet.request({ method: 'eth_requestAccounts' })) as string[]
  const personal = async (message: Uint8Array): Promise<Uint8Array> =>
    signatureOf(
      await wallet.request({ method: 'personal_sign', params: [`0x${encodeHex(message)}`, address] }),
    )
  const hello = utf8('Sign this message to show which key is yours. It costs nothing.')
  const owner = recoverKey(ethereumMessage(hello), await personal(hello))
  if (evmAddress(owner).toLowerCase() !== String(address).toLowerCase())
    throw new ClientError('wrong-key', 'the wallet signed by another key', 'choose one account in the wallet')
  return {
    signatureType: 3,
    owner,
    address: evmAddress(owner),
    token,
    sign: personal,
    async signTransfer(domain, message) {
      const primaryType = 'TransferWithAuthorization'
      const fields = [
        { name: 'name', type: 'string' },
        { name: 'version', type: 'string' },
        { name: 'chainId', type: 'uint256' },
        { name: 'verifyingContract', type: 'address' },
      ]
      const typed = {
        types: { EIP712Domain: fields, [primaryType]: transferFields },
        domain,
        primaryType,
        message,
      }
      const params = [address, JSON.stringify(typed)]
      return signatureOf(await wallet.request({ method: 'eth_signTypedData_v4', params }))
    },
  }
}

/** Some wallets count the recovery byte from 0: services take an item with 27 or 28 only, because each byte is another id. */
function signatureOf(answer: unknown): Uint8Array {
  const bytes = typeof answer === 'string' ? decodeHex(answer) : undefined
  if (bytes === undefined)
    throw new ClientError('rejected', 'the wallet gave no signature', 'agree in the wallet')
  const v = bytes[64] ?? 27
  if (v < 2) bytes[64] = v + 27
  return bytes
}

/** An injected Solana wallet. */
export interface SolanaWallet {
  readonly publicKey: { toBytes(): Uint8Array }
  signMessage(message: Uint8Array): Promise<Uint8Array | { readonly signature: Uint8Array }>
}

/** Signs by an injected Solana wallet (type 4). */
export async function signerOfSolanaWallet(wallet: SolanaWallet): Promise<ClientSigner> {
  const owner = wallet.publicKey.toBytes()
  return {
    signatureType: 4,
    owner,
    address: encodeBase58(owner),
    token: 'solana',
    async sign(message) {
      const signed = await wallet.signMessage(solanaMessage(message))
      return signed instanceof Uint8Array ? signed : signed.signature
    },
  }
}

/** An injected Arweave wallet. */
export interface ArweaveWallet {
  getActivePublicKey(): Promise<string>
  signDataItem(item: WholeItem): Promise<ArrayBuffer | Uint8Array>
  signMessage(message: Uint8Array): Promise<Uint8Array>
}

/** Signs by an injected Arweave wallet (type 1), which signs whole items only: they have to fit into memory. */
export async function signerOfArweaveWallet(wallet: ArweaveWallet): Promise<ClientSigner> {
  const owner = decodeBase64url(await wallet.getActivePublicKey()) ?? new Uint8Array(0)
  return {
    signatureType: 1,
    owner,
    address: addressOfOwner(owner),
    token: 'arweave',
    // The wallet hashes the message before it signs; services take that form for requests.
    sign: (message) => wallet.signMessage(message),
    signWhole: async (item) => new Uint8Array(await wallet.signDataItem(item)),
  }
}
