import { parseArgs } from 'node:util'
import { pause } from '../../src/actor/clock.js'
import { wholeOf } from '../cases/hot.js'
import { idle } from '../cases/run.js'
import { corpusOf, smallSizes } from '../corpus/corpus.js'
import { truthPath } from '../corpus/truth.js'
import { say } from '../kit/say.js'
import { clientKinds } from '../load/clients.js'
import { makeLoad, type Plan, type Target, tryLoad } from '../load/load.js'
import { stopAll } from '../rivals/candidate.js'
import { offline, startGateway } from '../rivals/gateway.js'
import { upstreamServer } from '../rivals/nginx.js'

const help = `cold-mix: what contents that are asked for the first time cost those that are asked for again, and how many are kept

Another server (nginx) has small contents, this gateway none. After a warm-up: p99 of hot requests alone and with a fifth of
all requests cold; then cold requests alone at a fixed rate, and afterwards, without the other server, all of them once more:
what is not answered was not kept. Takes half a minute, and some more the first time.

  --hot N           hot requests a second (1000)
  --cold N          cold requests a second of the second part (5000)
  --items N         cold requests of the second part (8000)
  --seconds N       of each measured load of the first part (5)
`

const { values } = parseArgs({
  options: {
    help: { type: 'boolean', default: false },
    hot: { type: 'string', default: '1000' },
    cold: { type: 'string', default: '5000' },
    items: { type: 'string', default: '8000' },
    seconds: { type: 'string', default: '5' },
  },
})
if (values.help) {
  say(help)
  process.exit(0)
}

const [hotRate, coldRate, items, seconds] = [values.hot, values.cold, values.items, values.seconds].map(
  Number,
) as [number, number, number, number]
const missesRate = hotRate / 4
const [hotCount, warmCount, missesCount] = [200, 4000, Math.ceil(missesRate * seconds)]
const count = hotCount + warmCount + missesCount + items
const corpus = corpusOf({ name: `cold-mix-${count}`, count, sizes: smallSizes, unpacked: true })
const targets = corpus.contents.map(wholeOf)
const planOf = (some: readonly Target[]): Plan => ({
  truthPath: truthPath(),
  clients: clientKinds,
  targets: some,
})
const hot = targets.slice(0, hotCount)
const warm = targets.slice(hotCount, hotCount + warmCount)
const misses = targets.slice(hotCount + warmCount, hotCount + warmCount + missesCount)
const last = targets.slice(-items)

const upstream = await upstreamServer(corpus.filesFolder)
const urls = JSON.stringify({ [`http://127.0.0.1:${upstream.port}`]: 1 })
const gateway = await startGateway({
  name: 'cold-mix',
  settings: { ...offline, TRUSTED_GATEWAYS_URLS: urls },
})
const { port } = gateway
const once = { port, order: 'once', seconds: 120, lateMs: 60_000, drainMs: 60_000 } as const
let isUp = true
try {
  await makeLoad(planOf([...hot, ...warm]), { ...once, connections: 16 })
  await idle(gateway)
  const asked = { port, connections: 16, rate: hotRate, seconds, order: 'uniform', isPrompt: true } as const
  await makeLoad(planOf(hot), asked)
  const alone = await makeLoad(planOf(hot), asked)
  const [mixed, missed] = await Promise.all([
    makeLoad(planOf(hot), asked),
    makeLoad(planOf(misses), { ...once, connections: 16, rate: missesRate }),
  ])
  say(`hot alone, ${hotRate} a second:   p50 ${alone.p50Us} us, p99 ${alone.p99Us} us`)
  say(`with a fifth of all cold:    p50 ${mixed.p50Us} us, p99 ${mixed.p99Us} us`)
  say(`p99 is ${(mixed.p99Us / alone.p99Us).toFixed(2)} of that alone (wanted: at most 1.5)`)
  say(`the cold ones:               p50 ${missed.p50Us} us, p99 ${missed.p99Us} us`)
  await idle(gateway)
  const filled = await makeLoad(planOf(last), { ...once, connections: 256, rate: coldRate })
  const reached = Math.round(filled.answered / filled.seconds)
  say(`cold, ${coldRate} a second offered: ${reached} a second answered, p99 ${filled.p99Us} us`)
  await pause(3000)
  await idle(gateway)
  await upstream.stop()
  isUp = false
  const again = await tryLoad(planOf(last.map((target) => ({ ...target, status: 'any' }))), {
    ...once,
    connections: 16,
  })
  const kept = again.statuses['200'] ?? 0
  say(`kept: ${kept} of ${items} (wanted: all)`)
  process.exitCode = kept === items ? 0 : 1
} finally {
  await stopAll(isUp ? [gateway, upstream] : [gateway])
}
