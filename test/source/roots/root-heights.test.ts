import { randomBytes } from 'node:crypto'
import t from 'tap'
import { systemClock } from '../../../src/actor/clock.js'
import { parseBlockHash, type TransactionStatus } from '../../../src/chain/chain.js'
import { idOfBytes } from '../../../src/format/id.js'
import { type Refusal, refuse } from '../../../src/format/refusal.js'
import { RootHeights } from '../../../src/source/roots/root-heights.js'

const never = new AbortController().signal

function rig() {
  let ms = 0
  let requested = 0
  let answer: TransactionStatus | Refusal = { kind: 'pending' }
  const chain = {
    transactionStatus: async () => {
      requested += 1
      return answer
    },
  }
  const heights = new RootHeights(chain, { ...systemClock, monotonic: () => ms })
  return {
    heights,
    requested: () => requested,
    pass: (by: number) => {
      ms += by
    },
    says: (next: TransactionStatus | Refusal) => {
      answer = next
    },
  }
}

function mined(height: number, confirmations: number): TransactionStatus {
  const block = parseBlockHash(randomBytes(48).toString('base64url'))
  if (block === undefined) throw new Error('no hash of a block')
  return { kind: 'mined', height, block, confirmations }
}

t.test('a height is asked for once while it is sure to hold', async (t) => {
  const { heights, requested, pass, says } = rig()
  const id = idOfBytes(randomBytes(32))
  t.equal(heights.known(id), undefined)
  says(mined(7, 1000))
  t.equal(await heights.of(id, never), 7)
  t.equal(heights.known(id), 7)
  pass(1_000_000)
  t.equal(await heights.of(id, never), 7)
  t.equal(requested(), 1)
})

t.test('near the tip a fork may change it', async (t) => {
  const { heights, requested, pass, says } = rig()
  const id = idOfBytes(randomBytes(32))
  says(mined(7, 3))
  t.equal(await heights.of(id, never), 7)
  says(mined(8, 3))
  t.equal(await heights.of(id, never), 7)
  pass(61_000)
  t.equal(heights.known(id), undefined)
  t.equal(await heights.of(id, never), 8)
  t.equal(requested(), 2)
})

t.test('where nobody says, the next question waits a moment', async (t) => {
  const { heights, requested, pass, says } = rig()
  const id = idOfBytes(randomBytes(32))
  t.equal(await heights.of(id, never), undefined)
  says(refuse('upstream', 'upstream', 'test'))
  t.equal(await heights.of(id, never), undefined)
  t.equal(requested(), 1)
  pass(1001)
  t.equal(await heights.of(id, never), undefined)
  says(mined(9, 1))
  pass(1001)
  t.equal(await heights.of(id, never), 9)
  t.equal(requested(), 3)
})
