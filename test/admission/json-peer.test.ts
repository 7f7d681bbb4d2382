/** Services whose key stands in the query of their address. */
import t from 'tap'
import { systemClock } from '../../src/actor/clock.js'
import { JsonPeer } from '../../src/admission/json-peer.js'
import { serveWeb } from './web.js'

t.test('the query of the address goes with each request, behind its own', async (t) => {
  const paths: string[] = []
  const { url } = await serveWeb(t, (call) => {
    paths.push(call.path)
    call.json(200, {})
  })
  for (const address of [url, `${url}/`, `${url}/v1/?api-key=K%2F1&b=2`]) {
    const peer = new JsonPeer({ url: address, connectionsMax: 1 }, systemClock)
    for (const path of ['', '/price?ids=arweave']) await peer.ask(path, undefined, 5000)
    await peer.close()
  }
  t.strictSame(paths, [
    '/',
    '/price?ids=arweave',
    '/',
    '/price?ids=arweave',
    '/v1?api-key=K%2F1&b=2',
    '/v1/price?ids=arweave&api-key=K%2F1&b=2',
  ])
})
