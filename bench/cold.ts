import { once } from 'node:events'
import { createServer, get, type ServerResponse } from 'node:http'
import { pause, systemClock } from '../src/actor/clock.js'
import { startGateway } from './candidates.js'
import { cpuSeconds, residentMb } from './usage.js'

export interface ColdOutcome {
  /** Between the source's first byte and the client's, milliseconds; after as many reads again that warmed the program up. */
  readonly medianMs: number
  /** One in twenty is slower. */
  readonly slowMs: number
  readonly worstMs: number
  /** One in ten is quicker: says more than the median where others use the machine. */
  readonly tenthMs: number
  /** The median of the reads that warmed it up. */
  readonly firstMedianMs: number
  /** The median where the client asks the source itself: what the measuring costs. */
  readonly directMs: number
  /** CPU time of the gateway for one such read, all threads. */
  readonly cpuMs: number
  readonly ids: number
  readonly streamedMb: number
  /** What the gateway's own memory grew by while it streamed, files apart. */
  readonly grownMb: number
  readonly mbPerSecond: number
}

const smallBytes = 256 * 1024
const piece = Buffer.alloc(256 * 1024, 1)

const streamed = 9999

function idOf(n: number): string {
  const bytes = Buffer.alloc(32, 1)
  bytes.writeUInt16LE(n)
  return bytes.toString('base64url')
}

function quantile(values: readonly number[], share: number): number {
  return [...values].sort((a, b) => a - b)[Math.floor(values.length * share)] ?? 0
}

/** Writes as fast as the gateway takes it. No two bodies are the same. */
async function pour(response: ServerResponse, id: string, bytes: number): Promise<void> {
  piece.write(id)
  for (let left = bytes; left > 0 && !response.destroyed; left -= piece.length) {
    if (!response.write(left < piece.length ? piece.subarray(0, left) : piece)) await once(response, 'drain')
  }
  response.end()
}

/** The outcome in one line. */
export function coldLine(cold: ColdOutcome): string {
  return (
    `cold: first byte ${cold.medianMs.toFixed(1)} ms behind the source's (a tenth within ${cold.tenthMs.toFixed(1)}, ` +
    `one in twenty above ${cold.slowMs.toFixed(1)}, worst of ${cold.ids}: ${cold.worstMs.toFixed(1)}; ` +
    `before warm: ${cold.firstMedianMs.toFixed(1)}; asked directly: ${cold.directMs.toFixed(1)}; ` +
    `CPU ${cold.cpuMs.toFixed(1)} ms), ${cold.streamedMb} MiB streamed at ${cold.mbPerSecond.toFixed(0)} MB/s ` +
    `for ${cold.grownMb.toFixed(0)} MiB of memory`
  )
}

/** What nobody has yet: how late the first byte is behind the source's, and what a large stream costs. */
export async function coldReads(ids: number, streamBytes: number): Promise<ColdOutcome> {
  const sizes = new Map<string, number>([[idOf(streamed), streamBytes]])
  for (let n = 0; n < 2 * ids; n += 1) sizes.set(idOf(n), smallBytes)
  const begun = new Map<string, number>()
  const source = createServer((request, response) => {
    const id = (request.url ?? '').slice('/raw/'.length)
    const bytes = sizes.get(id)
    if (bytes === undefined) response.writeHead(404).end()
    else {
      response.writeHead(200, { 'content-length': bytes, 'content-type': 'application/octet-stream' })
      begun.set(id, systemClock.monotonic())
      void pour(response, id, bytes).catch(() => response.destroy()) // the gateway went away: the reader says so
    }
  }).listen(0, '127.0.0.1')
  await once(source, 'listening')
  const { port } = source.address() as { port: number }
  const urls = JSON.stringify({ [`http://127.0.0.1:${port}`]: 1 })
  const gateway = await startGateway([], 1, {
    name: 'cold',
    settings: { TRUSTED_GATEWAYS_URLS: urls, DEVNET_BLOCK_MS: '0' },
  })
  /** When the first byte of the body came. */
  const read = (id: string, from: number = gateway.port): Promise<number> =>
    new Promise((resolve, reject) => {
      let first = 0
      get({ port: from, host: '127.0.0.1', path: `/raw/${id}` }, (answer) => {
        if (answer.statusCode !== 200) reject(new Error(`cold: ${answer.statusCode}`))
        answer.on('data', () => {
          if (first === 0) first = systemClock.monotonic()
        })
        answer.on('error', reject)
        answer.on('end', () => resolve(first))
      }).on('error', reject)
    })
  try {
    const late = async (n: number, from?: number): Promise<number> => {
      const first = await read(idOf(n), from)
      return first - (begun.get(idOf(n)) ?? 0)
    }
    const [warming, lates, direct]: [number[], number[], number[]] = [[], [], []]
    for (let n = 0; n < ids; n += 1) warming.push(await late(n))
    const cpuBefore = cpuSeconds(gateway.pid)
    for (let n = ids; n < 2 * ids; n += 1) lates.push(await late(n))
    const cpuMs = ((cpuSeconds(gateway.pid) - cpuBefore) * 1000) / ids
    for (let n = 0; n < 2 * ids; n += 1) direct.push(await late(n, port))
    const before = residentMb(gateway.pid).own
    const started = systemClock.monotonic()
    let peak = before
    let over = false
    const watch = async (): Promise<void> => {
      while (!over) {
        peak = Math.max(peak, residentMb(gateway.pid).own)
        await pause(50)
      }
    }
    const watching = watch()
    await read(idOf(streamed)).finally(() => {
      over = true
    })
    const seconds = (systemClock.monotonic() - started) / 1000
    await watching
    return {
      medianMs: quantile(lates, 0.5),
      tenthMs: quantile(lates, 0.1),
      slowMs: quantile(lates, 0.95),
      worstMs: Math.max(...lates),
      firstMedianMs: quantile(warming, 0.5),
      directMs: quantile(direct.slice(ids), 0.5),
      cpuMs,
      ids,
      streamedMb: streamBytes / 2 ** 20,
      grownMb: peak - before,
      mbPerSecond: streamBytes / 1e6 / seconds,
    }
  } finally {
    await gateway.stop()
    source.closeAllConnections()
    source.close()
  }
}
