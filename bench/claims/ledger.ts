import { execFileSync } from 'node:child_process'
import { availableParallelism } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { systemClock } from '../../src/actor/clock.js'
import { EmbeddedLedger } from '../../src/ledger/embedded.js'
import { isRejected, type MoneyLedger } from '../../src/ledger/ledger-port.js'
import { PostgresLedger } from '../../src/ledger/postgres.js'
import type { MoveOrder } from '../../src/ledger/transfer.js'
import { postgresFolder, startPostgres } from '../../test/engines/postgres-server.js'
import { scratch } from '../../test/scratch.js'
import { median } from '../kit/numbers.js'
import { say } from '../kit/say.js'

const help = `ledger: what a reserve and its settlement cost, durable

  --pairs N     of each run (20000)
  --clients N   pairs under way (1000)
  --rounds N    (3)
  --rate N      of pairs a second, for three seconds, in the run that shows how long one takes (10000)
  --seconds N   of pgbench a round (5)
  --only NAMES  embedded, postgres, history; and large, which is asked for by name only
  --transfers N of large (10000000)
`

/** Connections of pgbench; so many pairs are under way when it is compared with. */
const pgbenchClients = 32

interface Measured {
  readonly perSecond: number
  readonly p99Ms: number
  readonly cpuMicroseconds: number
}

/** The round that is not counted. */
const warmUp = -1

const facts = { reason: 'upload', reference: 'bench' }

async function topUp(ledger: MoneyLedger, round: number): Promise<void> {
  await ledger.commit({
    transfers: Array.from({ length: 1000 }, (_, at) => ({
      id: `top:${round}:${at}`,
      kind: 'posted',
      debit: 'source:bench',
      credit: `wallet:${at}`,
      amount: 10n ** 15n,
      ...facts,
    })),
  })
}

/** Reserves and settles; resolves when both are durable. */
async function pair(ledger: MoneyLedger, round: number, at: number): Promise<void> {
  const name = `${round}:${at}`
  const record = {
    kind: 'reservation',
    key: name,
    value: `{"address":"${at % 1000}","winc":"1000"}`,
    expected: 0,
  }
  const held = await ledger.commit({
    transfers: [
      {
        id: `r:${name}`,
        kind: 'pending',
        debit: `wallet:${at % 1000}`,
        credit: 'revenue',
        amount: 1000n,
        ...facts,
      },
    ],
    records: [record],
  })
  const spent = await ledger.commit({
    transfers: [{ id: `s:${name}`, kind: 'post', pending: `r:${name}`, ...facts }],
  })
  if (isRejected(held) || isRejected(spent)) throw new Error('a pair was refused')
}

/** Each pair by one of `clients` at a time, over 1000 wallets. */
async function pairs(ledger: MoneyLedger, count: number, clients: number, round: number): Promise<Measured> {
  await topUp(ledger, round)
  const times: number[] = []
  let next = 0
  const client = async (): Promise<void> => {
    for (let at = next++; at < count; at = next++) {
      const begin = systemClock.monotonic()
      await pair(ledger, round, at)
      times.push(systemClock.monotonic() - begin)
    }
  }
  const done = measuring(times)
  await Promise.all(Array.from({ length: clients }, client))
  return done()
}

/** The same, but pairs begin at a rate, whether those before have ended or not; a pair's time counts from when it was due. */
async function paced(
  ledger: MoneyLedger,
  count: number,
  perSecond: number,
  round: number,
): Promise<Measured> {
  await topUp(ledger, round)
  const times: number[] = []
  const done = measuring(times)
  const begin = systemClock.monotonic()
  const running: Promise<void>[] = []
  while (running.length < count) {
    const due = Math.min(count, ((systemClock.monotonic() - begin) * perSecond) / 1000)
    for (let at = running.length; at < due; at += 1) {
      const dueAt = begin + (at * 1000) / perSecond
      running.push(pair(ledger, round, at).then(() => void times.push(systemClock.monotonic() - dueAt)))
    }
    await new Promise<void>((resolve) => setTimeout(resolve, 1))
  }
  await Promise.all(running)
  return done()
}

