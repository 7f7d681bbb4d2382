import { once } from 'node:events'
import { Agent, createServer, request } from 'node:http'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { pause, systemClock } from '../../src/actor/clock.js'
import { Dice } from '../kit/dice.js'
import { diskMb, workFolder } from '../kit/folders.js'
import { say } from '../kit/say.js'
import { residentMb } from '../kit/usage.js'
import { startGateway } from '../rivals/gateway.js'

const help = `churn: memory, disk and hits of a gateway under a steady stream of ids, most of which nobody requested before

  --minutes N       (30)
  --rate N          ids in a second (100)
  --known PERCENT   of them that a source has (50)
  --size BYTES      of what it has (4096)
  --again PERCENT   of all requests that ask for something of before, by its popularity (0)
  --held COUNT      objects that the disk may hold: hits are shown beside those of LRU with as many (no limit)
  --set NAME=VALUE  a setting of the gateway; may be repeated
`

interface ChurnOptions {
  readonly minutes: number
  /** Requests in a second, each for an id that nobody requested before. */
  readonly perSecond: number
  /** Percentage of ids that the source knows; the others are unknown everywhere. */
  readonly knownPercent: number
  /** Size of a known object. */
  readonly sizeBytes: number
  /** Percentage of requests that ask for a known object of before: popular ones far more often. */
  readonly againPercent: number
  /** Known objects that the disk may hold; 0: no limit. */
  readonly held: number
  /** More settings of the gateway. */
  readonly settings: Readonly<Record<string, string>>
}

/** State after some time. */
interface ChurnSample {
  readonly minute: number
  /** Ids asked for so far. */
  readonly ids: number
  /** Memory of the gateway that is not a file's pages, and all of its resident memory, MiB. */
  readonly ownMb: number
  readonly allMb: number
  readonly diskMb: number
  /** Shares (0 to 1) of the last minute's requests for something of before: answered from the cache, and by an LRU of as many. */
  readonly hits: number
  readonly lruHits: number
  /** Requests without an answer: the connection was closed. */
  readonly unanswered: number
}

/** Hits among requests for known objects, beside those that an LRU of `held` objects would have. */
class Hits {
  readonly #kept = new Map<number, true>()
  #requested = 0
  #hits = 0
  #lruHits = 0

  constructor(private readonly held: number) {}

