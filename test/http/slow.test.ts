import { spawn, spawnSync } from 'node:child_process'
import { request } from 'node:http'
import t from 'tap'
import { pause } from '../../src/actor/clock.js'
import { isRefusal } from '../../src/format/refusal.js'
import { serve } from '../../src/http/listen.js'
import type { Content } from '../../src/store/content.js'

/** slowhttptest opens many connections and keeps each busy with as little as it can. */
const installed = spawnSync('slowhttptest', ['-h']).error === undefined

const bytes = Buffer.alloc(4 * 2 ** 20, 'x')
const content = (): Content => ({
  sizeBytes: bytes.length,
  read: (start, end) => bytes.subarray(start, end),
  ready: () => Promise.resolve(true),
  close: () => undefined,
})

const server = serve(
  (incoming, reply) => {
    if (incoming.path === '/large')
      void reply.stream({ status: 200, block: '' }, [{ start: 0, end: bytes.length }], content())
    else if (incoming.method === 'GET') reply.end({ status: 200, block: '' }, 'fine')
    else {
      void incoming.body(100_000).then((body) => {
        reply.end({ status: isRefusal(body) ? 400 : 200, block: '' }, 'done')
      })
    }
  },
  { host: '127.0.0.1', port: 0, stallMs: 2000, requestsMax: 2000, onThrow: (error) => t.fail(String(error)) },
)
t.teardown(() => server.close(0))
await server.listening

function status(): Promise<number | undefined> {
  return new Promise((resolve, reject) => {
    request({ host: '127.0.0.1', port: server.port, path: '/', agent: false, timeout: 10_000 }, (answer) => {
      answer.resume()
      answer.on('end', () => resolve(answer.statusCode))
    })
      .on('error', reject)
      .end()
  })
}

const url = (path: string): string => `http://127.0.0.1:${server.port}${path}`
const common = ['-c', '300', '-r', '300', '-l', '4', '-i', '1', '-p', '3']
for (const [name, args] of [
  ['slow headers', ['-H', '-u', url('/')]],
  ['slow bodies', ['-B', '-s', '50000', '-u', url('/post')]],
  ['slow reads', ['-X', '-w', '10', '-y', '20', '-n', '1', '-z', '32', '-u', url('/large')]],
] as const) {
  t.test(`while 300 clients do ${name}, others are served`, { skip: !installed }, async (t) => {
    const attack = spawn('slowhttptest', [...args, ...common], { stdio: 'ignore' })
    const over = new Promise((resolve) => attack.once('exit', resolve))
    for (let turn = 0; turn < 10; turn += 1) {
      await pause(300)
      t.equal(await status(), 200)
    }
    await over
  })
}

t.test('memory that slow clients held is released when they are gone', { skip: !installed }, async (t) => {
  while (server.openRequests > 0) await pause(50)
  t.equal(server.openRequests, 0)
})
