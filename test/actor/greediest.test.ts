import t from 'tap'
import { greediest, type Holdings, ofOneClient } from '../../src/actor/greediest.js'

interface Held {
  readonly client: string
  readonly bytes: number
}

const held = (client: string, bytes = 1): Held => ({ client, bytes })
const each: Holdings<Held> = { clientOf: ({ client }) => client, lead: 1, levels: 3, isNested: true }
const byBytes: Holdings<Held> = { ...each, weightOf: ({ bytes }) => bytes, lead: 0 }

t.test('the provider with most makes room, whatever its addresses hold', async (t) => {
  const spread = Array.from({ length: 5 }, (_, at) => held(`10.1.${at}.1`))
  const one = [held('10.2.0.1'), held('10.2.0.1'), held('10.2.0.1')]
  t.same(greediest([...one, ...spread], '10.3.0.1', each), spread)
})

t.test('then the network, then the client', async (t) => {
  const network = [held('10.1.1.1'), held('10.1.1.2'), held('10.1.1.3')]
  t.same(greediest([held('10.1.2.1'), ...network], '10.1.2.9', each), network)
  const client = [held('10.1.1.1'), held('10.1.1.1')]
  t.same(greediest([held('10.1.1.2'), ...client], '10.1.1.3', each), client)
})

t.test('who holds no more than the lead beyond the newcomer keeps it', async (t) => {
  t.equal(greediest([held('10.1.1.1')], '10.2.1.1', each), undefined, 'one more would be as many')
  t.same(greediest([held('10.1.1.1')], '10.2.1.1', { ...each, lead: 0 }), [held('10.1.1.1')])
  t.equal(greediest([], '10.2.1.1', each), undefined)
})

t.test('weights count, not things', async (t) => {
  const large = held('10.1.1.1', 100)
  const small = Array.from({ length: 9 }, () => held('10.2.1.1', 10))
  t.same(greediest([...small, large], '10.3.1.1', byBytes), [large])
  t.same(greediest([...small, large], '10.1.1.1', byBytes), undefined, 'the newcomer holds most itself')
})

t.test('networks of other providers are compared only where all are', async (t) => {
  // Both providers hold three; one of them in a single network.
  const all = [
    held('10.1.1.1'),
    held('10.1.2.1'),
    held('10.1.3.1'),
    ...Array.from({ length: 3 }, () => held('10.2.1.1')),
  ]
  t.equal(greediest(all, '10.1.9.1', each), undefined)
  t.same(greediest(all, '10.1.9.1', { ...each, isNested: false }), all.slice(3))
})

t.test('clients are left alone where two levels are compared', async (t) => {
  const client = [held('10.1.1.1'), held('10.1.1.1'), held('10.1.1.1')]
  t.equal(greediest(client, '10.1.1.2', { ...each, levels: 2 }), undefined)
  t.same(greediest(client, '10.1.1.2', each), client)
})

t.test('of a group the first client with most', async (t) => {
  const all = [held('a', 1), held('b', 3), held('a', 1), held('c', 3)]
  t.same(ofOneClient(all, each), [all[0], all[2]])
  t.same(ofOneClient(all, byBytes), [all[1]])
  t.same(ofOneClient([], each), [])
})
