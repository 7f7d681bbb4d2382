import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { wholeOf } from '../cases/hot.js'
import { idle, loadOn, openFigures, planOf } from '../cases/run.js'
import { corpusOf, smallSizes } from '../corpus/corpus.js'
import { takeWorkFolder } from '../kit/folders.js'
import { quantile } from '../kit/numbers.js'
import { say } from '../kit/say.js'
import { threadSeconds } from '../kit/usage.js'
import { fillWith, startGateway } from '../rivals/gateway.js'

const help = `tail: latencies second by second at a steady rate that is far below what this server can take

  --seconds N    (90)
  --rate N       requests a second (2000)
  --contents N   small contents, by Zipf 0.9; all are asked for once before (200000)
  --build PATH   another build of this program: its folder

What a thread does now and then (it collects garbage, a table grows) shows as a second whose p99 is many times that of the others.
`

/** A second counts as slow where its p99 is so many times the usual one. */
const slowFactor = 5

interface Second {
  readonly p99Us: number
  readonly p999Us: number
  /** The thread that worked longest in it, in seconds of processor time. */
  readonly busiest: number
}

interface Wish {
  readonly seconds: number
  readonly rate: number
  readonly contents: number
  readonly build: string | undefined
}

async function measure({ seconds, rate, contents, build }: Wish): Promise<Second[]> {
  const corpus = corpusOf({ name: `tail-${contents}`, count: contents, sizes: smallSizes })
  const words = build === undefined ? {} : { program: join(build, 'bin/sluice.mjs') }
  const server = await startGateway({
    name: 'sluice',
    fill: (seeding) => fillWith(seeding, corpus),
    ...words,
  })
  const plan = planOf(corpus.contents.map(wholeOf))
  const found: Second[] = []
  try {
    await loadOn(server, plan, { seconds: 1200, connections: 16, order: 'once', lateMs: 60_000 })
    await idle(server)
    for (let second = 0; second < seconds; second += 1) {
      const before = threadSeconds(server.pid)
      const manner = { order: 'zipf:0.9', connections: 128, seconds: 1, rate, seed: second + 1 } as const
      const { openP99Us = 0, openP999Us = 0 } = openFigures(await loadOn(server, plan, manner), rate)
      const worked = [...threadSeconds(server.pid)].map(([task, spent]) => spent - (before.get(task) ?? 0))
      found.push({ p99Us: openP99Us, p999Us: openP999Us, busiest: Math.max(...worked) })
    }
  } finally {
    plan.drop()
    await server.stop()
  }
  return found
}

function tell(found: readonly Second[]): void {
  for (const [name, of] of [
    ['p99', found.map(({ p99Us }) => p99Us)],
    ['p99.9', found.map(({ p999Us }) => p999Us)],
  ] as const) {
    const [usual, tenth, worst] = [0.5, 0.9, 1].map((share) => quantile(of, share))
    say(`${name} of ${found.length} seconds: median ${usual} us, a tenth above ${tenth}, the worst ${worst}`)
  }
  const slow =
    slowFactor *
    quantile(
      found.map(({ p99Us }) => p99Us),
      0.5,
    )
  for (const [at, { p99Us, p999Us, busiest }] of found.entries()) {
    if (p99Us < slow) continue
    say(`second ${at}: p99 ${p99Us} us, p99.9 ${p999Us}; one thread worked ${Math.round(busiest * 1000)} ms`)
  }
}

const { values } = parseArgs({
  options: {
    help: { type: 'boolean' },
    seconds: { type: 'string', default: '90' },
    rate: { type: 'string', default: '2000' },
    contents: { type: 'string', default: '200000' },
    build: { type: 'string' },
  },
})
if (values.help === true) say(help)
else {
  takeWorkFolder()
  const { build } = values
  tell(
    await measure({
      seconds: Number(values.seconds),
      rate: Number(values.rate),
      contents: Number(values.contents),
      build,
    }),
  )
}
