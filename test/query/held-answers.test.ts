import t from 'tap'
import { HeldAnswers } from '../../src/query/held-answers.js'

t.test('queries that began together do not hold more than there is room for', async (t) => {
  const held = new HeldAnswers(100)
  const dropped: string[] = []
  const begun = ['1.1.1.1', '1.1.1.1', '2.2.2.2', '1.1.1.1'].map((client, at) => {
    t.ok(held.hasRoom(client))
    return { client, name: `${client} ${at}` }
  })
  const release = begun.map(({ client, name }) => held.add(client, 40, () => dropped.push(name)))
  t.same(dropped, ['1.1.1.1 0', '1.1.1.1 1'], 'the oldest of who holds most')
  t.ok(held.hasRoom('3.3.3.3'))
  for (const one of release) one()
  held.add('3.3.3.3', 100, () => dropped.push('3.3.3.3'))
  t.equal(dropped.length, 2)
  held.add('4.4.4.4', 101, () => dropped.push('4.4.4.4'))
  t.same(dropped.slice(2), ['3.3.3.3'], 'a single answer has always room')
})
