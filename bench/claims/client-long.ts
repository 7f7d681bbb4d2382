import { Agent, request } from 'node:http'
import { systemClock } from '../../src/actor/clock.js'
import type { PayloadSource } from '../../src/client/payload.js'
import { prepareItem } from '../../src/client/prepare.js'
import { memoryStore } from '../../src/client/resume-store.js'
import { type ClientSigner, signerOfEd25519 } from '../../src/client/signer.js'
import { short } from '../kit/numbers.js'
import { say, table } from '../kit/say.js'
import { clientOf, type Services } from './client-services.js'

const mib = 1024 * 1024
const partBytes = 16 * mib
const atOnce = 5

/** Content that is made as it is read, and is the same each time. */
export function made(size: number): PayloadSource {
  const piece = new Uint8Array(4 * mib).map((_, at) => at * 31)
  return {
    size,
    async *open(from) {
      for (let at = from; at < size; at += piece.length - (at % piece.length)) {
        const start = at % piece.length
        yield piece.subarray(start, Math.min(piece.length, start + size - at))
      }
    },
  }
}

const seconds = (startMs: number): number => (systemClock.monotonic() - startMs) / 1000

/** Most memory beyond that of the start while something runs, in MiB. */
async function memoryOf(work: () => Promise<void>): Promise<number> {
  global.gc?.()
  const before = process.memoryUsage().rss
  let most = before
  const watch = systemClock.every(50, () => {
    most = Math.max(most, process.memoryUsage().rss)
  })
  await work()
  watch.cancel()
  return (most - before) / mib
}

function post(agent: Agent, url: string, body: Uint8Array): Promise<unknown> {
  return new Promise((resolve, reject) => {
    const headers = { 'content-type': 'application/octet-stream', 'x-chunking-version': '2' }
    const exchange = request(url, { agent, method: body.length > 0 ? 'POST' : 'GET', headers }, (answer) => {
      let text = ''
      answer.setEncoding('utf8').on('data', (piece: string) => {
        text += piece
      })
      answer.on('end', () => {
        if ((answer.statusCode ?? 500) < 300) resolve(text === '' ? undefined : JSON.parse(text))
        else reject(new Error(`${url}: ${answer.statusCode} ${text}`))
      })
    })
    exchange.on('error', reject)
    exchange.end(body)
  })
}

/** Seconds until the service has all parts of a signed item, sent by sockets without reading, copying or hashing anything. */
async function bare(services: Services, signer: ClientSigner, size: number): Promise<number> {
  const item = await prepareItem(made(size), {}, signer, memoryStore(), () => undefined)
  const base = `${services.upload}/v1/chunks/ethereum`
  const agent = new Agent({ keepAlive: true, maxSockets: atOnce })
  const { id } = (await post(agent, `${base}/-1/-1?chunkSize=${partBytes}`, new Uint8Array(0))) as {
    id: string
  }
  const part = new Uint8Array(partBytes).fill(7)
  const startMs = systemClock.monotonic()
  const offsets = Array.from(
    { length: Math.ceil(item.source.size / partBytes) },
    (_, at) => at * partBytes,
  ).values()
  const send = async (): Promise<void> => {
    for (const offset of offsets)
      await post(
        agent,
        `${base}/${id}/${offset}`,
        part.subarray(0, Math.min(partBytes, item.source.size - offset)),
      )
  }
  await Promise.all(Array.from({ length: atOnce }, send))
  const took = seconds(startMs)
  agent.destroy()
  return took
}

/** A long upload by the client, beside what the service takes of who only sends. */
export async function longUpload(services: Services, size: number): Promise<void> {
  const signer = await signerOfEd25519(crypto.getRandomValues(new Uint8Array(32)))
  const first = await bare(services, signer, size)
  const [startMs, at] = [systemClock.monotonic(), { signed: 0, sent: 0 }]
  let took = 0
  const grown = await memoryOf(async () => {
    const task = clientOf(services, signer).upload({
      data: made(size),
      chunkByteCount: partBytes,
      maxChunkConcurrency: atOnce,
    })
    for await (const event of task) {
      if (event.type === 'signed') at.signed = seconds(startMs)
      if (event.type === 'upload' && event.processedBytes === event.totalBytes && at.sent === 0)
        at.sent = seconds(startMs)
    }
    took = seconds(startMs)
  })
  // Whoever comes later meets a disk that still writes what came before.
  const limit = (first + (await bare(services, signer, size))) / 2
  const rate = (time: number): string[] => [`${time.toFixed(1)} s`, short(size / mib / time)]
  const rows = [
    ['parts by who only sends, before and after', ...rate(limit)],
    ['ours: hashed and signed', ...rate(at.signed)],
    ['ours: parts read again, compared and sent', ...rate(at.sent - at.signed)],
    ['the service puts them together and verifies', ...rate(took - at.sent)],
    ['ours in all', ...rate(took)],
  ]
  for (const line of table([`upload of ${size / mib} MiB`, 'time', 'MiB/s'], rows)) say(line)
  say(`sending beside who only sends: ${short(limit / (at.sent - at.signed))}x (wanted: 0.8x)`)
  say(`memory of the client: ${short(grown)} MiB more at most`)
}
