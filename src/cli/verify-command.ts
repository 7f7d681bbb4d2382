import { createHash } from 'node:crypto'
import { parseArgs } from 'node:util'
import { readClientConfig, trustedNodes } from '../../config/read.js'
import { type SignedAnswer, verifyAnswer } from '../attest/verify-answer.js'
import { type Vocabulary, vocabularies } from '../attest/vocabulary.js'
import { networks } from '../client/client.js'
import { Gateways } from '../client/fetch/gateways.js'
import { encodeBase64url } from '../format/base64url.js'
import { type Id, parseId } from '../format/id.js'
import { isRefusal, type Refusal } from '../format/refusal.js'
import { isUnsureAbsence } from '../format/unsure-absence.js'
import { contentFinding, type Judge, judgeOfItem, judgeOfTransaction } from './content-judge.js'
import { exitCode } from './exit-code.js'
import { oneLine } from './one-line.js'
import { paint } from './paint.js'
import { whyUnreachable } from './unreachable.js'

const help = `sluice verify: fetches content by id and checks what it is told

Usage: sluice verify ID [--gateway URL] [--node URL]

Checks the digest of the bytes against the headers, the gateway's signature over its words (RFC 9421), and who signed the
content: the data item's own signature, or the transaction's and its data root. Nothing that the gateway says is trusted; for
transactions the header comes from a base-layer node. Lines with - state what is not checked, as the place of an item.

  --gateway URL  where to fetch (default: CLIENT_GATEWAY_URL, or http://127.0.0.1:3000)
  --node URL     base-layer node (default: TRUSTED_NODE_URL, or http://127.0.0.1:1984)

Ends with code 0 when the content is proven and everything holds, 4 when something does not or nobody can prove the content (a
transaction of format 1, an id that neither the gateway's root nor the node accounts for), 3 when the gateway does not have the
id, 5 when the gateway or the node does not answer, 2 on wrong arguments.

Example:
  sluice verify 0FJrLrxrFkVTBwRrzCCh88Gm2tG1xPxg8s_IuRZDVzw --gateway https://arweave.net --node https://arweave.net
`

/** The embedded base-layer node, where it listens by default. */
const devnetNode = 'http://127.0.0.1:1984'

/** Characters of an error page that are shown. */
const wordsMax = 200

/** The arguments of the command line. */
interface Question {
  readonly id: Id
  readonly gateway: string
  readonly node: string
}

/** Verifies one id and prints a line per finding. */
export async function verify(words: readonly string[]): Promise<number> {
  const question = readWords(words)
  if (question === undefined) {
    process.stdout.write(help)
    return 0
  }
  if ('wrong' in question) {
    process.stderr.write(`sluice verify: ${question.wrong}\n`)
    return exitCode.usage
  }
  try {
    return await judged(question)
  } catch (error) {
    const places = `${question.gateway} or ${question.node}`
    const why = whyUnreachable(error)
    process.stderr.write(
      `sluice verify: ${places} cannot be reached: ${why}; --gateway and --node name others\n`,
    )
    return exitCode.unreachable
  }
}

function readWords(words: readonly string[]): Question | { wrong: string } | undefined {
  const options = {
    help: { type: 'boolean' },
    gateway: { type: 'string' },
    node: { type: 'string' },
  } as const
  const { values, positionals } = parseArgs({ args: [...words], options, allowPositionals: true })
  if (values.help === true) return undefined
  const [text, ...more] = positionals
  const id = parseId(text ?? '')
  if (text === undefined || more.length > 0) return { wrong: 'give one ID; see sluice verify --help' }
  if (id === undefined) return { wrong: `${text} is no id: an id is 43 characters of base64url` }
  const config = readClientConfig()
  if (Array.isArray(config)) return { wrong: config.join('; ') }
  const given = config.gatewayUrls ?? networks.local.gatewayUrls
  return {
    id,
    gateway: (values.gateway ?? given[0] ?? '').replace(/\/$/, ''),
    node: (values.node ?? trustedNodes()?.[0] ?? devnetNode).replace(/\/$/, ''),
  }
}

