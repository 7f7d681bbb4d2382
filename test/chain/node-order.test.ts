import t from 'tap'
import { type NodeHealth, NodeOrder } from '../../src/chain/node-order.js'

const options = { coolMs: 100, coolMaxMs: 1_000 }

function nodes(count: number): NodeHealth[] {
  return Array.from({ length: count }, () => ({
    underWay: 0,
    failures: 0,
    failingSinceMs: undefined,
    coolUntil: 0,
  }))
}

t.test("between equals the operator's order decides", async (t) => {
  const [a, b, c] = nodes(3)
  t.same(new NodeOrder([a!, b!, c!], options).ranked(0), [a, b, c])
})

t.test('the least busy node comes first', async (t) => {
  const [a, b] = nodes(2)
  a!.underWay = 2
  t.equal(new NodeOrder([a!, b!], options).ranked(0)[0], b)
})

t.test(
  'a node rests twice as long each time it fails, up to the bound, and one success forgives all',
  async (t) => {
    const [a, b] = nodes(2)
    const nodeOrder = new NodeOrder([a!, b!], options)
    const rests: number[] = []
    for (let failure = 0; failure < 6; failure += 1) {
      nodeOrder.failed(a!, 5_000)
      rests.push(a!.coolUntil - 5_000)
    }
    t.same(rests, [100, 200, 400, 800, 1_000, 1_000])
    t.equal(nodeOrder.ranked(5_999)[0], b)
    t.equal(nodeOrder.ranked(6_000)[0], a)
    nodeOrder.succeeded(a!)
    nodeOrder.failed(a!, 9_000)
    t.equal(a!.coolUntil, 9_100)
  },
)

t.test('when all nodes are avoided, the one that is avoided for the shortest time is asked', async (t) => {
  const [a, b] = nodes(2)
  const nodeOrder = new NodeOrder([a!, b!], options)
  nodeOrder.failed(a!, 0)
  nodeOrder.failed(a!, 0)
  nodeOrder.failed(b!, 0)
  t.same(nodeOrder.ranked(10), [b, a])
})

t.test('a node that is known to be right is asked first until it is busy', async (t) => {
  const [wrong, other, known] = nodes(3)
  const order = new NodeOrder([wrong!, other!, known!], options)
  const handicap = (one: NodeHealth): number => (one === known ? 0 : one === other ? 4 : 10_000)
  t.same(order.ranked(0, handicap).indexOf(known!), 0)
  known!.underWay = 5
  const ranked = order.ranked(0, handicap)
  t.ok(ranked[0] === other && ranked[1] === known && ranked[2] === wrong)
})
