import t from 'tap'
import type { Id } from '../../src/format/id.js'
import { type Refusal, refuse } from '../../src/format/refusal.js'
import type { Guard } from '../../src/gateway/guard.js'
import { DigestLearner, type Verdict } from '../../src/routes/digest-learner.js'
import { HandClock } from '../http/hand-clock.js'

const id = 'A'.repeat(43) as Id
const digest = new Uint8Array(32)
const sizeMaxBytes = 1000

type Outcome = Uint8Array | Refusal | Promise<Uint8Array>

/** Something is blocked by a hash, so that each id's digest must be learned; `outcome` is what the source says. */
function learnerOf(outcome: () => Outcome) {
  const clock = new HandClock()
  let questions = 0
  const guard = {
    blocksKnown: () => false,
    lacksDigest: (_: Id, sizeBytes: number) => sizeBytes !== 7,
    blocksDigest: () => false,
  }
  const transfers = {
    digestOf: async () => {
      questions += 1
      return outcome()
    },
  }
  const parts = { clock, transfers, waitMs: 1000, flightsMax: 8, restMs: 30_000, sizeMaxBytes }
  const learner = new DigestLearner({ ...parts, guard: guard as unknown as Guard })
  const verdict = async (sizeBytes = 100): Promise<Verdict> => {
    const known = await learner.verdict(id, sizeBytes)
    return known === 'unlearned' ? learner.learn(id, 'client').verdict : known
  }
  return { clock, learner, verdict, transfers: () => questions }
}

t.test('content that cannot be had is not transferred again for each request', async (t) => {
  let outcome: Uint8Array | Refusal = refuse('upstream', 'upstream', 'a chunk is missing')
  const { clock, verdict, transfers } = learnerOf(() => outcome)
  for (let times = 0; times < 5; times += 1) t.match(await verdict(), { refused: 'busy' })
  t.equal(transfers(), 1, 'one transfer for five requests')
  outcome = digest
  clock.turn(30_001)
  t.equal(await verdict(), 'clear')
  t.equal(await verdict(), 'clear')
  t.equal(transfers(), 2, 'asked again later, and known from then on')
})

t.test('after a full queue the next request tries again', async (t) => {
  let outcome: Uint8Array | Refusal = refuse('busy', 'self', 'too many transfers')
  const { verdict, transfers } = learnerOf(() => outcome)
  t.match(await verdict(), { refused: 'busy' })
  outcome = digest
  t.equal(await verdict(), 'clear')
  t.equal(transfers(), 2)
})

t.test(
  'what is too large is decided without a transfer, and what no blocked content is as large as',
  async (t) => {
    const { verdict, transfers } = learnerOf(() => digest)
    t.match(await verdict(sizeMaxBytes + 1), { refused: 'too-large' })
    t.equal(await verdict(7), 'clear')
    t.equal(transfers(), 0)
    t.equal(await verdict(sizeMaxBytes), 'clear')
    t.equal(transfers(), 1)
  },
)

t.test('one client has a share of the transfers, and joining one begins none', async (t) => {
  let finish: (digest: Uint8Array) => void = () => undefined
  const whole = new Promise<Uint8Array>((resolve) => {
    finish = resolve
  })
  const { learner, transfers } = learnerOf(() => whole)
  const ids = Array.from({ length: 10 }, (_, at) => `${at}`.repeat(43) as Id)
  const greedy = ids.map((one) => learner.learn(one, 'greedy'))
  t.same(
    greedy.map(({ isFresh }) => isFresh),
    ids.map((_, at) => at < 2),
  )
  t.match(await greedy[2]?.verdict, { refused: 'busy' })
  const modest = learner.learn(id, 'modest')
  t.ok(modest.isFresh)
  const joined = learner.learn(id, 'third')
  t.notOk(joined.isFresh)
  finish(digest)
  t.equal(await modest.verdict, 'clear')
  t.equal(await joined.verdict, 'clear')
  t.equal(transfers(), 3)
})
