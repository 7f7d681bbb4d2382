import t from 'tap'
import type { Id } from '../../src/format/id.js'
import { type Refusal, refuse } from '../../src/format/refusal.js'
import type { Guard } from '../../src/gateway/guard.js'
import { DigestLearner } from '../../src/routes/digest-learner.js'
import { HandClock } from '../http/hand-clock.js'

const id = 'A'.repeat(43) as Id
const digest = new Uint8Array(32)

/** Something is blocked by a hash, so that each id's digest must be learned; `outcome` is what the source says. */
function learnerOf(outcome: () => Uint8Array | Refusal) {
  const clock = new HandClock()
  let asked = 0
  const guard = { blocksKnown: () => false, lacksDigest: () => true, blocksDigest: () => false }
  const source = {
    digestOf: async () => {
      asked += 1
      return outcome()
    },
  }
  const parts = { clock, source, waitMs: 1000, flightsMax: 8, restMs: 30_000 }
  const learner = new DigestLearner({ ...parts, guard: guard as unknown as Guard })
  return { clock, learner, asked: () => asked }
}

t.test('content that cannot be had is not transferred again for each request', async (t) => {
  let outcome: Uint8Array | Refusal = refuse('upstream', 'upstream', 'a chunk is missing')
  const { clock, learner, asked } = learnerOf(() => outcome)
  for (let times = 0; times < 5; times += 1) t.match(await learner.verdict(id), { refused: 'busy' })
  t.equal(asked(), 1, 'one transfer for five requests')
  outcome = digest
  clock.turn(30_001)
  t.equal(await learner.verdict(id), 'clear')
  t.equal(await learner.verdict(id), 'clear')
  t.equal(asked(), 2, 'asked again later, and known from then on')
})

t.test('a full queue is no reason to rest', async (t) => {
  let outcome: Uint8Array | Refusal = refuse('busy', 'self', 'too many transfers')
  const { learner, asked } = learnerOf(() => outcome)
  t.match(await learner.verdict(id), { refused: 'busy' })
  outcome = digest
  t.equal(await learner.verdict(id), 'clear')
  t.equal(asked(), 2)
})
