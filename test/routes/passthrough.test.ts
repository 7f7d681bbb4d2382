import { randomBytes } from 'node:crypto'
import type { ServerResponse } from 'node:http'
import { connect, type Socket } from 'node:net'
import t, { type Test } from 'tap'
import type { Request } from '../../src/http/exchange.js'
import { nodeThat } from '../chain/hostile.js'
import { eventually } from '../eventually.js'
import { nodeStage } from './node-rig.js'

/** A gateway before nodes that answer by path. */
async function before(t: Test, ...nodes: ((path: string, response: ServerResponse) => void)[]) {
  const started = await Promise.all(
    nodes.map((act) => nodeThat(t, (request, response) => act(request.url ?? '', response))),
  )
  const gateway = await nodeStage(
    t,
    started.map(({ url }) => url),
  )
  return { gateway, requests: started.map(({ requested }) => requested) }
}

const json = (response: ServerResponse, body: string): void => {
  response.writeHead(200, { 'content-type': 'application/json', 'content-length': body.length }).end(body)
}

t.test('answers of nodes are passed on with their time to live, and kept that long at most', async (t) => {
  const { gateway, requests } = await before(t, (_, response) => json(response, '{"a":1}'))
  const ages: Record<string, number> = {
    '/info': 120,
    '/tx_anchor': 120,
    '/height': 20,
    '/current_block': 30,
    '/peers': 30,
    '/tx/abc/status': 30,
    '/price/5': 30,
    '/price/5/x': 30,
    '/block/height/1': 30,
    '/tx/pending': 30,
    '/wallet/x/balance': 30,
    '/unconfirmed_tx/x': 20,
  }
  for (const [path, age] of Object.entries(ages)) {
    const first = await gateway.ask(path)
    t.equal(first.status, 200, path)
    t.equal(first.body.toString(), '{"a":1}')
    t.equal(first.headers['cache-control'], `public, max-age=${age}`)
    t.equal(first.headers['x-cache'], 'MISS')
    t.equal(first.headers.signature, undefined)
    const second = await gateway.ask(path)
    t.equal(second.headers['x-cache'], 'HIT')
    t.match(second.headers.age, /^\d$/)
    const head = await gateway.ask(path, { method: 'HEAD' })
    t.equal(head.headers['content-length'], '7')
    t.equal(head.body.length, 0)
  }
  t.strictSame(
    requests[0],
    Object.keys(ages).map((path) => `GET ${path}`),
  )
  t.equal((await gateway.ask('/INFO')).headers['x-cache'], 'HIT', 'letter case does not count')
})

t.test('simultaneous requests share one request to a node', async (t) => {
  const { gateway, requests } = await before(
    t,
    (_, response) => void setTimeout(() => json(response, '{}'), 50),
  )
  const answers = await Promise.all(Array.from({ length: 30 }, () => gateway.ask('/info')))
  t.ok(answers.every(({ status }) => status === 200))
  t.equal(requests[0]?.length, 1)
})

t.test('a 404 of one node is asked of another, and a 404 of all is not kept', async (t) => {
  const { gateway, requests } = await before(
    t,
    (_, response) => void response.writeHead(404).end('Not Found.'),
    (path, response) => (path === '/tx/b' ? response.writeHead(404).end('Not Found.') : json(response, '1')),
  )
  t.equal((await gateway.ask('/tx/a')).status, 200)
  const missing = await gateway.ask('/tx/b')
  t.equal(missing.status, 404)
  t.equal(missing.headers['cache-control'], 'no-store')
  await gateway.ask('/tx/b')
  t.equal(requests[1]?.filter((one) => one === 'GET /tx/b').length, 2)
  t.equal((await gateway.ask('/wallet/x/balance')).status, 404, 'of wallets each node knows as much')
})

t.test('a pending transaction is not kept', async (t) => {
  let status = 202
  const { gateway } = await before(t, (_, response) => void response.writeHead(status).end('Pending'))
  t.equal((await gateway.ask('/tx/a/status')).status, 202)
  status = 200
  t.equal((await gateway.ask('/tx/a/status')).status, 200)
})

