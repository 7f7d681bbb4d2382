import t from 'tap'
import { firstOf, type Waiting } from '../../native/server/crowd.js'

const [newcomer, body] = [1, 3]
const one = (rank: number, number: number, since = 0) => ({ waiting: { rank, number, since } as Waiting })
const numbers = (from: { readonly waiting: Waiting }[], wanted: number, now: number, newest: number) =>
  firstOf(from, wanted, now, newest).map(({ waiting }) => waiting.number)

t.test('a newcomer has time for its request, also where all others drip bodies', async (t) => {
  const dripping = [1, 2, 3].map((number) => one(body, number, 990))
  t.same(numbers([...dripping, one(newcomer, 4, 990)], 3, 1000, 3), [1, 2, 3])
})

t.test('of many newcomers most go before those who send bodies', async (t) => {
  const many = [2, 3, 4, 5].map((number) => one(newcomer, number, 990))
  t.same(numbers([one(body, 1, 990), ...many], 4, 1000, 4), [2, 3, 4, 1])
})

t.test('who has waited for long goes first, however new it is', async (t) => {
  t.same(numbers([one(body, 1, 5000), one(newcomer, 2, 0)], 1, 5000, 1), [2])
})