function measuring(times: number[]): () => Measured {
  const cpu = process.cpuUsage()
  const begin = systemClock.monotonic()
  return () => {
    const ms = systemClock.monotonic() - begin
    const { user, system } = process.cpuUsage(cpu)
    times.sort((one, two) => one - two)
    return {
      perSecond: (times.length / ms) * 1000,
      p99Ms: times[Math.floor(times.length * 0.99)] ?? 0,
      cpuMicroseconds: (user + system) / times.length,
    }
  }
}

function show(name: string, measured: readonly Measured[]): number {
  const perSecond = median(measured.map((one) => one.perSecond))
  const p99 = median(measured.map((one) => one.p99Ms))
  const cpu = median(measured.map((one) => one.cpuMicroseconds))
  say(
    `${name.padEnd(34)} ${Math.round(perSecond)} pairs/s, p99 ${p99.toFixed(1)} ms, ${cpu.toFixed(1)} us of processor a pair`,
  )
  return perSecond
}

async function embedded(count: number, clients: number, rounds: number, rate: number): Promise<void> {
  const ledger = new EmbeddedLedger({ path: join(scratch('bench-ledger'), 'ledger'), clock: systemClock })
  // The first pairs of a process are run by the interpreter, and cost twice as much as those of a service that runs for long.
  await pairs(ledger, count, clients, warmUp)
  const runs: Measured[] = []
  for (let round = 0; round < rounds; round += 1) runs.push(await pairs(ledger, count, clients, round))
  show(`embedded, ${clients} under way`, runs)
  show(`embedded, ${rate} a second wanted`, [await paced(ledger, rate * 3, rate, rounds + 1)])
  const few = [await pairs(ledger, Math.ceil(count / 20), 16, rounds)]
  show('embedded, 16 under way', few)
  const { faults, transfers } = await ledger.check()
  say(
    `${'check'.padEnd(34)} ${transfers} transfers, ${faults.length === 0 ? 'everything adds up' : faults.join('; ')}`,
  )
  await ledger.close()
  if (faults.length > 0) process.exitCode = 1
}

async function onPostgres(count: number, clients: number, rounds: number, seconds: number): Promise<void> {
  if (postgresFolder === undefined) {
    say('no PostgreSQL here')
    return
  }
  const server = await startPostgres(true)
  const ledger = await PostgresLedger.open({ url: await server.database('bench'), clock: systemClock })
  const url = await server.database('pgbench')
  const pgbench = (words: readonly string[]): string =>
    execFileSync('pgbench', [...words, url], { stdio: ['ignore', 'pipe', 'ignore'] }).toString()
  pgbench(['-i', '-q', '-s', '10'])
  const many: Measured[] = []
  const few: Measured[] = []
  const theirs: number[] = []
  await pairs(ledger, Math.ceil(count / 4), clients, warmUp)
  for (let round = 0; round < rounds; round += 1) {
    many.push(await pairs(ledger, count, clients, round))
    few.push(await pairs(ledger, Math.ceil(count / 4), pgbenchClients, rounds + round))
    const threads = String(availableParallelism())
    const printed = pgbench(['-N', '-c', String(pgbenchClients), '-j', threads, '-T', String(seconds)])
    theirs.push(Number(/tps = ([\d.]+)/.exec(printed)?.[1] ?? 0))
  }
  const tps = median(theirs)
  say(`${`pgbench -N, ${pgbenchClients} clients`.padEnd(34)} ${Math.round(tps)} a second`)
  for (const [under, measured] of [
    [pgbenchClients, few],
    [clients, many],
  ] as const) {
    const orders = 2 * show(`PostgreSQL, ${under} under way`, measured)
    say(`${''.padEnd(34)} ${(orders / tps).toFixed(2)} orders for each transaction of pgbench`)
  }
  await ledger.close()
  await server.stop()
}

