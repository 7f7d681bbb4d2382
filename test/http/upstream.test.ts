import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import t from 'tap'
import { Upstream } from '../../src/http/upstream.js'

t.test(
  'questions share kept connections; closing ends what is under way, and nothing is asked after it',
  async (t) => {
    let connections = 0
    const server = createServer((request, response) => {
      if (request.url === '/silent') return
      response.end(request.url)
    })
    server.on('connection', () => {
      connections += 1
    })
    server.listen(0, '127.0.0.1')
    await once(server, 'listening')
    t.teardown(() => {
      server.close()
      server.closeAllConnections()
    })
    const origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
    const upstream = new Upstream({ connections: 1 })
    for (const path of ['/a', '/b']) {
      const { statusCode, body } = await upstream.request({ origin, path, method: 'GET' })
      t.equal(statusCode, 200)
      t.equal(await body.text(), path)
    }
    t.equal(connections, 1)
    const silent = upstream.request({ origin, path: '/silent', method: 'GET' })
    const seen = t.rejects(silent)
    await upstream.destroy()
    await seen
    await t.rejects(upstream.request({ origin, path: '/a', method: 'GET' }), /closed/)
  },
)

t.test('closing unused connections is no error', async (t) => {
  const upstream = new Upstream({})
  await t.resolves(upstream.destroy())
  await t.resolves(upstream.destroy())
})

t.test('an unreachable server is reported by its error code', async (t) => {
  const upstream = new Upstream({})
  const exchange = upstream.request({ origin: 'http://127.0.0.1:1', path: '/', method: 'GET' })
  await t.rejects(exchange, { code: 'ECONNREFUSED' })
  await upstream.destroy()
})
