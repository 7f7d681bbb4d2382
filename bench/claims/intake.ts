import { execFileSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { availableParallelism, loadavg } from 'node:os'
import { parseArgs } from 'node:util'
import { pause, systemClock } from '../../src/actor/clock.js'
import { normalizedAddress } from '../../src/proof/owner-address.js'
import { median, quantile, short } from '../kit/numbers.js'
import { say, table } from '../kit/say.js'
import { residentMb, Stopwatch } from '../kit/usage.js'
import { makeLoad } from '../load/load.js'
import { large, owner, paced, type Uploaded, uploads } from './intake-load.js'
import { type OursOptions, startDav, startOurs, startTus, type Taker } from './intake-servers.js'

const help = `intake: the upload service beside others that take files, all flushed before they answer

  --count N     items of 1 KiB of each run (6000); a half of 10 KiB, a fifth of 100 KiB
  --rounds N    (3)
  --items N     small items that become permanent (10000); --full: 100000
  --mib N       size of the large item (1024)
  --seconds N   of paced uploads, and of reads (8)
  --only NAMES  small, receipts, large, paced, crowd, permanent, reads
`

const kib = 1024
const mib = kib * kib
const wallets = [normalizedAddress(owner)]
const open = (more: Partial<OursOptions> = {}): ReturnType<typeof startOurs> =>
  startOurs({ wallets, sandbox: true, ...more })

function refusedOf({ statuses }: Uploaded, wanted: number): number {
  return [...statuses].reduce((sum, [status, count]) => (status === wanted ? sum : sum + count), 0)
}

/** Uploads that a server takes with one second of processor time. */
async function perCpuSecond(taker: Taker, bytes: number, count: number): Promise<number> {
  const watch = new Stopwatch(taker.pid)
  const done = await uploads(taker, { bytes, count, uploaders: 32 })
  const refused = refusedOf(done, taker.status)
  if (refused > 0) throw new Error(`${taker.name} refused ${refused} of ${count}`)
  return count / watch.seconds()
}

async function small(count: number, rounds: number): Promise<void> {
  const takers = [await open({ unsigned: true }), await startTus(), await startDav()].filter(
    (taker) => taker !== undefined,
  )
  const rows: string[][] = []
  for (const [bytes, share] of [
    [kib, 1],
    [10 * kib, 2],
    [100 * kib, 5],
  ] as const) {
    const rates = new Map<string, number[]>()
    for (const taker of takers) await perCpuSecond(taker, bytes, Math.ceil(count / share / 4))
    for (let round = 0; round < rounds; round += 1)
      for (const taker of takers) {
        const rate = await perCpuSecond(taker, bytes, Math.ceil(count / share))
        rates.set(taker.name, [...(rates.get(taker.name) ?? []), rate])
      }
    const ours = median(rates.get('sluice') ?? [])
    for (const [name, all] of rates) {
      const rate = median(all)
      const ratio = name === 'sluice' ? '' : `${short(ours / rate)}x`
      rows.push([`${bytes / kib} KiB, ${name}`, short(rate), `${short(1e6 / rate)} us`, ratio])
    }
  }
  for (const line of table(['without receipts', 'per CPU second', 'CPU of one', 'we do'], rows)) say(line)
  say('wanted: 2x @tus/server, 0.5x nginx')
  for (const taker of takers) await taker.stop()
}

/**
 * Signatures of RSA with 4096 bits that one processor makes in a second, while so many of them do nothing else: those of one
 * core, or of a machine that others use too, are slower together.
 */
function rsaPerSecond(processors: number): number {
  const words = ['speed', '-multi', String(processors), '-seconds', '3', 'rsa4096']
  const text = execFileSync('openssl', words, { stdio: ['ignore', 'pipe', 'ignore'] }).toString()
  const rate = /^rsa 4096 bits\s+\S+\s+\S+\s+([\d.]+)/m.exec(text)?.[1]
  if (rate === undefined) throw new Error('openssl said nothing of rsa4096')
  return Number(rate) / processors
}

async function receipts(count: number, rounds: number): Promise<void> {
  const taker = await open()
  // Code that was not run often yet is slower by a few times.
  await perCpuSecond(taker, kib, Math.ceil(count / 3))
  const [ours, theirs, alone]: [number[], number[], number[]] = [[], [], []]
  for (let round = 0; round < rounds; round += 1) {
    alone.push(rsaPerSecond(1))
    theirs.push(rsaPerSecond(availableParallelism()))
    ours.push(await perCpuSecond(taker, kib, Math.ceil(count / 4)))
  }
  const [a, b, one] = [median(ours), median(theirs), median(alone)]
  say(
    `with receipts, 1 KiB: ${short(a)} per CPU second; openssl signs ${short(b)} on all processors at once, as we do: ` +
      `${short(a / b)} of it (wanted: 0.85); ${short(one)} on one while the others rest: ${short(a / one)} of it`,
  )
  await taker.stop()
}

/** Bytes a second that the digests of an item allow: SHA-384 for its signature, SHA-256 of the payload. */
function digestRate(): number {
  const piece = Buffer.alloc(4 * mib, 'x')
  const begin = process.cpuUsage()
  for (let turn = 0; turn < 32; turn += 1)
    for (const name of ['sha384', 'sha256']) createHash(name).update(piece).digest()
  const { user, system } = process.cpuUsage(begin)
  return (32 * piece.length * 1e6) / (user + system)
}

async function long(bytes: number): Promise<void> {
  const taker = await open({ sandbox: false })
  await uploads(taker, { bytes: kib, count: 50, uploaders: 4 })
  await pause(2000)
  const before = residentMb(taker.pid).own
  let most = before
  const watch = systemClock.every(50, () => {
    most = Math.max(most, residentMb(taker.pid).own)
  })
  const cpu = new Stopwatch(taker.pid)
  const seconds = await large(taker, bytes)
  const spent = cpu.seconds()
  watch.cancel()
  const limit = digestRate() / mib
  const size = bytes / mib
  say(
    `${size} MiB item: ${short(size / seconds)} MiB/s, ${short(size / spent)} MiB per CPU second; its digests alone ` +
      `${short(limit)}: ${short(size / spent / limit)} of it (wanted: 0.6); ${short(most - before)} MiB more memory (wanted: 64)`,
  )
  await taker.stop()
}

async function halfLoad(seconds: number): Promise<void> {
  const taker = await open()
  const full = await uploads(taker, { bytes: kib, count: 1500, uploaders: 32 })
  const capacity = full.latenciesMs.length / full.seconds
  const perSecond = capacity / 2
  const done = await paced(taker, { bytes: kib, count: Math.ceil(perSecond * seconds), perSecond })
  const p99 = quantile(done.latenciesMs, 0.99)
  const signature = 1000 / rsaPerSecond(1)
  say(
    `half load (${short(perSecond)} of ${short(capacity)} a second): p50 ${short(quantile(done.latenciesMs, 0.5))} ms, ` +
      `p99 ${short(p99)} ms, ${short(p99 / signature)} signatures of ${short(signature)} ms (wanted: 4)`,
  )
  await taker.stop()
}

async function crowd(): Promise<void> {
  const taker = await open()
  await uploads(taker, { bytes: kib, count: 200, uploaders: 8 })
  const done = await uploads(taker, { bytes: kib, count: 4000, uploaders: 400 })
  const p99 = quantile(done.latenciesMs, 0.99)
  say(
    `400 uploaders: ${refusedOf(done, taker.status)} of ${done.latenciesMs.length} refused, p50 ` +
      `${short(quantile(done.latenciesMs, 0.5))} ms, p99 ${short(p99)} ms (wanted: 2000)`,
  )
  await taker.stop()
}

async function permanent(count: number): Promise<void> {
  const key = 'the-key-of-the-intake-bench'
  const taker = await open({
    unsigned: true,
    sandbox: false,
    more: { DEVNET_BLOCK_MS: '500', UPLOAD_BUNDLE_WAIT_SECONDS: '1', ADMIN_API_KEY: key },
  })
  const memory: number[] = []
  const watch = systemClock.every(250, () => {
    memory.push(residentMb(taker.pid).own)
  })
  const cpu = new Stopwatch(taker.pid)
  const begin = systemClock.monotonic()
  const step = 2000
  for (let at = 0; at < count; at += step)
    await uploads(taker, { bytes: kib, count: Math.min(step, count - at), uploaders: 32 })
  const accepted = (systemClock.monotonic() - begin) / 1000
  const [acceptedCpu, first] = [cpu.seconds(), memory.length]
  const headers = { authorization: `Bearer ${key}` }
  for (let isDone = false; !isDone; ) {
    await pause(500)
    const listed = await fetch(`${taker.urls.upload}/admin/uploads`, { headers })
    const { items, bundles } = (await listed.json()) as {
      readonly items: { readonly waiting: number }
      readonly bundles: readonly { readonly state: string }[]
    }
    isDone = items.waiting === 0 && bundles.every(({ state }) => state === 'permanent')
  }
  watch.cancel()
  const all = (systemClock.monotonic() - begin) / 1000
  say(
    `${count} items of 1 KiB: accepted in ${short(accepted)} s (${short(acceptedCpu)} s of CPU), permanent ` +
      `after ${short(all)} s ` +
      `(${short(cpu.seconds())} s of CPU); memory ${short(median(memory.slice(0, first)))} MiB at first, ` +
      `${short(Math.max(...memory))} at most, ${short(memory.at(-1) ?? 0)} in the end`,
  )
  await taker.stop()
}

/**
 * Reads of one hot item a second, by the load maker: a client on the thread that also uploads would be slowed down by its own
 * uploads, and not by the program.
 */
async function readsFor(url: string, seconds: number): Promise<number> {
  const { port, pathname } = new URL(url)
  const target = { path: pathname, sizeBytes: kib }
  const load = await makeLoad({ targets: [target] }, { port: Number(port), seconds, connections: 8 })
  return load.answered / load.seconds
}

async function reads(seconds: number): Promise<void> {
  const taker = await open({ services: 'gateway,upload', unsigned: false })
  const { id } = await accepted(taker)
  const url = `${taker.urls.gateway}/raw/${id}`
  await readsFor(url, 2)
  const before = await readsFor(url, seconds)
  let isOver = false
  const intake = async (): Promise<number> => {
    let count = 0
    while (!isOver)
      count += (await uploads(taker, { bytes: kib, count: 100, uploaders: 16 })).latenciesMs.length
    return count
  }
  const taking = intake()
  const beside = await readsFor(url, seconds)
  isOver = true
  const taken = (await taking) / seconds
  const alone = (before + (await readsFor(url, seconds))) / 2
  say(
    `hot reads: ${short(alone)} a second alone, ${short(beside)} beside ${short(taken)} uploads a second: ` +
      `${short(beside / alone)} (wanted: 0.8; the load itself takes processors here)`,
  )
  await taker.stop()
}

async function accepted(taker: Taker): Promise<{ readonly id: string }> {
  const { itemOf } = await import('./intake-load.js')
  const answer = await fetch(taker.url, { method: 'POST', body: itemOf(kib, -1) })
  return (await answer.json()) as { id: string }
}

async function main(): Promise<void> {
  const text = { type: 'string' } as const
  const flag = { type: 'boolean' } as const
  const { values } = parseArgs({
    options: {
      count: text,
      rounds: text,
      items: text,
      mib: text,
      seconds: text,
      only: text,
      full: flag,
      help: flag,
    },
  })
  if (values.help === true) return say(help)
  const only = values.only?.split(',')
  const isWanted = (name: string): boolean => only === undefined || only.includes(name)
  const number = (given: string | undefined, usual: number): number => Number(given ?? usual)
  const [count, rounds, seconds] = [
    number(values.count, 6000),
    number(values.rounds, 3),
    number(values.seconds, 8),
  ]
  say(`load of this machine: ${loadavg().map(short).join(' ')}`)
  if (isWanted('small')) await small(count, rounds)
  if (isWanted('receipts')) await receipts(count, rounds)
  if (isWanted('large')) await long(number(values.mib, 1024) * mib)
  if (isWanted('paced')) await halfLoad(seconds)
  if (isWanted('crowd')) await crowd()
  if (isWanted('permanent')) await permanent(values.full === true ? 100_000 : number(values.items, 10_000))
  if (isWanted('reads')) await reads(seconds)
}

await main()
