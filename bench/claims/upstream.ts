import { parseArgs } from 'node:util'
import { systemClock } from '../../src/actor/clock.js'
import { openAgent } from '../../src/http/agent.js'
import { bytesPerSecondMin } from '../../src/http/sender-pace.js'
import { LineAnswer } from '../../src/source/upstream/line-answer.js'
import { PlainLine } from '../../src/source/upstream/plain-line.js'
import { handlerOf } from '../../src/source/upstream/undici-answer.js'
import { corpusOf, smallSizes } from '../corpus/corpus.js'
import { say } from '../kit/say.js'
import { upstreamServer } from '../rivals/nginx.js'

const help = `upstream: processor time of one answer of another server (nginx), by the client of our own and by undici's dispatch

  --answers N       of small contents, in each round (4000)
  --large N         bodies of 64 MiB, in each round (2)
  --rounds N        the ways take turns (5)
`

const connections = 16
const headers = { 'accept-encoding': 'identity', 'user-agent': 'claim', 'x-ar-io-hops': '1' }

type Send = (path: string, answer: LineAnswer) => void

/** Asks for everything, so many at once. Resolves with the bytes that came. */
async function load(ids: readonly string[], send: Send): Promise<number> {
  let next = 0
  let bytes = 0
  const one = async (): Promise<void> => {
    for (let id = ids[next++]; id !== undefined; id = ids[next++]) {
      const answer = new LineAnswer({ stallMs: 10_000, bytesPerSecondMin }, systemClock)
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
  },
})
if (values.help) {
  say(help)
  process.exit(0)
}

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
  const server = await upstreamServer(corpus.filesFolder)
  const origin = `http://127.0.0.1:${server.port}`
  const plain = new PlainLine(connections, systemClock)
  const agent = openAgent({ connections, headersTimeout: 0, bodyTimeout: 0 })
  const ways: Record<string, Send> = {
    own: (path, answer) => answer.begin(plain.ask(origin, { method: 'GET', path, headers }, answer)),
    undici: (path, answer) =>
      void agent.dispatch({ origin, path, method: 'GET', headers }, handlerOf(answer)),
  }
  const ids = corpus.contents.map(({ id }) => id)
  for (let round = 0; round < Number(values.rounds); round += 1) {
    for (const [name, send] of Object.entries(ways)) {
      const before = process.cpuUsage()
      const bytes = await load(ids, send)
      const { user, system } = process.cpuUsage(before)
      const spent = user + system
      say(
        `${what} ${name}: ${(spent / ids.length).toFixed(1)} us an answer, ${((spent * 1e6) / bytes).toFixed(0)} us/MB`,
      )
    }
  }
  plain.destroy()
  await agent.destroy()
  await server.stop()
}
