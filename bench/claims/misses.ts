import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { pause } from '../../src/actor/clock.js'
import { idle, loadOn, planOf } from '../cases/run.js'
import { type Corpus, corpusOf, smallSizes } from '../corpus/corpus.js'
import { takeWorkFolder } from '../kit/folders.js'
import { median } from '../kit/numbers.js'
import { profiled } from '../kit/profile.js'
import { say } from '../kit/say.js'
import { Stopwatch } from '../kit/usage.js'
import type { Target } from '../load/load.js'
import { type Candidate, stopAll } from '../rivals/candidate.js'
import { offline, startGateway } from '../rivals/gateway.js'
import { cachingProxy, gatewayLike } from '../rivals/nginx.js'
import { makePair } from '../rivals/tls-servers.js'

const help = `misses: what a first request costs, thread by thread, over TLS, beside nginx proxy_cache

  --contents N    small contents in each round (1000)
  --rounds N      that count; the servers take turns (6)
  --warm N        rounds before them (3)
  --rate N        requests a second (a closed loop of 16 connections)
  --sources N     gateways that have all of the contents (3)
  --build PATH    another build of this program, in turns with this one: its folder
  --verify        contents are proven, too
  --set NAME=VALUE  a setting of this program; may be repeated
  --profile       says at the end where the time of this build goes
`

/** Processor time of the threads of this program in us, by name; the rest is that of the pool, and of the compiler. */
async function usedBy({ port, role }: Candidate): Promise<Map<string, number>> {
  if (role !== 'ours') return new Map()
  const text = await (await fetch(`http://127.0.0.1:${port}/gateway/__gateway_metrics`)).text()
  const shape = /^thread_processor_seconds_total\{.*?thread="([^"]+)".*?\} (\S+)/gm
  return new Map([...text.matchAll(shape)].map(([, name = '', seconds]) => [name, Number(seconds) * 1e6]))
}

/** How often the threads of a program had nothing to do: each time is followed by a wake-up. */
function waitsOf(pid: number): number {
  let waits = 0
  for (const task of readdirSync(`/proc/${pid}/task`)) {
    const status = readFileSync(`/proc/${pid}/task/${task}/status`, 'utf8')
    waits += Number(/^voluntary_ctxt_switches:\s+(\d+)/m.exec(status)?.[1])
  }
  return waits
}

interface Round {
  readonly us: number
  readonly afterUs: number
  readonly waits: number
  readonly p50Us: number
  readonly p99Us: number
  readonly threads: ReadonlyMap<string, number>
}

const afterMs = 2500

async function measure(
  server: Candidate,
  targets: readonly Target[],
  rate: number | undefined,
): Promise<Round> {
  const plan = planOf(targets)
  const manner = rate === undefined ? { connections: 16 } : { connections: 256, rate }
  const count = targets.length
  try {
    const before = await usedBy(server)
    const waitsBefore = waitsOf(server.pid)
    const { outcome, cpu } = await loadOn(server, plan, {
      ...manner,
      seconds: 120,
      order: 'once',
      lateMs: 60_000,
    })
    const waits = (waitsOf(server.pid) - waitsBefore) / count
    const after = await usedBy(server)
    const rest = new Stopwatch(server.pid)
    await pause(afterMs)
    const afterUs = (rest.seconds() * 1e6) / count
    const threads = [...after].map(([name, us]): [string, number] => [
      name,
      (us - (before.get(name) ?? 0)) / count,
    ])
    const { p50Us, p99Us } = outcome
    return { us: (cpu * 1e6) / count, afterUs, waits, p50Us, p99Us, threads: new Map(threads) }
  } finally {
    plan.drop()
  }
}

function middle(rounds: readonly Round[], of: (round: Round) => number, digits = 0): string {
  const values = rounds.map(of)
  return `${median(values).toFixed(digits)} (${Math.min(...values).toFixed(digits)})`
}

