import { parseArgs } from 'node:util'
import { readClientConfig } from '../../config/read.js'
import { networks, SluiceClient } from '../client/client.js'
import { ClientError, type ErrorCode } from '../client/errors.js'
import { type Command, WrongWords } from './command.js'
import { exitCode } from './exit-code.js'
import { type FoundKey, foundKey, signerOfText } from './key-file.js'
import { oneLine } from './one-line.js'
import { program } from './program-name.js'
import { uploadMemory } from './upload-memory.js'

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
                  only its owner may be able to read it. Without the option: WALLET_KEY in the environment, or the key
                  that ${program} key keeps
  --token WORD    what credits are bought with, where the key leaves a choice (base-usdc, ario, ...)
  --json          one JSON object instead of text

Exit codes: 0 done, 1 failed, 2 wrong arguments, 3 not found, 4 a proof is wrong, 5 a server did not answer,
6 uploaded, but without its name.
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

const codes: Partial<Record<ErrorCode, number>> = {
  'invalid-input': exitCode.usage,
  'no-signer': exitCode.usage,
  'not-found': exitCode.notFound,
  untrue: exitCode.untrue,
  unavailable: exitCode.unreachable,
}

/** What can be done on the command line, where the library's advice names what programs can do. */
const advices: Partial<Record<ErrorCode, string>> = {
  'no-signer': `make a key by ${program} key new, or give --key FILE, or WALLET_KEY in the environment`,
  'wrong-key': 'give the password by --password-file, or DRIVE_PASSWORD in the environment',
}

/** What to do about a failure: of credits a command knows more than a server, which states its status alone. */
function adviceOf({ code, status, advice, message }: ClientError): string {
  const isUnpaid = status === 402 && (code === 'insufficient-credits' || code === 'free-tier-exhausted')
  // Who shares more than there is is answered 400, as clients of the network expect it.
  if (isUnpaid || (status === 400 && message.includes('Insufficient balance')))
    return `buy credits by ${program} top-up, or pay in USDC where the command has --usdc`
  return advices[code] ?? advice
}

/** A failure of the file system as one that is printed as a line; anything else as it is. */
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
        process.stderr.write(`${program} ${name}: ${error.message}; see ${program} ${name} --help\n`)
        return exitCode.usage
      }
      const failure = fileErrorOf(error)
      if (!(failure instanceof ClientError)) throw error
      const { code, message, status, id } = failure
      const advice = adviceOf(failure)
      if (values.json === true)
        process.stdout.write(`${JSON.stringify({ error: { code, message, advice, status, id } })}\n`)
      else process.stderr.write(`${program} ${name}: ${oneLine(message)}\n  ${advice}\n`)
      return codes[code] ?? exitCode.failed
    }
  }
}

/** The settings of the client. Throws where one is malformed. */
export function clientSettings(): Exclude<ReturnType<typeof readClientConfig>, string[]> {
  const config = readClientConfig()
  if (Array.isArray(config)) throw new WrongWords(config.join('; '))
  return config
}

/** The key that these options and the environment mean; undefined: none. */
export function keyOf(words: ClientWords): FoundKey | undefined {
  return foundKey(words.key, clientSettings().walletKey)
}

/** The client for these options and the environment. */
export async function clientOf(words: ClientWords): Promise<SluiceClient> {
  const { uploadUrls, paymentUrls, gatewayUrls } = clientSettings()
  const network = words.network ?? 'local'
  if (network !== 'local' && network !== 'mainnet') throw new WrongWords(`no network ${network}`)
  const key = keyOf(words)
  const known = networks[network]
  const isGiven = words.network !== undefined
  return new SluiceClient({
    uploadUrl: words.upload ?? (isGiven ? undefined : uploadUrls?.[0]) ?? known.uploadUrl,
    paymentUrl: words.payment ?? (isGiven ? undefined : paymentUrls?.[0]) ?? known.paymentUrl,
    gatewayUrls: words.gateway ?? (isGiven ? undefined : gatewayUrls) ?? known.gatewayUrls,
    resume: uploadMemory(),
    ...(key && { signer: await signerOfText(key.text) }),
    ...(words.token !== undefined && { token: words.token }),
  })
}

/** Prints the result: as JSON where that was requested, else as lines. */
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
