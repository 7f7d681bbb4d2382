import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { pause } from '../../src/actor/clock.js'
import { idle, loadOn, planOf } from '../cases/run.js'
import { type Content, corpusOf, smallSizes } from '../corpus/corpus.js'
import { takeWorkFolder } from '../kit/folders.js'
import { median } from '../kit/numbers.js'
import { say } from '../kit/say.js'
import type { Target } from '../load/load.js'
import { type Candidate, stopAll } from '../rivals/candidate.js'
import { fillWith, startGateway } from '../rivals/gateway.js'

const help = `first-answers: processor time of answers that this server has not given within the last minute

  --contents N   distinct small contents, each asked for once a pass (10000)
  --other PATH   another build of this program beside it, in turns: its folder
  --only WORDS   of: prepared, forgotten

In the pass before, signatures were made that are too old by now. "Prepared": what is known of each content is in memory.
"Forgotten": it is read from the catalog again.
`

/** Signatures last so long here; a pass takes less. */
const reuseSeconds = 15
const sliceOf = 1000

const kinds = {
  prepared: {},
  forgotten: { PREPARED_ANSWERS_MAX_BYTES: String(2 ** 20) },
} as const

function slicesOf(contents: readonly Content[], method: 'GET' | 'HEAD'): Target[][] {
  const slices: Target[][] = []
  for (let at = 0; at < contents.length; at += sliceOf) {
    const slice = contents.slice(at, at + sliceOf)
    slices.push(
      slice.map(({ id, sizeBytes, truthStart }) => ({ method, path: `/${id}`, sizeBytes, truthStart })),
    )
  }
  return slices
}

/** Microseconds a request of each server: the median of the slices, which they are asked for in turns. */
async function pass(
  servers: readonly Candidate[],
  slices: readonly (readonly Target[])[],
): Promise<number[]> {
  const found = servers.map((): number[] => [])
  for (const [turn, slice] of slices.entries()) {
    const plan = planOf(slice)
    try {
      for (let at = 0; at < servers.length; at += 1) {
        const which = (at + turn) % servers.length
        const { outcome, cpu } = await loadOn(servers[which]!, plan, {
          seconds: 60,
          connections: 16,
          order: 'once',
        })
        found[which]?.push((cpu * 1e6) / outcome.answered)
      }
    } finally {
      plan.drop()
    }
  }
  return found.map(median)
}

async function measure(kind: keyof typeof kinds, count: number, other: string | undefined): Promise<void> {
  const corpus = corpusOf({ name: `first-${count}`, count, sizes: smallSizes, unpacked: true })
  const settings = { HTTPSIG_REUSE_SECONDS: String(reuseSeconds), ...kinds[kind] }
  const servers: Candidate[] = []
  try {
    for (const [name, program] of [
      ['this', undefined],
      ['other', other],
    ] as const) {
      if (name === 'other' && program === undefined) continue
      const words = program === undefined ? {} : { program: join(program, 'bin/sluice.mjs') }
      servers.push(
        await startGateway({ name, settings, fill: (seeding) => fillWith(seeding, corpus), ...words }),
      )
    }
    const tell = (what: string, found: readonly number[]): void => {
      const all = found.map((us, at) => `${servers[at]?.name} ${us.toFixed(1)}`).join(', ')
      const [one = 0, two] = found
      say(`${kind}, ${what}: ${all} us${two === undefined ? '' : ` (${(one / two).toFixed(2)})`}`)
    }
    const [get, head] = [slicesOf(corpus.contents, 'GET'), slicesOf(corpus.contents, 'HEAD')]
    tell('never asked for', await pass(servers, get))
    for (const server of servers) await idle(server)
    tell('HEAD', await pass(servers, head))
    await pause((reuseSeconds + 2) * 1000)
    tell('GET', await pass(servers, get))
    tell('the same again', await pass(servers, get))
  } finally {
    await stopAll(servers)
  }
}

const { values } = parseArgs({
  options: {
    help: { type: 'boolean' },
    contents: { type: 'string', default: '10000' },
    other: { type: 'string' },
    only: { type: 'string' },
  },
})
if (values.help === true) say(help)
else {
  takeWorkFolder()
  const wanted = values.only?.split(',') ?? Object.keys(kinds)
  for (const kind of ['prepared', 'forgotten'] as const)
    if (wanted.includes(kind)) await measure(kind, Number(values.contents), values.other)
}
