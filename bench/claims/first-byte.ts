import { once } from 'node:events'
import { createServer, get, type ServerResponse } from 'node:http'
import { parseArgs } from 'node:util'
import { systemClock } from '../../src/actor/clock.js'
import { quantile } from '../kit/numbers.js'
import { say } from '../kit/say.js'
import { Stopwatch } from '../kit/usage.js'
import { startGateway } from '../rivals/gateway.js'

const help = `first-byte: how late the first byte of what nobody has yet is behind the source's

  --ids N           reads that are measured, after as many that warm it up (200)
  --rounds N        each with a gateway of its own (3)
`

const smallBytes = 256 * 1024
const piece = Buffer.alloc(256 * 1024, 1)

function idOf(n: number): string {
  const bytes = Buffer.alloc(32, 1)
  bytes.writeUInt16LE(n)
  return bytes.toString('base64url')
}

/** Writes as fast as the gateway takes it. No two bodies are the same. */
async function pour(response: ServerResponse, id: string, bytes: number): Promise<void> {
  piece.write(id)
  for (let left = bytes; left > 0 && !response.destroyed; left -= piece.length) {
    if (!response.write(left < piece.length ? piece.subarray(0, left) : piece)) await once(response, 'drain')
  }
  response.end()
}

/** Requests uncached content; returns one line with the results. */
async function coldReads(ids: number): Promise<string> {
  const sizes = new Map<string, number>()
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
  const settings = { TRUSTED_GATEWAYS_URLS: urls, DEVNET_BLOCK_MS: '0' }
  const gateway = await startGateway({ name: 'first byte', settings })
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
    const watch = new Stopwatch(gateway.pid)
    for (let n = ids; n < 2 * ids; n += 1) lates.push(await late(n))
    const cpuMs = (watch.seconds() * 1000) / ids
    for (let n = 0; n < 2 * ids; n += 1) direct.push(await late(n, port))
    const ms = (values: readonly number[], share: number): string => quantile(values, share).toFixed(1)
    return (
      `first byte ${ms(lates, 0.5)} ms behind the source's (a tenth within ${ms(lates, 0.1)}, one in twenty above ` +
      `${ms(lates, 0.95)}, worst of ${ids}: ${ms(lates, 1)}; before warm: ${ms(warming, 0.5)}; asked directly: ` +
      `${ms(direct.slice(ids), 0.5)}; CPU ${cpuMs.toFixed(1)} ms)`
    )
  } finally {
    await gateway.stop()
    source.closeAllConnections()
    source.close()
  }
}

const { values } = parseArgs({
  options: {
    help: { type: 'boolean' },
    ids: { type: 'string', default: '200' },
    rounds: { type: 'string', default: '3' },
  },
})
if (values.help === true) say(help)
else for (let round = 0; round < Number(values.rounds); round += 1) say(await coldReads(Number(values.ids)))
