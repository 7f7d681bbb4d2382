import { readFileSync, statSync } from 'node:fs'
import { homedir } from 'node:os'
import { join, resolve } from 'node:path'
import { parseArgs } from 'node:util'
import { readConfig } from '../../config/read.js'
import { servicePorts } from '../../config/services.js'
import { networks, SluiceClient } from '../client/client.js'
import { ClientError, type ErrorCode } from '../client/errors.js'
import { fileStore } from '../client/node/file-store.js'
import type { ArweaveJwk } from '../client/rsa.js'
import { type ClientSigner, signerOfArweave, signerOfEthereum, signerOfSolana } from '../client/signer.js'
import type { Command } from './command.js'
import { exitCode } from './exit-code.js'
import { oneLine } from './one-line.js'

/** Options that every command of the client has. */
export const clientOptions = {
  help: { type: 'boolean' },
  json: { type: 'boolean' },
  network: { type: 'string' },
  upload: { type: 'string' },
  payment: { type: 'string' },
  gateway: { type: 'string', multiple: true },
  key: { type: 'string' },
  token: { type: 'string' },
} as const

export const clientHelp = `
  --network NAME  local (a program on this machine, the default) or mainnet
  --upload URL, --payment URL, --gateway URL
                  single addresses instead; --gateway several times for several gateways
  --key FILE      the key to sign with: Arweave JWK, Ethereum (hexadecimal) or Solana (base58 or list of numbers);
                  only its owner may be able to read it. Without the option: WALLET_KEY in the environment
  --token WORD    what credits are bought with, where the key leaves a choice (base-usdc, ario, ...)
  --json          one JSON object instead of text

Exit codes: 0 done, 1 failed, 2 wrong arguments, 3 not found, 4 a proof is wrong, 5 a server did not answer.
`

export interface ClientWords {
  readonly network?: string | undefined
  readonly upload?: string | undefined
  readonly payment?: string | undefined
  readonly gateway?: string[] | undefined
  readonly key?: string | undefined
  readonly token?: string | undefined
  readonly json?: boolean | undefined
}

/** Wrong usage of the command line. */
export class WrongWords extends Error {}

const codes: Partial<Record<ErrorCode, number>> = {
  'invalid-input': exitCode.usage,
  'no-signer': exitCode.usage,
  'not-found': exitCode.notFound,
  untrue: exitCode.untrue,
  unavailable: exitCode.unreachable,
}

/** What can be done on the command line, where the library's advice names what programs can do. */
const advices: Partial<Record<ErrorCode, string>> = {
  'no-signer': 'give --key FILE, or WALLET_KEY in the environment',
  'wrong-key': 'give the password by --password-file, or DRIVE_PASSWORD in the environment',
  'insufficient-credits': 'buy credits by sluice top-up, or pay in USDC where the command has --usdc',
  'free-tier-exhausted': 'buy credits by sluice top-up, or pay in USDC where the command has --usdc',
}

/** A failure of the file system as one that is told in a line; anything else as it is. */
function fileErrorOf(error: unknown): unknown {
  const { code, path, dest } = (error ?? {}) as NodeJS.ErrnoException & { readonly dest?: string }
  if (code === undefined || path === undefined) return error
  return new ClientError('rejected', `${dest ?? path}: ${code}`, 'check the path and who may use it')
}

/** Where the reader of a pipe has gone (`sluice get ID | head`) the rest is wanted by nobody. */
function endWithReader(error: NodeJS.ErrnoException): void {
  if (error.code !== 'EPIPE') throw error
  process.exit(exitCode.done)
}

/** A command of the client: prints its help, and failures as a line on standard error with advice. */
export function clientCommand(
  name: string,
  help: string,
  options: NonNullable<Parameters<typeof parseArgs>[0]>['options'],
  work: (positionals: readonly string[], values: ClientWords & Record<string, unknown>) => Promise<number>,
): Command {
  return async (words) => {
    const { values, positionals } = parseArgs({
      args: [...words],
      options: { ...clientOptions, ...options },
      allowPositionals: true,
    })
    if (values.help === true) {
      process.stdout.write(help + clientHelp)
      return exitCode.done
    }
    process.stdout.on('error', endWithReader)
    try {
      return await work(positionals, values as ClientWords & Record<string, unknown>)
    } catch (error) {
      if (error instanceof WrongWords) {
        process.stderr.write(`sluice ${name}: ${error.message}; see sluice ${name} --help\n`)
        return exitCode.usage
      }
      const failure = fileErrorOf(error)
      if (!(failure instanceof ClientError)) throw error
      const { code, message, status, id } = failure
      const advice = advices[code] ?? failure.advice
      if (values.json === true)
        process.stdout.write(`${JSON.stringify({ error: { code, message, advice, status, id } })}\n`)
      else process.stderr.write(`sluice ${name}: ${oneLine(message)}\n  ${advice}\n`)
      return codes[code] ?? exitCode.failed
    }
  }
}

