import t, { type Test } from 'tap'
import { systemClock } from '../../src/actor/clock.js'
import { Relay, wholeBody } from '../../src/chain/relay.js'
import { isRefusal } from '../../src/format/refusal.js'
import { eventually } from '../eventually.js'
import { nodeThat, patient } from './hostile.js'

/** A relay over nodes that answer with these statuses; 0 breaks the connection. */
async function over(t: Test, statuses: readonly number[]) {
  const nodes = await Promise.all(
    statuses.map((status, index) =>
      nodeThat(t, (request, response) => {
        request.resume()
        if (status === 0) response.destroy()
        else response.writeHead(status).end(`node ${index}`)
      }),
    ),
  )
  const relay = new Relay({ ...patient, nodes: nodes.map(({ url }) => url) }, systemClock)
  t.teardown(() => relay.close())
  return relay
}

async function answerOf(relay: Relay, others: boolean): Promise<string> {
  const answer = await relay.ask({ path: '/tx/x', maxBytes: 1000 }, others, '198.51.100.1')
  if (isRefusal(answer)) return answer.refused
  const body = await wholeBody(answer)
  return isRefusal(body) ? body.refused : `${answer.status} ${body.toString()}`
}

t.test('the first good answer of a node is used', async (t) => {
  t.equal(await answerOf(await over(t, [0, 500, 200]), false), '200 node 2')
  t.equal(await answerOf(await over(t, [429, 400]), false), '400 node 1')
  t.equal(await answerOf(await over(t, [404, 200]), false), '404 node 0')
  t.equal(await answerOf(await over(t, [404, 200]), true), '200 node 1', 'another node may have it')
})

t.test('without a good answer the most informative one is used', async (t) => {
  t.equal(await answerOf(await over(t, [404, 500, 0]), true), '404 node 0')
  t.equal(await answerOf(await over(t, [500, 404]), true), '404 node 1')
  t.equal(await answerOf(await over(t, [503, 500]), true), '503 node 0')
  t.equal(await answerOf(await over(t, [0]), true), 'upstream')
})

t.test('every slot is released', async (t) => {
  const relay = await over(t, [404, 0, 200, 500])
  for (let round = 0; round < 12; round += 1) await answerOf(relay, true)
  const answer = await relay.ask({ path: '/', maxBytes: 10 }, false, '198.51.100.1')
  t.equal(relay.underWay, 1)
  if (!isRefusal(answer)) {
    answer.drop()
    answer.drop()
  }
  t.equal(relay.underWay, 0)
})

t.test('a client with many requests does not hold up one of another', async (t) => {
  const open: (() => void)[] = []
  const order: string[] = []
  const { url } = await nodeThat(t, (request, response) => {
    order.push(request.url ?? '')
    open.push(() => response.end('x'))
  })
  const relay = new Relay({ ...patient, callsMax: 1, waitingMax: 20, nodes: [url] }, systemClock)
  t.teardown(() => relay.close())
  const ask = async (path: string, client: string): Promise<void> => {
    const answer = await relay.ask({ path, maxBytes: 10 }, false, client)
    if (!isRefusal(answer)) await wholeBody(answer)
  }
  const all = Array.from({ length: 10 }, (_, at) => ask(`/many/${at}`, '203.0.113.1'))
  all.push(ask('/one', '198.51.100.1'))
  for (let answered = 0; answered < 11; answered += 1) {
    await eventually(`request ${answered} reaches the node`, () => open.length > answered)
    open[answered]?.()
  }
  await Promise.all(all)
  t.ok(order.indexOf('/one') <= 2, `place ${order.indexOf('/one')}`)
})