t.test('failures of nodes are answered 502 or 504', async (t) => {
  const { gateway } = await before(t, (_, response) => void response.destroy())
  const broken = await gateway.ask('/info')
  t.equal(broken.status, 502)
  t.equal(broken.headers['cache-control'], 'no-store')
  const over = await before(t, (_, response) => {
    response.writeHead(200, { 'content-length': '99999999' }).flushHeaders()
  })
  t.equal((await over.gateway.ask('/tx/x/data')).status, 502, 'more than any answer has')
})

t.test('paths that programs read differently are refused', async (t) => {
  const { gateway, requests } = await before(t, (_, response) => json(response, '{}'))
  for (const path of [
    '/tx/../metrics',
    '/tx/./x',
    '/tx/%2e%2e/metrics',
    '/tx//x',
    '/block/a%0d%0ab',
    '/tx/a;b',
  ]) {
    t.equal((await gateway.ask(path)).status, 400, path)
  }
  t.strictSame(requests[0], [])
})

t.test('no document from a node is executed by a browser', async (t) => {
  const page = '<script>alert(1)</script>'
  const { gateway } = await before(
    t,
    (_, response) => void response.writeHead(200, { 'content-type': 'text/html' }).end(page),
  )
  const answer = await gateway.ask('/tx/abc/data.html')
  t.equal(answer.headers['content-type'], 'text/plain; charset=utf-8')
  t.equal(answer.headers['x-content-type-options'], 'nosniff')
})

t.test('large answers pass whole, of known length and of unknown', async (t) => {
  const body = Buffer.from(randomBytes(6_000_000).toString('base64url'))
  const { gateway } = await before(t, (path, response) => {
    if (path === '/tx/known/data') response.writeHead(200, { 'content-length': body.length })
    response.end(body)
  })
  for (const path of ['/tx/known/data', '/tx/unknown/data']) {
    const answers = await Promise.all([gateway.ask(path), gateway.ask(path), gateway.ask(path)])
    for (const answer of answers) {
      t.equal(answer.status, 200, path)
      t.ok(answer.body.equals(body))
    }
    const head = await gateway.ask(path, { method: 'HEAD' })
    t.equal(head.headers['content-length'], String(body.length))
    t.equal(head.body.length, 0)
  }
})

t.test('a large answer that breaks off never looks complete', async (t) => {
  const piece = Buffer.alloc(3_000_000, 'a')
  const { gateway } = await before(t, (path, response) => {
    if (path === '/tx/known/data') response.writeHead(200, { 'content-length': 8_000_000 })
    response.write(piece, () => setTimeout(() => response.destroy(), 50))
  })
  const known = await gateway.ask('/tx/known/data')
  t.equal(known.status, 200)
  t.equal(known.complete, false)
  t.ok(known.body.length <= piece.length)
  t.equal((await gateway.ask('/tx/unknown/data')).status, 502)
})

t.test('stalled readers of one client leave room for others', async (t) => {
  const body = Buffer.from(randomBytes(6_000_000).toString('base64url'))
  const node = await nodeThat(t, (request, response) => {
    if (request.url === '/tx/known/data') response.writeHead(200, { 'content-length': body.length })
    response.end(body)
  })
  const clientOf = (request: Request): string => request.header('x-client') ?? ''
  const gateway = await nodeStage(t, [node.url], { clientOf })
  const { port } = new URL(gateway.url)
  for (const path of ['/tx/known/data', '/tx/unknown/data']) {
    const ask = (client: string) => gateway.ask(path, { headers: { 'x-client': client } })
    const sockets: Socket[] = []
    const isFull = async (): Promise<boolean> => {
      const socket = connect(Number(port), '127.0.0.1')
      sockets.push(socket)
      socket.pause().write(`GET ${path} HTTP/1.1\r\nHost: gateway\r\nX-Client: greedy\r\n\r\n`)
      return (await ask('greedy')).status === 503
    }
    t.ok(
      await eventually('the client has all of its share', isFull),
      `${path}: one client has all of its share`,
    )
    t.match(await ask('modest'), { status: 200, complete: true }, `${path}: another client`)
    for (const socket of sockets) socket.destroy()
    t.ok(
      await eventually('the client is answered again', async () => (await ask('greedy')).status === 200),
      `${path}: who leaves gives back`,
    )
  }
})