async function judged({ id, gateway, node }: Question): Promise<number> {
  const path = `/raw/${id}`
  // Each waits with patience for what is silent or slow, and reads no more than it needs.
  const [gateways, nodes] = [gateway, node].map((url) => new Gateways({ gatewayUrls: [url] })) as [
    Gateways,
    Gateways,
  ]
  const response = await gateways.get(
    `${gateway}${path}`,
    { 'accept-encoding': 'identity' },
    undefined,
    'all',
  )
  if (response.status !== 200 || response.body === null) {
    process.stderr.write(
      `sluice verify: ${gateway} answered ${response.status}: ${oneLine(await beginningOf(gateways, response))}\n`,
    )
    const isAbsent = response.status === 404 && !isUnsureAbsence(404, response.headers.get('retry-after'))
    return isAbsent ? exitCode.notFound : exitCode.failed
  }
  const header = (name: string): string | undefined => response.headers.get(name) ?? undefined
  const answer: SignedAnswer = { status: response.status, header, method: 'GET', path }
  const report = new Report()
  report.say('gateway signature', signedBy(answer))

  const place = placeOf(header)
  const judge =
    place === undefined ? await judgeOfTransaction(nodes, id) : await judgeOfItem(gateways, id, place)
  if (isRefusal(judge)) report.say(contentFinding, judge)
  const { digest, sizeBytes } = await read(
    gateways.pieces(response, Number.POSITIVE_INFINITY),
    isRefusal(judge) ? undefined : judge,
  )
  report.say('size', `${sizeBytes} bytes`)
  report.say('digest', digestAgrees(header, digest))
  if (!isRefusal(judge)) for (const [what, found] of judge.findings()) report.say(what, found)
  return report.failed ? exitCode.untrue : exitCode.done
}

/** One line per finding; colours on a terminal. What is not known is no failure, unless it is the content. */
class Report {
  failed = false

  say(what: string, found: string | Refusal): void {
    const wrong = isRefusal(found) && (found.refused !== 'unknown' || what === contentFinding)
    const mark = wrong
      ? paint('red', 'NO  ')
      : isRefusal(found)
        ? paint('dim', '-   ')
        : paint('green', 'yes ')
    if (wrong) this.failed = true
    process.stdout.write(`${mark}${what.padEnd(23)}${oneLine(isRefusal(found) ? found.message : found)}\n`)
  }
}

function signedBy(answer: SignedAnswer): string | Refusal {
  const vouched = verifyAnswer(answer)
  return isRefusal(vouched) ? vouched : `by ${vouched.keyId}, over ${vouched.components.length} components`
}

/** As much of the words of an answer as is shown. */
async function beginningOf(gateways: Gateways, response: Response): Promise<string> {
  let text = ''
  for await (const piece of gateways.pieces(response, Number.POSITIVE_INFINITY)) {
    text += Buffer.from(piece).toString()
    if (text.length >= wordsMax) break
  }
  return text.slice(0, wordsMax)
}

async function read(
  body: AsyncIterable<Uint8Array>,
  judge: Judge | undefined,
): Promise<{ digest: Uint8Array; sizeBytes: number }> {
  const hash = createHash('sha256')
  let sizeBytes = 0
  for await (const piece of body) {
    hash.update(piece)
    judge?.update(piece)
    sizeBytes += piece.length
  }
  return { digest: hash.digest(), sizeBytes }
}

type Header = (name: string) => string | undefined

/** The header, in the vocabulary that the gateway uses. */
function spelled(
  header: Header,
  part: keyof Vocabulary & ('gateway' | 'chain'),
  suffix: string,
): string | undefined {
  return Object.values(vocabularies)
    .map((words) => header(`${words[part]}${suffix}`.toLowerCase()))
    .find((value) => value !== undefined)
}

/** Where the item lies as the gateway says; undefined where it says that the id is no item. */
function placeOf(header: Header): { root: string; offset: number; headerSizeMax: number } | undefined {
  const root = spelled(header, 'gateway', 'Root-Transaction-Id')
  const offset = Number(spelled(header, 'gateway', 'Root-Data-Item-Offset'))
  const payload = Number(spelled(header, 'gateway', 'Root-Data-Offset'))
  if (root === undefined || !Number.isSafeInteger(offset) || !(payload > offset)) return undefined
  return { root, offset, headerSizeMax: payload - offset }
}

function digestAgrees(header: Header, digest: Uint8Array): string | Refusal {
  const standard = header('content-digest')
  const own = spelled(header, 'gateway', 'Digest')
  const text = encodeBase64url(digest)
  const wrong = [
    standard === undefined || standard.includes(`sha-256=:${Buffer.from(digest).toString('base64')}:`),
    own === undefined || own === text,
  ].includes(false)
  const message = `the bytes have SHA-256 ${text}, the gateway says otherwise`
  if (wrong) return { refused: 'forged', fault: 'upstream', message }
  const given = standard !== undefined || own !== undefined
  return given
    ? text
    : { refused: 'unknown', fault: 'upstream', message: `${text}; the gateway gave none to compare` }
}
