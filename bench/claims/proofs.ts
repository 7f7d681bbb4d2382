import { parseArgs } from 'node:util'
import { pause } from '../../src/actor/clock.js'
import { type Provable, startMisses } from '../cases/misses-set.js'
import { closedFigures, loadOn, planOf } from '../cases/run.js'
import { takeWorkFolder } from '../kit/folders.js'
import { say } from '../kit/say.js'
import { Stopwatch } from '../kit/usage.js'
import type { Candidate } from '../rivals/candidate.js'

const help = `proofs: what cached contents cost while they wait for a proof, beside the same program without verification

  --kind KIND       now, later or never: a node has their roots, will have them, or nobody names one (never)
  --count N         contents of a round, each requested once (5000)
  --rounds N        (2)
  --seconds N       after each round (60)
`

const { values } = parseArgs({
  options: {
    help: { type: 'boolean', default: false },
    kind: { type: 'string', default: 'never' },
    count: { type: 'string', default: '5000' },
    rounds: { type: 'string', default: '2' },
    seconds: { type: 'string', default: '60' },
  },
})

const kinds: readonly Provable[] = ['now', 'later', 'never']

/** The numbers of the program about its proofs, by their names. */
async function proofNumbers({ port }: Candidate): Promise<string> {
  const text = await (await fetch(`http://127.0.0.1:${port}/gateway/__gateway_metrics`)).text()
  const found = text.matchAll(/^(proof\w+)\{(?:outcome="(\w+)")?[^}]*\} (\S+)$/gm)
  return [...found].map(([, name, outcome = '', value]) => `${name} ${outcome} ${value}`).join(', ')
}

async function run(provable: Provable): Promise<void> {
  const [count, rounds, seconds] = [Number(values.count), Number(values.rounds), Number(values.seconds)]
  takeWorkFolder()
  const misses = await startMisses({ threads: 1 }, provable, count * rounds)
  const idle = async (candidate: Candidate): Promise<number> => {
    const watch = new Stopwatch(candidate.pid)
    await pause(10_000)
    return watch.seconds() / 10
  }
  try {
    for (const candidate of [misses.off, misses.on]) {
      const rate = await idle(candidate)
      say(`${candidate.name}: ${(rate * 1000).toFixed(1)} ms a second when idle`)
      for (let round = 0; round < rounds; round += 1) {
        const plan = planOf(misses.targets.slice(round * count, (round + 1) * count))
        const manner = { seconds: 120, order: 'once', lateMs: 60_000, connections: 16 } as const
        const load = await loadOn(candidate, plan, manner).finally(() => plan.drop())
        const watch = new Stopwatch(candidate.pid)
        await pause(seconds * 1000)
        const us = (of: number): string => ((of * 1e6) / count).toFixed(0)
        const after = watch.seconds()
        const { cpuUs = 0 } = closedFigures(load)
        say(
          `${candidate.name}: ${cpuUs.toFixed(0)} us a content while reading, ${us(after)} in the ${seconds} s after, ` +
            `${us(rate * seconds)} of which are idle`,
        )
        if (candidate === misses.on) say(`  ${await proofNumbers(candidate)}`)
      }
    }
  } finally {
    await misses.stop()
  }
}

const kind = kinds.find((one) => one === values.kind)
if (values.help || kind === undefined) say(help)
else await run(kind)
