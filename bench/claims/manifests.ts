import { createHash } from 'node:crypto'
import { parseArgs } from 'node:util'
import { pause, systemClock } from '../../src/actor/clock.js'
import { type Id, idOfBytes } from '../../src/format/id.js'
import { corpusOf } from '../corpus/corpus.js'
import type { Seeding } from '../corpus/seed.js'
import { say } from '../kit/say.js'
import { threadSeconds } from '../kit/usage.js'
import { makeLoad, type Outcome } from '../load/load.js'
import type { Candidate } from '../rivals/candidate.js'
import { fillWith, startGateway } from '../rivals/gateway.js'

const help = `manifests: cached GETs of 1 KiB while large manifests are resolved

  --rate N      requests a second below manifests (8)
  --seconds N   of each slice (3)
  --rounds N    of three slices: nothing else, cold manifests (never read before), the same ones warm (3)
  --mb N        size of a manifest (14)

The hot load is 1,000 requests a second over 8 connections. One gateway with one edge thread; slices follow each other.
`

const manifestType = 'application/x.arweave-manifest+json'

interface Site {
  readonly id: Id
  readonly path: string
}

/** A manifest of this size whose paths all lead to one object; no two have the same bytes. */
function manifestText(salt: number, sizeBytes: number, target: Id): { text: Buffer; path: string } {
  const lines: string[] = []
  let bytes = 0
  for (let at = 0; bytes < sizeBytes; at += 1) {
    const line = `"assets/${salt}/folder-${at % 977}/a-file-with-a-usual-name-${at}.html":{"id":"${target}"}`
    bytes += line.length + 1
    lines.push(line)
  }
  const path = `assets/${salt}/folder-5/a-file-with-a-usual-name-5.html`
  return { text: Buffer.from(`{"version":"0.2.0","paths":{${lines.join(',')}}}`), path }
}

async function seedManifests(
  seeding: Seeding,
  count: number,
  sizeBytes: number,
  target: Id,
): Promise<Site[]> {
  const sites: Site[] = []
  for (let salt = 0; salt < count; salt += 1) {
    const { text, path } = manifestText(salt, sizeBytes, target)
    const digest = createHash('sha256').update(text).digest()
    const id = idOfBytes(createHash('sha256').update(`manifest ${salt}`).digest())
    await seeding.content({ id, size: text.length, contentType: manifestType, digest }, text)
    sites.push({ id, path })
  }
  return sites
}

/** Requests one path below each, at a fixed rate, without waiting for answers. Resolves with the slowest. */
async function resolveAll({ port }: Candidate, sites: readonly Site[], rate: number): Promise<number> {
  const times: Promise<number>[] = []
  for (const { id, path } of sites) {
    times.push(
      (async () => {
        const started = systemClock.monotonic()
        const answer = await fetch(`http://127.0.0.1:${port}/${id}/${path}`)
        const body = await answer.arrayBuffer()
        if (answer.status !== 200 || body.byteLength !== 1024) throw new Error(`${id}: ${answer.status}`)
        return systemClock.monotonic() - started
      })(),
    )
    await pause(1000 / rate)
  }
  return Math.max(...(await Promise.all(times)))
}

const sum = (seconds: Map<string, number>): number =>
  [...seconds.values()].reduce((one, other) => one + other, 0)

const { values } = parseArgs({
  options: {
    help: { type: 'boolean' },
    rate: { type: 'string', default: '8' },
    seconds: { type: 'string', default: '3' },
    rounds: { type: 'string', default: '3' },
    mb: { type: 'string', default: '14' },
  },
})
if (values.help === true) say(help)
else {
  const [rate, seconds, rounds] = [Number(values.rate), Number(values.seconds), Number(values.rounds)]
  const perSlice = rate * seconds
  const corpus = corpusOf({ name: 'manifests', count: 1, sizes: { law: 'listed', sizesBytes: [1024] } })
  const [content] = corpus.contents
  if (content === undefined) throw new Error('nothing to ask for')
  let sites: Site[] = []
  const gateway = await startGateway({
    name: 'manifests',
    settings: { DEVNET_BLOCK_MS: '0' },
    fill: async (seeding) => {
      await fillWith(seeding, corpus)
      sites = await seedManifests(seeding, perSlice * rounds, Number(values.mb) * 1e6, content.id)
    },
  })
  const hot = (): Promise<Outcome> =>
    makeLoad(
      { targets: [{ path: `/${content.id}`, sizeBytes: 1024 }] },
      { port: gateway.port, connections: 8, seconds, rate: 1000 },
    )
  /** What `act` costs each thread. */
  const costOf = async <T>(act: () => Promise<T>): Promise<{ made: T; seconds: Map<string, number> }> => {
    const before = threadSeconds(gateway.pid)
    const made = await act()
    const after = threadSeconds(gateway.pid)
    return { made, seconds: new Map([...after].map(([id, sum]) => [id, sum - (before.get(id) ?? 0)])) }
  }
  const show = (name: string, { p50Us, p99Us }: Outcome, quiet: Outcome, slowestMs: number): void => {
    const ratio = `p50 ${(p50Us / quiet.p50Us).toFixed(2)}x, p99 ${(p99Us / quiet.p99Us).toFixed(2)}x of quiet`
    say(`${name}: hot p50 ${p50Us} us, p99 ${p99Us} us (${ratio}); slowest path ${slowestMs.toFixed(0)} ms`)
  }
  try {
    await hot()
    for (let round = 0; round < rounds; round += 1) {
      const own = sites.slice(round * perSlice, (round + 1) * perSlice)
      const { made: quiet, seconds: alone } = await costOf(hot)
      // The edge thread is the one that uses most processor time while only hot content is served.
      const [edge = ''] = [...alone].sort(([, one], [, other]) => other - one)[0] ?? []
      say(
        `quiet: hot p50 ${quiet.p50Us} us, p99 ${quiet.p99Us} us, edge thread ${alone.get(edge)?.toFixed(2)} s`,
      )
      for (const name of ['cold', 'warm']) {
        const { made, seconds: beside } = await costOf(() =>
          Promise.all([hot(), resolveAll(gateway, own, rate)]),
        )
        const [outcome, slowestMs] = made
        show(name, outcome, quiet, slowestMs)
        const [more, all] = [(beside.get(edge) ?? 0) - (alone.get(edge) ?? 0), sum(beside) - sum(alone)]
        const each = (part: number): string => ((part * 1000) / perSlice).toFixed(1)
        say(`  for each path: ${each(more)} ms on the edge thread, ${each(all)} ms in all`)
      }
    }
  } finally {
    await gateway.stop()
  }
}
