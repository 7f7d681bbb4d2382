import { readFileSync } from 'node:fs'
import { parseArgs } from 'node:util'
import { systemClock } from '../../src/actor/clock.js'
import { openAgent } from '../../src/http/agent.js'
import { bytesPerSecondMin } from '../../src/http/sender-pace.js'
import { wantedLines } from '../../src/source/upstream/gateway-headers.js'
import { LineAnswer } from '../../src/source/upstream/line-answer.js'
import { NativeLine } from '../../src/source/upstream/native-line.js'
import { handlerOf } from '../../src/source/upstream/undici-answer.js'
import { corpusOf, smallSizes } from '../corpus/corpus.js'
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

const connections = 16
const headers = { 'accept-encoding': 'identity', 'user-agent': 'claim', 'x-ar-io-hops': '1' }

type Send = (path: string, answer: LineAnswer) => void

interface Way {
  readonly sharesMemory: boolean
  readonly send: Send
}

/** Asks for everything, so many at once. Resolves with the bytes that came. */
async function load(ids: readonly string[], { sharesMemory, send }: Way): Promise<number> {
  let next = 0
  let bytes = 0
  const one = async (): Promise<void> => {
    for (let id = ids[next++]; id !== undefined; id = ids[next++]) {
      const answer = new LineAnswer({ stallMs: 10_000, bytesPerSecondMin }, systemClock, sharesMemory)
      send(`/raw/${id}`, answer)
      const broken = await answer.head
      if (broken !== undefined || answer.statusCode !== 200) throw broken ?? new Error('a wrong status')
      for await (const piece of answer) {
        if (!(piece instanceof Uint8Array)) throw new Error(piece.message)
        bytes += piece.length
      }
    }
  }
  await Promise.all(Array.from({ length: Math.min(connections, ids.length) }, one))
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
for (const [what, corpus] of [
  ['small', small],
  ['large', large],
] as const) {
  const server = values.plain
    ? await upstreamServer(corpus.filesFolder)
    : await gatewayLike(corpus.filesFolder, [], pair)
  const origin = values.plain ? `http://127.0.0.1:${server.port}` : `https://localhost:${server.port}`
  const trust = () => ({ authorities: cert, suites: '', ciphers: '' })
  const native = new NativeLine({ connectionsMax: connections, reads: wantedLines, trust }, systemClock)
  if (!native.serves(origin)) throw new Error('native/client was not built')
  const agent = openAgent({ connections, headersTimeout: 0, bodyTimeout: 0, connect: { ca: cert } })
  const ways: Record<string, Way> = {
    'native/client': {
      sharesMemory: true,
      send: (path, answer) => answer.begin(native.ask(origin, { method: 'GET', path, headers }, answer)),
    },
    undici: {
      sharesMemory: false,
      send: (path, answer) =>
        void agent.dispatch({ origin, path, method: 'GET', headers }, handlerOf(answer)),
    },
  }
  const ids = corpus.contents.map(({ id }) => id)
  for (let round = 0; round < Number(values.rounds); round += 1) {
    for (const [name, way] of Object.entries(ways)) {
      const before = process.cpuUsage()
      const bytes = await load(ids, way)
      const { user, system } = process.cpuUsage(before)
      const spent = user + system
      say(
        `${what} ${name}: ${(spent / ids.length).toFixed(1)} us an answer, ${((spent * 1e6) / bytes).toFixed(0)} us/MB`,
      )
    }
  }
  native.destroy()
  await agent.destroy()
  await server.stop()
}
