import { once } from 'node:events'
import { rmSync } from 'node:fs'
import { Agent, get } from 'node:https'
import { connect as connectPlain } from 'node:net'
import { connect, type TLSSocket } from 'node:tls'
import { parseArgs } from 'node:util'
import { pause, systemClock } from '../../src/actor/clock.js'
import { start } from '../kit/child.js'
import { emptyFolder, sluiceWords } from '../kit/folders.js'
import { quantile } from '../kit/numbers.js'
import { say } from '../kit/say.js'
import { residentMb } from '../kit/usage.js'

const help = `idle-connections: what the program takes for many idle connections of HTTPS, and whether it answers others as before

  --count N     connections, each with one answer behind it (10,000). The program holds a third of its descriptors (ulimit -n)
                as connections, and closes idle ones sooner where three quarters of these are open
  --requests N  over one further connection, before and beside them (5,000)
`

/** One address may not begin many connections in a second: loopback has many addresses. */
const fromEach = 200
const atOnce = 32

async function visitor(port: number, at: number): Promise<TLSSocket> {
  const localAddress = `127.0.${1 + Math.floor(at / fromEach / 250)}.${1 + (Math.floor(at / fromEach) % 250)}`
  const below = connectPlain({ port, host: '127.0.0.1', localAddress })
  const socket = connect({ socket: below, servername: 'localhost', rejectUnauthorized: false })
  await once(socket, 'secureConnect')
  socket.write('HEAD /gateway/info HTTP/1.1\r\nHost: localhost\r\n\r\n')
  const [head] = (await once(socket, 'data')) as [Buffer]
  if (!head.toString('latin1').startsWith('HTTP/1.1 200'))
    throw new Error(`answered ${head.toString('latin1', 0, 20)}`)
  // The program may close it, where it has too many.
  socket.on('error', () => socket.destroy()).resume()
  return socket
}

/** Microseconds of each request for the same content, one after another. */
async function asking(port: number, path: string, count: number): Promise<readonly number[]> {
  const agent = new Agent({ keepAlive: true, maxSockets: 1, rejectUnauthorized: false })
  const times: number[] = []
  for (let at = 0; at < count; at += 1) {
    const beganMs = systemClock.monotonic()
    await new Promise<void>((resolve, reject) => {
      get({ host: '127.0.0.1', port, path, agent, servername: 'localhost' }, (answer) => {
        if (answer.statusCode !== 200) reject(new Error(`answered ${answer.statusCode}`))
        answer.resume().once('end', resolve)
      }).once('error', reject)
    })
    times.push((systemClock.monotonic() - beganMs) * 1000)
  }
  agent.destroy()
  return times
}

async function measure(count: number, requests: number): Promise<void> {
  const folder = emptyFolder('idle-connections')
  const program = await start(process.execPath, [...sluiceWords, 'start'], {
    shape: /"https":"https:\/\/[^"]*:(\d+)".*"page":"([\w-]{43})"/,
    env: {
      DATA_PATH: folder,
      PORT: '0',
      DEVNET_PORT: '0',
      EDGE_THREADS: '2',
      TLS_PORT: '0',
      TLS_SELF_SIGNED: 'true',
    },
  })
  const [, port = '', page = ''] = program.matched ?? []
  const sockets: TLSSocket[] = []
  const tell = async (what: string): Promise<number> => {
    const times = await asking(Number(port), `/raw/${page}`, requests)
    const { own } = residentMb(program.pid)
    const [p50, p99] = [quantile(times, 0.5), quantile(times, 0.99)].map(Math.round)
    say(`${what}: ${own.toFixed(0)} MiB of its own; answers p50 ${p50} us, p99 ${p99} us`)
    return own
  }
  try {
    await pause(5000)
    const before = await tell('alone')
    const beganMs = systemClock.monotonic()
    for (let at = 0; at < count; at += atOnce)
      sockets.push(
        ...(await Promise.all(
          Array.from({ length: Math.min(atOnce, count - at) }, (_, more) => visitor(Number(port), at + more)),
        )),
      )
    say(`${count} connections within ${((systemClock.monotonic() - beganMs) / 1000).toFixed(1)} s`)
    await pause(5000)
    const open = (): number => sockets.filter((socket) => !socket.destroyed && socket.readable).length
    const own = await tell(`beside ${open()} that are open`)
    say(
      `${(((own - before) * 2 ** 20) / open() / 1000).toFixed(1)} KB each; the program has closed ${count - open()}`,
    )
  } finally {
    for (const socket of sockets) socket.destroy()
    await program.stop()
    rmSync(folder, { recursive: true, force: true })
  }
}

const { values } = parseArgs({
  options: { help: { type: 'boolean' }, count: { type: 'string' }, requests: { type: 'string' } },
})
if (values.help === true) say(help)
else await measure(Number(values.count ?? 10_000), Number(values.requests ?? 5000))