/** A page of a history and a balance must not depend on how many transfers there are. */
async function history(): Promise<void> {
  const ledger = new EmbeddedLedger({ path: join(scratch('bench-history'), 'ledger'), clock: systemClock })
  for (const size of [1000, 10_000, 100_000]) {
    const facts = {
      debit: 'source:bench',
      credit: 'wallet:one',
      amount: 1n,
      reason: 'payment',
      reference: 'r',
    }
    for (let at = 0; at < size; at += 500) {
      const part = Array.from(
        { length: 500 },
        (_, one) => ({ id: `${size}:${at + one}`, kind: 'posted', ...facts }) as const,
      )
      await ledger.commit({ transfers: part })
    }
    const begin = systemClock.monotonic()
    for (let at = 0; at < 200; at += 1) {
      await ledger.history('wallet:one', Number.MAX_SAFE_INTEGER, 50)
      await ledger.account('wallet:one')
    }
    const micro = ((systemClock.monotonic() - begin) / 200) * 1000
    say(`${`page of 50 and balance, ${size} more`.padEnd(34)} ${Math.round(micro)} us`)
  }
  await ledger.close()
}

/** A ledger with very many transfers: how long it takes to open, what memory it takes, and to look at one wallet. */
async function large(transfers: number): Promise<void> {
  const path = join(scratch('bench-large'), 'ledger')
  const ledger = new EmbeddedLedger({ path, clock: systemClock })
  // A hundred transfers each, so that a page is always whole.
  const wallets = Math.ceil(transfers / 100)
  const begin = systemClock.monotonic()
  for (let at = 0; at < transfers; at += 1000) {
    const part = Array.from({ length: Math.min(1000, transfers - at) }, (_, one) => ({
      id: `t:${at + one}`,
      kind: 'posted',
      debit: 'source:bench',
      credit: `wallet:${(at + one) % wallets}`,
      amount: 1n,
      reason: 'payment',
      reference: 'r',
    })) as MoveOrder[]
    await ledger.commit({ transfers: part })
  }
  const filledMs = systemClock.monotonic() - begin
  say(`${`${transfers} transfers written`.padEnd(34)} ${Math.round((transfers / filledMs) * 1000)} a second`)
  await ledger.close()
  // What is mapped is the kernel's to give and take.
  const own = (): number => process.memoryUsage().heapUsed + process.memoryUsage().external
  const before = own()
  const opening = systemClock.monotonic()
  const again = new EmbeddedLedger({ path, clock: systemClock })
  const openMs = systemClock.monotonic() - opening
  const times: number[] = []
  for (let at = 0; at < 5000; at += 1) {
    const start = systemClock.monotonic()
    const name = `wallet:${(at * 7919) % wallets}`
    await again.account(name)
    await again.history(name, Number.MAX_SAFE_INTEGER, 50)
    times.push(systemClock.monotonic() - start)
  }
  times.sort((one, two) => one - two)
  const at = (part: number): string => ((times[Math.floor(times.length * part)] ?? 0) * 1000).toFixed(0)
  const mib = (own() - before) / 2 ** 20
  say(`${'opened in'.padEnd(34)} ${openMs.toFixed(1)} ms`)
  say(`${'balance and page of 50, any wallet'.padEnd(34)} median ${at(0.5)} us, p99 ${at(0.99)} us`)
  say(`${'memory of its own'.padEnd(34)} ${mib.toFixed(0)} MiB more`)
  await again.close()
}

const { values } = parseArgs({
  options: {
    help: { type: 'boolean' },
    pairs: { type: 'string', default: '20000' },
    clients: { type: 'string', default: '1000' },
    rounds: { type: 'string', default: '3' },
    rate: { type: 'string', default: '10000' },
    seconds: { type: 'string', default: '5' },
    only: { type: 'string', default: 'embedded,postgres,history' },
    transfers: { type: 'string', default: '10000000' },
  },
})
if (values.help === true) process.stdout.write(help)
else {
  const [count, clients, rounds] = [Number(values.pairs), Number(values.clients), Number(values.rounds)]
  const only = values.only.split(',')
  if (only.includes('embedded')) await embedded(count, clients, rounds, Number(values.rate))
  if (only.includes('postgres')) await onPostgres(count, clients, rounds, Number(values.seconds))
  if (only.includes('history')) await history()
  if (only.includes('large')) await large(Number(values.transfers))
}
