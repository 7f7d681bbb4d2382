import { randomBytes } from 'node:crypto'
import {
  closeSync,
  existsSync,
  fsyncSync,
  mkdirSync,
  openSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import type { ClientSigner } from '../client/signer.js'
import { WrongWords } from './command.js'
import { exitCode } from './exit-code.js'
import { ownKeyFile, signerOfText } from './key-file.js'
import { program } from './program-name.js'
import { type ClientWords, clientCommand, keyOf, show } from './wallet.js'

const help = `${program} key: the key that uploads are signed with

Usage: ${program} key new [--kind ethereum|arweave|solana] [--file FILE]
       ${program} key show
       ${program} key import FILE|- [--file FILE]

  new     makes a key and keeps it where only you can read it: XDG_CONFIG_HOME/sluice/key, ~/.config/sluice/key unless set.
          Commands without --key use it. A key that is there is never overwritten
  show    its address, kind and file; with --key, those of another key. Never the key itself
  import  keeps a key that you have: an Arweave JWK, an Ethereum or a Solana key; - reads it from standard input

  --kind WORD  ethereum (the default; it can pay in USDC, too), arweave or solana
  --file FILE  another place. Not inside a git repository: what lies there is published sooner or later

Make a copy of the file: whoever loses it can never change what the key holds, a name for example.

Examples:
  ${program} key new
  ${program} key import wallet.json
`

const options = { kind: { type: 'string' }, file: { type: 'string' } } as const

type Words = ClientWords & Record<string, unknown>

/** Makes, shows and imports keys. */
export const keyCommand = clientCommand('key', help, options, async ([what, given, ...more], values) => {
  if (more.length > 0) throw new WrongWords('give one FILE')
  if (what === 'show' && given === undefined) return shown(values)
  if (what === 'new' && given === undefined) return keep(values, await madeKey(values.kind ?? 'ethereum'))
  if (what === 'import' && given !== undefined && values.kind === undefined)
    return keep(values, readFileSync(given === '-' ? 0 : given, 'utf8').trim())
  throw new WrongWords('give new, show or import FILE')
})

const kinds: Readonly<Record<number, string>> = { 1: 'arweave', 3: 'ethereum', 4: 'solana' }

function aboutKey({ address, signatureType }: ClientSigner, file: string | undefined) {
  return { address, kind: kinds[signatureType] ?? String(signatureType), ...(file !== undefined && { file }) }
}

async function shown(values: Words): Promise<number> {
  const found = keyOf(values)
  if (found === undefined) {
    process.stderr.write(
      `${program} key: there is no key\n  make one by ${program} key new, or give --key FILE\n`,
    )
    return exitCode.notFound
  }
  const about = aboutKey(await signerOfText(found.text), found.file)
  return show(values, about, [about.address, about.kind, found.file ?? 'of WALLET_KEY in the environment'])
}

async function madeKey(kind: unknown): Promise<string> {
  if (kind === 'ethereum') return randomBytes(32).toString('hex')
  if (kind === 'solana') return JSON.stringify([...randomBytes(32)])
  if (kind !== 'arweave') throw new WrongWords(`no kind ${String(kind)}: ethereum, arweave or solana`)
  const algorithm = { name: 'RSA-PSS', modulusLength: 4096, hash: 'SHA-256' }
  const publicExponent = Uint8Array.of(1, 0, 1)
  const pair = await crypto.subtle.generateKey({ ...algorithm, publicExponent }, true, ['sign', 'verify'])
  // Only the members that wallets of the network have: others name an algorithm, which some of them refuse.
  const { kty, n, e, d, p, q, dp, dq, qi } = await crypto.subtle.exportKey('jwk', pair.privateKey)
  return JSON.stringify({ kty, n, e, d, p, q, dp, dq, qi })
}

/** Writes a key that signs, where there is none yet. */
async function keep(values: Words, text: string): Promise<number> {
  const signer = await signerOfText(text)
  const file = typeof values.file === 'string' ? resolve(values.file) : ownKeyFile()
  if (file === undefined) throw new WrongWords('this user has no home: give --file')
  const repository = typeof values.file === 'string' ? repositoryOf(dirname(file)) : undefined
  if (repository !== undefined)
    throw new WrongWords(`${file} is inside the git repository ${repository}: choose another place`)
  mkdirSync(dirname(file), { recursive: true, mode: 0o700 })
  if (!writeSecret(file, `${text}\n`)) {
    process.stderr.write(
      `${program} key: ${file} is there already\n  move it away, or give --file another place\n`,
    )
    return exitCode.failed
  }
  return show(values, aboutKey(signer, file), [signer.address, `kept in ${file}: make a copy of it`])
}

/** The folder above with a `.git` in it; undefined: there is none. */
function repositoryOf(folder: string): string | undefined {
  if (existsSync(join(folder, '.git'))) return folder
  return dirname(folder) === folder ? undefined : repositoryOf(dirname(folder))
}

/** A file that only its owner may read, whole on the disk when this returns, or not there. False: there is one already. */
function writeSecret(file: string, text: string): boolean {
  let opened: number
  try {
    opened = openSync(file, 'wx', 0o600)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EEXIST') return false
    throw error
  }
  try {
    writeFileSync(opened, text)
    fsyncSync(opened)
    return true
  } catch (error) {
    // Half a key would be taken for one.
    rmSync(file, { force: true })
    throw error
  } finally {
    closeSync(opened)
  }
}
