import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import t from 'tap'
import { servedBy } from '../../native/server/server.js'
import { descriptorLimit, shareDescriptors } from '../../src/main/descriptors.js'
import { eventually } from '../eventually.js'
import { scratch } from '../scratch.js'

const program = fileURLToPath(new URL('../../../bin/sluice.mjs', import.meta.url))
const settings = (edgeThreads: number) => ({
  server: { edgeThreads },
  retrieval: { fetchesMax: 512, chunkReadAhead: 50 },
  usesSwarm: false,
})

t.test('what the program needs comes first, and all of it stays below the limit', async (t) => {
  for (const limit of [256, 1024, 4096, 20_000, 65_536, 1_048_576]) {
    for (const edges of [1, 2, 8]) {
      if (limit / edges < 256) continue
      const { socketsMax, filesMax, sentFilesMax, upstreamMax, fetchesMax } = shareDescriptors(
        settings(edges),
        limit,
      )
      t.ok(
        2 * socketsMax + filesMax * edges + sentFilesMax + upstreamMax + 2 * fetchesMax < limit,
        `${limit}, ${edges} edges`,
      )
      t.ok(socketsMax >= 16)
    }
  }
  t.throws(() => shareDescriptors(settings(1), 128), /ulimit -n.*needs \d+ at least/)
  t.type(descriptorLimit(), 'number')
})

t.test('more connections than descriptors end nothing, and each is served when there is room', async (t) => {
  if (servedBy === 'fallback') {
    t.comment('the fallback closes what it has no room for')
    return
  }
  const child = spawn('sh', ['-c', 'ulimit -n 256 && exec "$0" "$1" start', process.execPath, program], {
    env: {
      PATH: process.env.PATH ?? '',
      PORT: '0',
      DEVNET_PORT: '0',
      DEVNET_SEED: 'false',
      EDGE_THREADS: '1',
      DATA_PATH: scratch('descriptors'),
    },
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  const exited = once(child, 'exit')
  t.teardown(async () => {
    child.kill('SIGKILL')
    await exited
  })
  const log: { msg?: string; urls?: { gateway: string }; open?: number; max?: number }[] = []
  createInterface({ input: child.stdout }).on('line', (line) => log.push(JSON.parse(line)))
  const ready = await eventually('the program is ready', () => log.find(({ msg }) => msg === 'ready'))
  const { port } = new URL(ready.urls?.gateway ?? '')

  let answers = 0
  const sockets: Socket[] = []
  const ask = (socket: Socket): void =>
    void socket.write('GET /gateway/healthcheck HTTP/1.1\r\nHost: localhost\r\n\r\n')
  for (let n = 0; n < 400; n += 1) {
    const socket = connect({ port: Number(port), host: '127.0.0.1' })
    socket.once('connect', () => ask(socket))
    socket.on('error', () => socket.destroy())
    // Each leaves after its answer, and makes room for another.
    socket.once('data', () => {
      answers += 1
      if (answers > 60) socket.destroy()
    })
    sockets.push(socket)
  }
  const counts = await eventually('the limit is in the log', () =>
    log.find(({ msg }) => msg?.startsWith('the limit of open connections is reached')),
  )
  t.ok((counts.max ?? 0) > 0 && (counts.open ?? 0) <= (counts.max ?? 0))
  for (const socket of sockets.slice(0, 60)) socket.destroy()
  await eventually('most requests have an answer', () => answers + 60 >= 400 || answers > 340)
  t.equal(child.exitCode, null, 'it runs')
  for (const socket of sockets) socket.destroy()
  const metrics = await (await fetch(`http://127.0.0.1:${port}/gateway/__gateway_metrics`)).text()
  t.match(metrics, /accept_pauses_total\S* [1-9]/)
  t.match(metrics, /sockets_max\S* [1-9]/)
  child.kill('SIGTERM')
  t.same(await exited, [0, null])
})
