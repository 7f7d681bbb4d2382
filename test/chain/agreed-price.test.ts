/** What one node states is not paid where others contradict it. */
import t from 'tap'
import { AgreedPrices } from '../../src/chain/agreed-price.js'
import { isRefusal, refuse } from '../../src/format/refusal.js'

const honest = 2_396_600n
const silent = refuse('upstream', 'upstream', 'no answer')

/** `before`: what the nodes have stated of the same size earlier. */
function decided(
  answers: readonly (bigint | typeof silent)[],
  before: readonly bigint[] = [],
  size = 1000,
): bigint | string {
  const prices = new AgreedPrices({ monotonic: () => 0 })
  if (before.length > 0) prices.decide(before, 1000)
  const price = prices.decide(answers, size)
  return isRefusal(price) ? price.refused : price
}

t.test('one of three lies, in any place and by any amount', (t) => {
  for (const lie of [0n, 1n, honest / 3n, honest * 3n, 9n * 10n ** 11n, 10n ** 30n])
    for (const at of [0, 1, 2])
      t.equal(decided([0, 1, 2].map((place) => (place === at ? lie : honest))), honest)
  t.equal(decided([honest, honest + 7n, honest * 2n]), honest + 7n, 'nodes lag a little')
  t.end()
})

t.test('fewer answer', (t) => {
  t.equal(decided([honest]), honest, 'the only node')
  t.equal(decided([silent, honest]), honest)
  t.equal(decided([silent, honest, silent]), 'upstream', 'one alone of three')
  t.equal(decided([honest * 9n, honest]), 'upstream', 'two that contradict each other')
  t.equal(decided([(honest * 13n) / 10n, honest]), 'upstream', 'by a third')
  t.equal(decided([silent, silent, silent]), 'upstream')
  for (const before of [
    [honest, honest],
    [honest, honest, honest],
  ]) {
    t.equal(decided([honest * 9n, honest], before), honest, 'the one near what was before')
    t.equal(decided([honest / 9n, honest], before), honest)
    t.equal(decided([silent, honest, silent], before), honest)
    t.equal(decided([honest * 9n, silent, silent], before), 'upstream')
    t.equal(decided([honest * 9n], before), 'upstream')
    t.equal(decided([(honest * 3n) / 2n, honest], before), 'upstream', 'both are near it, and differ')
    t.equal(decided([honest * 9n, honest * 9n, honest], before), honest * 9n, 'two confirm each other')
    t.equal(decided([honest * 4000n], before, 4000 * 262_144), honest * 4000n, 'a larger bundle costs more')
  }
  t.end()
})

t.test('what one node states alone is no measure for the next price', (t) => {
  const prices = new AgreedPrices({ monotonic: () => 0 })
  t.equal(prices.decide([silent, 7n], 1000), 7n, 'nothing is known yet')
  t.equal(prices.decide([honest], 1000), honest, 'the same node, which was wrong')
  t.equal(prices.decide([honest, honest], 1000), honest)
  for (let step = 0, price = honest; step < 20; step += 1) {
    price = (price * 19n) / 10n
    const next = prices.decide([silent, price], 1000)
    t.equal(isRefusal(next), step > 0, `${step}`)
  }
  t.end()
})

t.test('the price of a small bundle says nothing about bytes of a large one', (t) => {
  const prices = new AgreedPrices({ monotonic: () => 0 })
  t.equal(prices.decide([honest, honest], 1), honest)
  const [size, chunks] = [500_000_000, 1908n]
  t.equal(prices.decide([silent, honest * chunks], size), honest * chunks)
  t.ok(isRefusal(prices.decide([silent, honest * chunks * 3n], size)))
  t.equal(prices.decide([silent, honest / 2n], 1), honest / 2n, 'within the bound')
  t.end()
})

t.test('prices of small bundles and of much storage do not move each other', (t) => {
  const prices = new AgreedPrices({ monotonic: () => 0 })
  const [small, large] = [2000, 10 * 2 ** 30]
  const [dear, cheap] = [honest * 40_960n, honest]
  t.equal(prices.decide([dear, dear], large), dear)
  t.equal(prices.decide([cheap, cheap], small), cheap)
  for (let round = 0; round < 5; round += 1) {
    const lie = cheap / 5n ** BigInt(round + 1)
    t.equal(prices.decide([lie, cheap], small), cheap)
    t.equal(prices.decide([dear / 5n ** BigInt(round + 1), dear], large), dear)
    t.ok(isRefusal(prices.decide([silent, lie], small)))
  }
  t.end()
})
