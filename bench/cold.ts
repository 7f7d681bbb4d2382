import { once } from 'node:events'
import { createServer, get, type ServerResponse } from 'node:http'
import { pause, systemClock } from '../src/actor/clock.js'
import { startGateway } from './candidates.js'
import { residentMb } from './usage.js'

export interface ColdOutcome {
  /** Between the source's first byte and the client's, milliseconds. */
  readonly medianMs: number
  readonly worstMs: number
  readonly ids: number
  readonly streamedMb: number
  /** What the gateway's own memory grew by while it streamed, files apart. */
  readonly grownMb: number
  readonly mbPerSecond: number
}

const smallBytes = 256 * 1024
const piece = Buffer.alloc(256 * 1024, 1)

const idOf = (n: number): string => Buffer.alloc(32, n + 1).toString('base64url')

/** Writes as fast as the gateway takes it. */
async function pour(response: ServerResponse, bytes: number): Promise<void> {
  for (let left = bytes; left > 0 && !response.destroyed; left -= piece.length) {
    if (!response.write(left < piece.length ? piece.subarray(0, left) : piece)) await once(response, 'drain')
  }
  response.end()
}

/** What nobody has yet: how late the first byte is behind the source's, and what a large stream costs. */
export async function coldReads(ids: number, streamBytes: number): Promise<ColdOutcome> {
  const sizes = new Map<string, number>([[idOf(200), streamBytes]])
  for (let n = 0; n < ids; n += 1) sizes.set(idOf(n), smallBytes)
  const begun = new Map<string, number>()
  const source = createServer((request, response) => {
    const id = (request.url ?? '').slice('/raw/'.length)
    const bytes = sizes.get(id)
    if (bytes === undefined) response.writeHead(404).end()
    else {
      response.writeHead(200, { 'content-length': bytes, 'content-type': 'application/octet-stream' })
      begun.set(id, systemClock.monotonic())
      void pour(response, bytes).catch(() => response.destroy()) // the gateway went away: the reader says so
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
  const read = (id: string): Promise<number> =>
    new Promise((resolve, reject) => {
      let first = 0
      get({ port: gateway.port, host: '127.0.0.1', path: `/raw/${id}` }, (answer) => {
        if (answer.statusCode !== 200) reject(new Error(`cold: ${answer.statusCode}`))
        answer.on('data', () => {
          if (first === 0) first = systemClock.monotonic()
        })
        answer.on('error', reject)
        answer.on('end', () => resolve(first))
      }).on('error', reject)
    })
  try {
    const lates: number[] = []
    for (let n = 0; n < ids; n += 1) {
      const first = await read(idOf(n))
      lates.push(first - (begun.get(idOf(n)) ?? 0))
    }
    lates.sort((a, b) => a - b)
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
    await read(idOf(200)).finally(() => {
      over = true
    })
    const seconds = (systemClock.monotonic() - started) / 1000
    await watching
    return {
      medianMs: lates[lates.length >> 1] ?? 0,
      worstMs: lates.at(-1) ?? 0,
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
