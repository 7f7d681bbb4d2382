import { readFileSync, statSync } from 'node:fs'
import { join, resolve } from 'node:path'
import type { ArweaveJwk } from '../client/rsa.js'
import { type ClientSigner, signerOfArweave, signerOfEthereum, signerOfSolana } from '../client/signer.js'
import { WrongWords } from './command.js'
import { userFolder } from './user-folders.js'

/** Where `sluice key` keeps the key of this user: outside of any folder that is uploaded. Undefined: the user has no home. */
export function ownKeyFile(): string | undefined {
  const folder = userFolder('config')
  return folder === undefined ? undefined : join(folder, 'key')
}

/** A key as it was found. */
export interface FoundKey {
  readonly text: string
  /** Absent: it was in the environment. */
  readonly file?: string
}

/** The text of a file that holds a secret. */
export function secretOfFile(file: string): string {
  const path = resolve(file)
  const found = statSync(path, { throwIfNoEntry: false })
  if (found === undefined) throw new WrongWords(`there is no ${path}`)
  if ((found.mode & 0o077) !== 0) throw new WrongWords(`others can read ${path}: chmod 600 it`)
  return readFileSync(path, 'utf8')
}

/** The key that a command signs with: of `--key`, of the environment, or the user's own. Undefined: there is none. */
export function foundKey(file: string | undefined, given: string | undefined): FoundKey | undefined {
  if (file !== undefined) return { text: secretOfFile(file), file: resolve(file) }
  if (given !== undefined) return { text: given }
  const own = ownKeyFile()
  // Where it may not even be looked at, it is not there for this user.
  if (own === undefined || !isThere(own)) return undefined
  return { text: secretOfFile(own), file: own }
}

function isThere(path: string): boolean {
  try {
    return statSync(path, { throwIfNoEntry: false }) !== undefined
  } catch (error) {
    if ((error as NodeJS.ErrnoException).syscall === 'stat') return false
    throw error
  }
}

/** The JWK of a key; undefined where it is another kind of key. */
export function jwkOfText(text: string): ArweaveJwk | undefined {
  const key = text.trim()
  return key.startsWith('{') ? (parsedKey(key) as ArweaveJwk) : undefined
}

/** The signer of a key as tools write it. Never shows the text: it is a secret. */
export async function signerOfText(text: string): Promise<ClientSigner> {
  const key = text.trim()
  const jwk = jwkOfText(key)
  if (jwk !== undefined) return signerOfArweave(jwk)
  if (key.startsWith('[')) return signerOfSolana(Uint8Array.from(parsedKey(key) as number[]))
  if (/^(0x)?[0-9a-fA-F]{64}$/.test(key)) return signerOfEthereum(key)
  if (/^[1-9A-HJ-NP-Za-km-z]{32,88}$/.test(key)) return signerOfSolana(key)
  throw new WrongWords(
    'the key is no Arweave JWK, no 64 hexadecimal digits (Ethereum) and no base58 (Solana)',
  )
}

function parsedKey(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch (error) {
    // The parser's own message quotes the text.
    if (error instanceof SyntaxError) throw new WrongWords('the key is not JSON')
    throw error
  }
}