function report(name: string, rounds: readonly Round[]): void {
  const latency = `p50 ${middle(rounds, ({ p50Us }) => p50Us)}, p99 ${middle(rounds, ({ p99Us }) => p99Us)} us`
  const spent = `${middle(rounds, ({ us }) => us)} us a content, ${middle(rounds, ({ afterUs }) => afterUs)} after`
  say(`${name}: ${spent}; waits ${middle(rounds, ({ waits }) => waits, 1)}; ${latency}`)
  const names = [...new Set(rounds.flatMap(({ threads }) => [...threads.keys()]))]
  const of = (thread: string) => (round: Round) => round.threads.get(thread) ?? 0
  const used = names.filter((thread) => median(rounds.map(of(thread))) >= 2)
  if (used.length > 0) say(`  ${used.map((thread) => `${thread} ${middle(rounds, of(thread))}`).join(', ')}`)
}

const { values } = parseArgs({
  options: {
    help: { type: 'boolean', default: false },
    contents: { type: 'string', default: '1000' },
    rounds: { type: 'string', default: '6' },
    warm: { type: 'string', default: '3' },
    rate: { type: 'string' },
    sources: { type: 'string', default: '3' },
    build: { type: 'string' },
    verify: { type: 'boolean', default: false },
    set: { type: 'string', multiple: true, default: [] },
    profile: { type: 'boolean', default: false },
  },
})

async function servers({ filesFolder }: Corpus): Promise<{ tested: Candidate[]; sources: Candidate[] }> {
  const pair = await makePair()
  const sources: Candidate[] = []
  for (let n = 0; n < Number(values.sources); n += 1) sources.push(await gatewayLike(filesFolder, [], pair))
  const ports = sources.map(({ port }) => port)
  const settings = {
    ...offline,
    TRUSTED_GATEWAYS_URLS: JSON.stringify(
      Object.fromEntries(ports.map((port) => [`https://localhost:${port}`, 1])),
    ),
    NODE_EXTRA_CA_CERTS: pair.cert,
    ENABLE_BACKGROUND_DATA_VERIFICATION: String(values.verify),
    ...Object.fromEntries(values.set.map((one) => one.split(/=(.*)/s, 2))),
  }
  const tested = [await startGateway({ name: 'this build', settings, threads: 2 })]
  if (values.build !== undefined) {
    const program = join(values.build, 'bin/sluice.mjs')
    tested.push(await startGateway({ name: 'other build', settings, threads: 2, program }))
  }
  tested.push(await cachingProxy(ports[0] ?? 0, 2, 'https'))
  return { tested, sources }
}

async function run(): Promise<void> {
  const [each, rounds, warm] = [Number(values.contents), Number(values.rounds), Number(values.warm)]
  const rate = values.rate === undefined ? undefined : Number(values.rate)
  const count = each * (rounds + warm + (values.profile ? 1 : 0))
  const corpus = corpusOf({ name: `misses-${count}`, count, sizes: smallSizes, unpacked: true })
  const targets = corpus.contents.map(({ id, sizeBytes, truthStart }) => ({
    path: `/${id}`,
    sizeBytes,
    truthStart,
  }))
  const { tested, sources } = await servers(corpus)
  const found = new Map<Candidate, Round[]>(tested.map((one) => [one, []]))
  try {
    for (let round = 0; round < warm + rounds; round += 1) {
      const part = targets.slice(round * each, (round + 1) * each)
      for (let turn = 0; turn < tested.length; turn += 1) {
        const server = tested[(round + turn) % tested.length]
        if (server === undefined) continue
        await idle(server)
        const measured = await measure(server, part, rate)
        if (round >= warm) found.get(server)?.push(measured)
      }
    }
    for (const [{ name }, all] of found) report(name, all)
    const [ours] = tested
    if (values.profile && ours !== undefined) {
      const { lines } = await profiled(ours.pid, () => measure(ours, targets.slice(-each), rate))
      for (const line of lines) say(line)
    }
  } finally {
    await stopAll([...tested, ...sources])
  }
}

if (values.help) say(help)
else {
  takeWorkFolder()
  await run()
}
