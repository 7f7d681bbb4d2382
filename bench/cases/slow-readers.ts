import { connect, type Socket } from 'node:net'
import { pause, systemClock } from '../../src/actor/clock.js'
import { corpusOf } from '../corpus/corpus.js'
import { residentMb } from '../kit/usage.js'
import type { CaseWords, Metrics, Row } from '../report/results.js'
import { type Candidate, stopAll } from '../rivals/candidate.js'
import { fillWith, offline, startGateway } from '../rivals/gateway.js'
import { fileServer } from '../rivals/nginx.js'
import { type Group, interleaved, type Order, runCase } from './run.js'

const bytesPerSecond = 1024

const words: CaseWords = {
  name: 'slow readers',
  group: 'slow readers',
  about:
    'many clients that take 1 KB/s of one large content: the memory they cost, and the longest time of a request beside them',
  cost: 'probeUs',
}

/** Opens a reader that takes `bytesPerSecond` and no more. */
function reader(port: number, path: string, onClose: () => void): Socket {
  const socket = connect({ port, host: '127.0.0.1' })
  socket.on('error', () => socket.destroy())
  socket.on('close', onClose)
  socket.pause()
  socket.write(`GET ${path} HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n`)
  return socket
}

async function slowReaders(
  target: Candidate,
  path: string,
  count: number,
  seconds: number,
): Promise<Metrics> {
  const before = residentMb(target.pid).own
  let left = 0
  let isOver = false
  const leave = (): void => {
    if (!isOver) left += 1
  }
  const sockets = Array.from({ length: count }, () => reader(target.port, path, leave))
  let [peak, probeMs] = [before, 0]
  for (let second = 0; second < seconds; second += 1) {
    for (const socket of sockets) socket.read(bytesPerSecond)
    const started = systemClock.monotonic()
    const answer = await fetch(`http://127.0.0.1:${target.port}${path}`, { headers: { range: 'bytes=0-99' } })
    const got = await answer.arrayBuffer()
    if (answer.status !== 206 || got.byteLength !== 100)
      throw new Error(`${target.name}: ${answer.status} for a range`)
    probeMs = Math.max(probeMs, systemClock.monotonic() - started)
    peak = Math.max(peak, residentMb(target.pid).own)
    await pause(1000)
  }
  isOver = true
  for (const socket of sockets) socket.destroy()
  if (left > 0) throw new Error(`${target.name}: ${left} of ${count} readers were closed before their end`)
  return { grownMb: peak - before, probeUs: probeMs * 1000 }
}

const secondsOf = ({ judges }: Order['scale']): number => (judges ? 20 : 2)

async function measure({ scale, rounds, threads, profiles }: Order): Promise<readonly Row[]> {
  const sizes = { law: 'listed', sizesBytes: [100 * 2 ** 20] } as const
  const corpus = corpusOf({ name: 'slow', count: 1, sizes, unpacked: true })
  const path = `/${corpus.contents[0]?.id}`
  const started: Candidate[] = []
  try {
    const fill = (seeding: Parameters<typeof fillWith>[0]) => fillWith(seeding, corpus)
    started.push(await startGateway({ name: 'sluice', threads, settings: offline, fill }))
    started.push(await fileServer({ files: corpus.filesFolder }, threads, true))
    const seconds = secondsOf(scale)
    return await interleaved(started, { profiles, rounds: Math.min(rounds, 2) }, words.cost, (candidate) =>
      slowReaders(candidate, path, scale.slowReaders, seconds),
    )
  } finally {
    await stopAll(started)
  }
}

export const slowGroup: Group = {
  name: 'slow readers',
  cases: [words],
  run(order) {
    const notes = [`${order.scale.slowReaders} readers, ${secondsOf(order.scale)} s`]
    return runCase(order, { ...words, notes }, () => measure(order))
  },
}
