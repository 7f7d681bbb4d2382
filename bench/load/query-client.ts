import { once } from 'node:events'
import { Agent, type IncomingMessage, request } from 'node:http'
import { setPriority } from 'node:os'
import { text } from 'node:stream/consumers'
import { say } from '../kit/say.js'

/**
 * A client that sends one query (standard input) again and again over some connections, until SIGTERM; then it says what the
 * answers were. A real one has a machine of its own, so that it gives way to all others here.
 *
 *     node query-client.js PORT CONNECTIONS < body
 */
setPriority(19)
const [port, connections] = process.argv.slice(2).map(Number)
const body = await text(process.stdin)
const agent = new Agent({ keepAlive: true, maxSockets: connections, localAddress: '127.0.0.2' })
const statuses = new Map<number, number>()
let first: string | undefined
let isOver = false
process.once('SIGTERM', () => {
  isOver = true
})

/** What an answer is, in a few words. */
function whatOf(answer: string): string {
  const codes = new Set([...answer.matchAll(/"code":"(\w+)"/g)].map(([, code]) => code))
  return [`${answer.length} bytes`, ...(answer.includes('"data":{') ? ['data'] : []), ...codes].join(' ')
}

async function ask(): Promise<void> {
  const asking = request({
    port,
    agent,
    host: '127.0.0.1',
    path: '/graphql',
    method: 'POST',
    headers: { 'Content-Type': 'application/json', 'Content-Length': Buffer.byteLength(body) },
  })
  asking.end(body)
  const [response] = (await once(asking, 'response')) as [IncomingMessage]
  const pieces: Buffer[] = []
  response.on('data', (piece: Buffer) => void (first === undefined && pieces.push(piece)))
  await once(response, 'end')
  first ??= whatOf(Buffer.concat(pieces).toString())
  const { statusCode = 0 } = response
  statuses.set(statusCode, (statuses.get(statusCode) ?? 0) + 1)
}

async function loop(): Promise<void> {
  while (!isOver) await ask()
}

await Promise.all(Array.from({ length: connections ?? 1 }, loop))
agent.destroy()
say(`${[...statuses].map(([status, count]) => `${count} x ${status}`).join(', ')}: ${first}`)
