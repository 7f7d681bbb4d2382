import { readFileSync } from 'node:fs'
import { parseArgs } from 'node:util'
import { systemClock } from '../../src/actor/clock.js'
import { openAgent } from '../../src/http/agent.js'
import { bytesPerSecondMin } from '../../src/http/sender-pace.js'
import { wantedLines } from '../../src/source/upstream/gateway-headers.js'
import { NativeClient } from '../../src/source/upstream/native-client.js'
import { handlerOf } from '../../src/source/upstream/undici-answer.js'
import { UpstreamAnswer } from '../../src/source/upstream/upstream-answer.js'
import { type Corpus, corpusOf, smallSizes } from '../corpus/corpus.js'
import { takeWorkFolder } from '../kit/folders.js'
import { say } from '../kit/say.js'
import { gatewayLike, upstreamServer } from '../rivals/nginx.js'
import { makePair } from '../rivals/tls-servers.js'

const help = `upstream: processor time of one answer of another server (nginx), by native/client and by undici, over TLS

  --answers N       of small contents, in each round (4000)
  --large N         bodies of 64 MiB, in each round (2)
  --rounds N        the clients take turns (5)
  --plain           without TLS
`

/** Requests under way at once, where contents are asked for one after the other. */
const usualConnections = 16
/** The same where all come at once, from a client without connections. */
const burstConnections = 256
const headers = { 'accept-encoding': 'identity', 'user-agent': 'claim', 'x-ar-io-hops': '1' }

type Send = (path: string, answer: UpstreamAnswer) => void

interface Way {
  readonly sharesMemory: boolean
  readonly send: Send
}

/** Asks for everything, so many at once. Resolves with the bytes that came. */
async function load(ids: readonly string[], { sharesMemory, send }: Way, atOnce: number): Promise<number> {
  let next = 0
  let bytes = 0
  const one = async (): Promise<void> => {
    for (let id = ids[next++]; id !== undefined; id = ids[next++]) {
      const answer = new UpstreamAnswer({ stallMs: 10_000, bytesPerSecondMin }, systemClock, sharesMemory)
      send(`/raw/${id}`, answer)
      const broken = await answer.head
      if (broken !== undefined || answer.statusCode !== 200) throw broken ?? new Error('a wrong status')
      for await (const piece of answer) {
        if (!(piece instanceof Uint8Array)) throw new Error(piece.message)
        bytes += piece.length
      }
    }
  }
  await Promise.all(Array.from({ length: Math.min(atOnce, ids.length) }, one))
  return bytes
}

const { values } = parseArgs({
  options: {
    help: { type: 'boolean', default: false },
    answers: { type: 'string', default: '4000' },
    large: { type: 'string', default: '2' },
    rounds: { type: 'string', default: '5' },
    plain: { type: 'boolean', default: false },
  },
})
if (values.help) {
  say(help)
  process.exit(0)
}

takeWorkFolder()
const pair = await makePair()
const cert = readFileSync(pair.cert, 'utf8')
const count = Number(values.answers)
const small = corpusOf({ name: `upstream-${count}`, count, sizes: smallSizes, unpacked: true })
const largeCount = Number(values.large)
const listed = { law: 'listed', sizesBytes: [64 * 1024 * 1024] } as const
const large = corpusOf({
  name: `upstream-large-${largeCount}`,
  count: largeCount,
  sizes: listed,
  unpacked: true,
})
interface Clients {
  readonly ways: Readonly<Record<string, Way>>
  close(): Promise<void>
}

/** Both clients, without connections yet. */
function clientsOf(origin: string, connections: number): Clients {
  const trust = () => ({ authorities: cert, suites: '', ciphers: '' })
  const native = new NativeClient({ connectionsMax: connections, reads: wantedLines, trust }, systemClock)
  if (!native.serves(origin)) throw new Error('native/client was not built')
  const agent = openAgent({ connections, headersTimeout: 0, bodyTimeout: 0, connect: { ca: cert } })
  const ways: Record<string, Way> = {
    'native/client': {
      sharesMemory: true,
      send: (path, answer) => answer.begin(native.request(origin, { method: 'GET', path, headers }, answer)),
    },
    undici: {
      sharesMemory: false,
      send: (path, answer) =>
        void agent.dispatch({ origin, path, method: 'GET', headers }, handlerOf(answer)),
    },
  }
  const close = async (): Promise<void> => {
    native.destroy()
    await agent.destroy()
  }
  return { ways, close }
}

async function measure(
  what: string,
  ids: readonly string[],
  { ways }: Clients,
  atOnce: number,
): Promise<void> {
  for (const [name, way] of Object.entries(ways)) {
    const before = process.cpuUsage()
    const begun = performance.now()
    const bytes = await load(ids, way, atOnce)
    const ms = performance.now() - begun
    const { user, system } = process.cpuUsage(before)
    const spent = user + system
    say(
      `${what} ${name}: ${(spent / ids.length).toFixed(1)} us an answer, ` +
        `${((spent * 1e6) / bytes).toFixed(0)} us/MB, all of them in ${ms.toFixed(0)} ms`,
    )
  }
}

async function run(what: string, { contents, filesFolder }: Corpus, burst: number): Promise<void> {
  const server = values.plain ? await upstreamServer(filesFolder) : await gatewayLike(filesFolder, [], pair)
  const origin = values.plain ? `http://127.0.0.1:${server.port}` : `https://localhost:${server.port}`
  const ids = contents.map(({ id }) => id)
  const clients = clientsOf(origin, usualConnections)
  for (let round = 0; round < Number(values.rounds); round += 1)
    await measure(what, ids, clients, usualConnections)
  await clients.close()
  for (let round = 0; burst > 0 && round < Number(values.rounds); round += 1) {
    const fresh = clientsOf(origin, burstConnections)
    await measure(`${what}, ${burst} at once`, ids.slice(0, burst), fresh, burst)
    await fresh.close()
  }
  await server.stop()
}

await run('small', small, 200)
await run('large', large, 0)
