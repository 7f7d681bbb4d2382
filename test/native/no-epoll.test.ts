/** A connection that the kernel does not watch is closed, and nothing else ends. */
import { spawnSync } from 'node:child_process'
import t from 'tap'
import { servedBy } from '../../native/server/server.js'
import { preloading } from './preload.js'

const env = servedBy === 'addon' ? preloading('no-epoll') : undefined
const listen = new URL('../../src/http/listen.js', import.meta.url).href
const program = `
import { connect } from 'node:net'
const { serve } = await import(${JSON.stringify(listen)})
const options = { host: '127.0.0.1', port: 0, stallMs: 5000, requestsMax: 10, onThrow: (error) => { throw error } }
const server = serve((request, reply) => reply.end({ status: 200, block: 'A: b' }, 'here'), options)
await server.listening
const ask = () => new Promise((resolve) => {
  let received = ''
  const head = 'GET / HTTP/1.1\\r\\nHost: x\\r\\nConnection: close\\r\\n\\r\\n'
  const socket = connect(server.port, '127.0.0.1', () => socket.write(head))
  socket.on('data', (piece) => { received += piece })
  socket.on('error', () => undefined)
  socket.on('close', () => resolve(received.endsWith('here') ? 'answered' : 'closed'))
})
process.env.UNWATCHED_PORT = String(server.port)
const [first, second] = [await ask(), await ask()]
delete process.env.UNWATCHED_PORT
console.log(first, second, await ask())
await server.close(0)
`

t.test('and the next one is answered', { skip: env === undefined }, (t) => {
  const words = [...process.execArgv, '--input-type=module', '--eval', program]
  const { stdout, stderr, signal } = spawnSync(process.execPath, words, { env, encoding: 'utf8' })
  t.equal(signal, null)
  t.equal(stdout.trim(), 'closed closed answered', stderr)
  t.end()
})
