import t from 'tap'
import { Ticket } from '../../src/admission/buckets.js'
import { clientAt, conform, named } from '../conformance/buckets.js'
import { memoryHouse } from './house.js'

t.test('buckets in memory', async (t) => {
  await conform(t, memoryHouse, { numRuns: 60, refills: true })
})

t.test('paid tokens come back as paid ones, however long the answer took', async (t) => {
  const rules = { capacity: 10, refillPerSecond: 10 }
  const house = await memoryHouse({ ip: rules, resource: rules })
  t.teardown(() => house.close())
  const client = clientAt(house.clients, '203.0.113.1')
  await house.buckets.credit('203.0.113.1', 'one', 100)
  const ticket = await house.buckets.take(client, named('/x'), 110, 'both')
  t.match(ticket, { tokens: 110, paid: 100 })
  house.keeper.save()
  house.advance?.(70)
  t.same(await house.buckets.ofClient(client), undefined, 'full and without paid tokens: forgotten')
  if (ticket instanceof Ticket) ticket.returnUnsent(0)
  t.same(
    await house.buckets.ofClient(client),
    { tokens: 10, paidTokens: 100 },
    'but for the token of an answer',
  )
})

t.test('a bucket that holds paid tokens is never given to another client', async (t) => {
  const rules = { capacity: 1000, refillPerSecond: 1 }
  const house = await memoryHouse({ ip: rules, resource: rules })
  t.teardown(() => house.close())
  for (let at = 0; at < 100; at += 1) await house.buckets.credit(`198.51.100.${at}`, `p${at}`, 5)
  let refused = 0
  for (let at = 0; at < 20_000; at += 1) {
    const client = clientAt(house.clients, `10.0.${at >> 8}.${at & 255}`)
    if (!((await house.buckets.take(client, named('/x'), 1, 'client')) instanceof Ticket)) refused += 1
  }
  t.equal(refused, 0, 'there is a place for every newcomer')
  t.ok(house.ip.usage.live <= 1024 && house.ip.usage.evicted > 10_000, 'in place of others that lack little')
  for (let at = 0; at < 100; at += 1) {
    t.match(await house.buckets.ofClient(clientAt(house.clients, `198.51.100.${at}`)), { paidTokens: 5 })
  }
})