  /** Object number `n` is requested; `isAgain`: it was requested before. */
  ask(n: number, isAgain: boolean): void {
    const had = this.#kept.delete(n)
    this.#kept.set(n, true)
    const [oldest] = this.#kept.keys()
    if (this.held > 0 && this.#kept.size > this.held && oldest !== undefined) this.#kept.delete(oldest)
    if (!isAgain) return
    this.#requested += 1
    if (had) this.#lruHits += 1
  }

  hit(): void {
    this.#hits += 1
  }

  /** Shares since the last call. */
  take(): { readonly hits: number; readonly lruHits: number } {
    const shares = { hits: this.#hits / this.#requested, lruHits: this.#lruHits / this.#requested }
    this.#requested = 0
    this.#hits = 0
    this.#lruHits = 0
    return shares
  }
}

const agent = new Agent({ keepAlive: true, maxSockets: 64 })
/** Objects of which some are asked for again and again. */
const popularMax = 20_000
/** What a record takes on disk beside its payload. */
const recordBytes = 256
/** Where this many wait the gateway does not keep up, and the rate drops. */
const inFlightMax = 64

function idOf(n: number, known: boolean): string {
  const bytes = Buffer.alloc(32, known ? 1 : 2)
  bytes.writeUInt32LE(n)
  return bytes.toString('base64url')
}

function isKnown(id: string): boolean {
  return Buffer.from(id, 'base64url')[31] === 1
}

interface Question {
  readonly path: string
  readonly headers: Readonly<Record<string, string>>
  readonly isRight: (status: number) => boolean
}

/** Kinds of requests for unknown ids, in turns. */
const shapes: readonly ((id: string, n: number) => string)[] = [
  (id) => `/raw/${id}`,
  (id) => `/${id}`,
  (id, n) => `/${id}/page/${n}`,
  (id) => `/tx/${id}`,
  (_, n) => `/chunk/${1_000_000 + n * 262_144}`,
  (id) => `/gateway/offsets/${id}`,
  (_, n) => `/?name=${n}`,
]

/** The `n`th question: no two are for the same thing, or from the same client. */
function questionOf(n: number, known: boolean): Question {
  const client = `10.${(n >> 16) & 255}.${(n >> 8) & 255}.${n & 255}`
  const headers = { 'x-forwarded-for': client, 'user-agent': `churn/${n % 50_000}` }
  const id = idOf(n, known)
  if (known) return { path: `/raw/${id}`, headers, isRight: (status) => status === 200 }
  const path = shapes[n % shapes.length]?.(id, n) ?? '/'
  const host = path.startsWith('/?') ? { host: `name${n}.localhost` } : {}
  return { path, headers: { ...headers, ...host }, isRight: (status) => status >= 400 && status < 500 }
}

interface Answered {
  readonly status: number
  readonly isHit: boolean
}

/** After the last byte; undefined: there was no answer. */
function ask(port: number, { path, headers }: Question): Promise<Answered | undefined> {
  return new Promise((resolve) => {
    const requested = request({ agent, port, host: '127.0.0.1', path, headers }, (answer) => {
      answer.resume()
      answer.on('error', () => resolve(undefined))
      const isHit = answer.headers['x-cache'] === 'HIT'
      answer.on('end', () => resolve({ status: answer.statusCode ?? 0, isHit }))
    })
    requested.on('error', () => resolve(undefined))
    requested.end()
  })
}

/**
 * Sends a steady stream of new ids, names, chunks and clients to a gateway of its own; `tell` gets its memory each minute.
 * Rejects where an answer is wrong.
 */
async function churn(options: ChurnOptions, tell: (sample: ChurnSample) => void): Promise<void> {
  const piece = Buffer.alloc(options.sizeBytes, 1)
  const source = createServer((requested, response) => {
    const id = (requested.url ?? '').slice('/raw/'.length)
    if (!isKnown(id)) {
      response.writeHead(404).end()
      return
    }
    piece.write(id)
    const head = { 'content-length': piece.length, 'content-type': 'application/octet-stream' }
    response.writeHead(200, head).end(Buffer.from(piece))
  }).listen(0, '127.0.0.1')
  await once(source, 'listening')
  const { port } = source.address() as { port: number }
  const gateway = await startGateway({
    name: 'churn',
    threads: 2,
    settings: {
      TRUSTED_GATEWAYS_URLS: JSON.stringify({ [`http://127.0.0.1:${port}`]: 1 }),
      DEVNET_BLOCK_MS: '0',
      ...(options.held > 0
        ? { CONTIGUOUS_DATA_CACHE_MAX_BYTES: String(options.held * (options.sizeBytes + recordBytes)) }
        : {}),
      ...options.settings,
    },
  })
  try {
    const startedMs = systemClock.monotonic()
    const minuteNow = (): number => (systemClock.monotonic() - startedMs) / 60_000
    const hits = new Hits(options.held)
    const dice = new Dice(7)
    let unanswered = 0
    const sample = (ids: number): void => {
      const { own, all } = residentMb(gateway.pid)
      const disk = diskMb(join(workFolder, 'data-churn'))
      const minute = Math.round(minuteNow())
      tell({ minute, ids, ownMb: own, allMb: all, diskMb: disk, ...hits.take(), unanswered })
    }
    const running = new Set<Promise<void>>()
    let failure: unknown
    const known: number[] = []
    let minute = 0
    let ids = 0
    while (minuteNow() < options.minutes && failure === undefined) {
      if (minuteNow() >= minute) {
        sample(ids)
        minute += 1
      }
      const due = Math.floor(minuteNow() * 60 * options.perSecond)
      while (ids < due && running.size < inFlightMax) {
        const isAgain = known.length > 0 && dice.below(100) < options.againPercent
        const isKnown = isAgain || ids % 100 < options.knownPercent
        const n = isAgain ? (known[dice.zipf(known.length)] ?? 0) : ids
        if (isKnown) hits.ask(n, isAgain)
        if (isKnown && !isAgain && known.length < popularMax) known.push(n)
        const question = questionOf(n, isKnown)
        const asking = ask(gateway.port, question)
          .then((answered) => {
            if (answered === undefined) unanswered += 1
            else if (!question.isRight(answered.status))
              throw new Error(`churn: ${answered.status} for ${question.path}`)
            else if (isAgain && answered.isHit) hits.hit()
          })
          .catch((error: unknown) => {
            failure = error
          })
          .finally(() => running.delete(asking))
        running.add(asking)
        ids += 1
      }
      await pause(10)
    }
    await Promise.all(running)
    if (failure !== undefined) throw failure
    sample(ids)
  } finally {
    await gateway.stop()
    agent.destroy()
    source.closeAllConnections()
    source.close()
  }
}

const { values } = parseArgs({
  options: {
    help: { type: 'boolean' },
    minutes: { type: 'string', default: '30' },
    rate: { type: 'string', default: '100' },
    known: { type: 'string', default: '50' },
    size: { type: 'string', default: '4096' },
    again: { type: 'string', default: '0' },
    held: { type: 'string', default: '0' },
    set: { type: 'string', multiple: true, default: [] },
  },
})
if (values.help === true) say(help)
else {
  const settings = values.set.map((one): [string, string] => {
    const at = one.indexOf('=')
    return [one.slice(0, at), one.slice(at + 1)]
  })
  const options = {
    minutes: Number(values.minutes),
    perSecond: Number(values.rate),
    knownPercent: Number(values.known),
    sizeBytes: Number(values.size),
    againPercent: Number(values.again),
    held: Number(values.held),
    settings: Object.fromEntries(settings),
  }
  const percent = (share: number): string => (Number.isNaN(share) ? '-' : `${(share * 100).toFixed(1)} %`)
  await churn(options, ({ minute, ids, ownMb, allMb, diskMb, hits, lruHits, unanswered }) => {
    const memory = `${ownMb.toFixed(0)} MiB own, ${allMb.toFixed(0)} MiB with files`
    const disk = `${diskMb.toFixed(0)} MiB on disk, hits ${percent(hits)} (LRU ${percent(lruHits)})`
    say(`churn: minute ${minute}, ${ids} ids: ${memory}; ${disk}; ${unanswered} without an answer`)
  })
}
