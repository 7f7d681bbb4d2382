import { once } from 'node:events'
import { connect, type TLSSocket } from 'node:tls'
import { pause } from '../../src/actor/clock.js'
import { residentMb } from '../kit/usage.js'
import { makeLoad } from '../load/load.js'
import type { CaseWords, Metrics, Row } from '../report/results.js'
import { type Candidate, stopAll } from '../rivals/candidate.js'
import { startTls } from '../rivals/tls-servers.js'
import { serveWide, wholeOf } from './hot.js'
import { type Group, idle, interleaved, loadOn, type Order, planOf, runCase } from './run.js'

const idleWords: CaseWords = {
  name: 'TLS: idle connections',
  group: 'TLS clients',
  about: 'many connections, each with one answer behind it, then idle: the memory that each takes',
  cost: 'ownBytesEach',
  bar: 1,
}

const floodWords: CaseWords = {
  name: 'TLS: beside a flood of handshakes',
  group: 'TLS clients',
  about:
    'small contents by Zipf 0.9 at a fixed rate while one client shakes hands as fast as it can: their p99',
  cost: 'openP99Us',
  bar: 1,
  most: { slowdown: 2 },
}

/** Opens a connection from an address of its own, because servers bound what one client may hold, and asks once. */
async function visitor(port: number, path: string, at: number): Promise<TLSSocket> {
  const localAddress = `127.${1 + (at % 250)}.${1 + (Math.floor(at / 250) % 250)}.1`
  const of = { port, host: '127.0.0.1', localAddress, servername: 'localhost', rejectUnauthorized: false }
  const socket = connect(of)
  await once(socket, 'secureConnect')
  socket.write(`HEAD ${path} HTTP/1.1\r\nHost: localhost\r\n\r\n`)
  await once(socket, 'data')
  return socket
}

/**
 * Bytes of own memory for each of `count` idle connections more. Those of earlier rounds stay open: otherwise the memory that
 * they gave back would be used again, and each would seem to take nothing.
 */
async function idleBytes(
  target: Candidate,
  path: string,
  count: number,
  open: TLSSocket[],
): Promise<Metrics> {
  const before = residentMb(target.pid).own
  for (let at = 0; at < count; at += 1) open.push(await visitor(target.port, path, open.length))
  await idle(target)
  return { ownBytesEach: ((residentMb(target.pid).own - before) * 2 ** 20) / count }
}

async function besideFlood(
  target: Candidate,
  plan: ReturnType<typeof planOf>,
  { seconds, scale }: Order,
  round: number,
): Promise<Metrics> {
  const rate = 500 * scale.rate
  const manner = {
    seconds,
    order: 'zipf:0.9',
    connections: 32,
    rate,
    seed: round + 1,
    isPrompt: true,
  } as const
  const alone = (await loadOn(target, plan, manner)).outcome
  const flood = { port: target.port, tls: '1.3', shake: true, connections: 64, meek: true } as const
  const [beside, shaken] = await Promise.all([
    loadOn(target, plan, manner),
    makeLoad(plan, { ...flood, seconds: seconds + 0.2, lateMs: 60_000 }),
  ])
  return {
    openPerSecond: rate,
    openP50Us: beside.outcome.p50Us,
    openP99Us: beside.outcome.p99Us,
    slowdown: beside.outcome.p99Us / alone.p99Us,
    handshakesPerSecond: shaken.answered / shaken.seconds,
  }
}

async function runWanted(order: Order, wanted: readonly CaseWords[]): Promise<void> {
  const served = serveWide(order.scale)
  const targets = served.corpus.contents.map(wholeOf)
  const path = targets[0]?.path ?? '/'
  const started = await startTls(served, order.threads)
  const plan = planOf(targets)
  const open: TLSSocket[] = []
  try {
    for (const each of started)
      await loadOn(each, plan, { seconds: 600, connections: 16, order: 'once', lateMs: 60_000 })
    const count = order.scale.slowReaders
    const run = (words: CaseWords, measure: (target: Candidate, round: number) => Promise<Metrics>) =>
      wanted.some(({ name }) => name === words.name)
        ? runCase(order, words, (): Promise<Row[]> => interleaved(started, order, words.cost, measure))
        : undefined
    await run({ ...idleWords, notes: [`${count} connections`] }, (target) =>
      idleBytes(target, path, count, open),
    )
    for (const socket of open) socket.destroy()
    await pause(200)
    await run(floodWords, (target, round) => besideFlood(target, plan, order, round))
  } finally {
    for (const socket of open) socket.destroy()
    plan.drop()
    await stopAll(started)
  }
}

/** What clients of TLS cost beside their requests. */
export const tlsClientsGroup: Group = { name: 'TLS clients', cases: [idleWords, floodWords], run: runWanted }