/** The client for these options and the environment. */
export async function clientOf(words: ClientWords): Promise<SluiceClient> {
  const config = readConfig()
  if (Array.isArray(config)) throw new WrongWords(config.join('; '))
  const network = words.network ?? 'local'
  if (network !== 'local' && network !== 'mainnet') throw new WrongWords(`no network ${network}`)
  const base = { ...networks[network] }
  const { walletKey, uploadUrls, paymentUrls } = config.client
  const signer = await signerFrom(words.key, walletKey)
  const { port } = config.server
  const { upload, payment } = servicePorts(config.services, port)
  const at = (own: number): string => `http://127.0.0.1:${own}`
  const local = { uploadUrl: at(upload), paymentUrl: at(payment), gatewayUrls: [at(port)] }
  const known = network === 'local' ? local : base
  return new SluiceClient({
    uploadUrl: words.upload ?? (words.network === undefined ? uploadUrls?.[0] : undefined) ?? known.uploadUrl,
    paymentUrl:
      words.payment ?? (words.network === undefined ? paymentUrls?.[0] : undefined) ?? known.paymentUrl,
    gatewayUrls: words.gateway ?? known.gatewayUrls,
    resume: fileStore(join(homedir(), '.local', 'state', 'sluice', 'uploads')),
    ...(signer && { signer }),
    ...(words.token !== undefined && { token: words.token }),
  })
}

/** The text of a file that holds a secret. */
export function secretOfFile(file: string): string {
  const path = resolve(file)
  const found = statSync(path, { throwIfNoEntry: false })
  if (found === undefined) throw new WrongWords(`there is no ${path}`)
  if ((found.mode & 0o077) !== 0) throw new WrongWords(`others can read ${path}: chmod 600 it`)
  return readFileSync(path, 'utf8')
}

async function signerFrom(
  file: string | undefined,
  given: string | undefined,
): Promise<ClientSigner | undefined> {
  const text = file === undefined ? given : secretOfFile(file)
  return text === undefined ? undefined : signerOfText(text)
}

/** The JWK of the key that the words mean; undefined where it is another kind of key, or none. */
export function jwkOf(words: ClientWords): ArweaveJwk | undefined {
  const config = readConfig()
  const given = Array.isArray(config) ? undefined : config.client.walletKey
  const text = (words.key === undefined ? given : secretOfFile(words.key))?.trim()
  return text?.startsWith('{') ? (parsedKey(text) as ArweaveJwk) : undefined
}

/** The signer of a key as tools write it. Never shows the text: it is a secret. */
async function signerOfText(text: string): Promise<ClientSigner> {
  const key = text.trim()
  if (key.startsWith('{')) return signerOfArweave(parsedKey(key) as ArweaveJwk)
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

/** Prints the result: as JSON where that was asked for, else as lines. */
export function show(values: ClientWords, result: unknown, lines: readonly string[]): number {
  const text = values.json === true ? JSON.stringify(result) : lines.map(oneLine).join('\n')
  process.stdout.write(`${text}\n`)
  return exitCode.done
}

/** `name=value` arguments as tags. */
export function tagsOf(words: unknown): { name: string; value: string }[] {
  return (Array.isArray(words) ? (words as string[]) : []).map((word) => {
    const at = word.indexOf('=')
    if (at < 1) throw new WrongWords(`${word} is no tag: write NAME=VALUE`)
    return { name: word.slice(0, at), value: word.slice(at + 1) }
  })
}

/** Credits as people read them. */
export function creditsText(winc: string): string {
  return `${winc} winc (${(Number(winc) / 1e12).toFixed(6)} credits)`
}
