/** A header that names the machine that answered, for clusters behind a load balancer. */
import { once } from 'node:events'
import type { IncomingMessage } from 'node:http'
import { get } from 'node:https'
import { connect } from 'node:net'
import t from 'tap'
import { scratch } from '../scratch.js'
import { run, seeded } from './running.js'

/** What comes back for these bytes. */
function rawAnswer(base: string, bytes: string): Promise<string> {
  const { hostname, port } = new URL(base)
  return new Promise((resolve, reject) => {
    const socket = connect(Number(port), hostname, () => socket.write(bytes))
    let text = ''
    socket.setEncoding('latin1')
    socket.on('data', (piece: string) => {
      text += piece
    })
    socket.once('error', reject).once('close', () => resolve(text))
  })
}

t.test('each answer of all services and listeners names its machine', async (t) => {
  const { urls, examples } = await run(t, scratch('named'), {
    ...seeded,
    CLUSTER_NODE: 'west-1',
    CLUSTER_NODE_HEADER: 'true',
    TLS_PORT: '0',
    TLS_SELF_SIGNED: 'true',
  })
  const content = Object.values(examples)[0] ?? ''
  const wanted = [
    // More than once: answers are repeated without the handlers.
    ...[1, 2, 3].map(() => `${urls.gateway}/${content}`),
    `${urls.gateway}/`,
    `${urls.gateway}/gateway/healthcheck`,
    `${urls.gateway}/${'A'.repeat(43)}`,
    `${urls.upload}/health`,
    `${urls.upload}/no/such/route`,
    `${urls.payment}/health`,
    `${urls.payment}/v1/rates`,
  ]
  for (const url of wanted) {
    const answer = await fetch(url, { redirect: 'manual' })
    await answer.arrayBuffer()
    t.equal(answer.headers.get('x-gateway-node'), 'west-1', `${answer.status} of ${url}`)
  }
  t.match(
    await rawAnswer(
      urls.gateway ?? '',
      'GET /gateway/livez HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n',
    ),
    /\r\nX-GATEWAY-Node: west-1\r\n/,
  )
  for (const path of [content, content, 'gateway/livez']) {
    const sent = get(`${urls.https}/${path}`, { rejectUnauthorized: false })
    const [answer] = (await once(sent, 'response')) as [IncomingMessage]
    answer.resume()
    t.equal(answer.headers['x-gateway-node'], 'west-1', `over TLS: ${answer.statusCode}`)
  }
})

t.test('nothing names it unless that is wanted, and the other vocabulary has its own word', async (t) => {
  const plain = await run(t, scratch('plain'), { SERVICES: 'gateway', CLUSTER_NODE: 'west-1' })
  const unnamed = await fetch(`${plain.urls.gateway}/gateway/livez`)
  t.notOk([...unnamed.headers.values()].includes('west-1'))
  t.equal(await plain.stop(), 0)
  const other = await run(t, scratch('other'), {
    SERVICES: 'gateway',
    CLUSTER_NODE: 'west-1',
    CLUSTER_NODE_HEADER: 'true',
    INTERFACE_VOCABULARY: 'ar-io',
  })
  const { headers } = await fetch(`${other.urls.gateway}/ar-io/livez`)
  t.equal(headers.get('x-ar-io-node'), 'west-1')
  t.equal(headers.get('x-gateway-node'), null)
})
