/** Which payments on a chain are looked at again, beside any number of transactions that are never mined. */
import t from 'tap'
import { createLog } from '../../../src/actor/log.js'
import type { LedgerRecord } from '../../../src/ledger/ledger-port.js'
import type { ChainReader, SeenPayment } from '../../../src/payment/chains/seen-payment.js'
import {
  encodeTopUp,
  readTopUp,
  type TopUp,
  topUpKey,
  topUpKind,
  watchedKind,
} from '../../../src/payment/chains/top-up.js'
import { WatchedTopUps } from '../../../src/payment/chains/watched-top-ups.js'
import { paymentRig } from '../rig.js'

const own = Buffer.alloc(32, 9).toString('base64url')
const [alice, bob] = [1, 2].map((byte) => Buffer.alloc(32, byte).toString('base64url')) as [string, string]

function topUp(id: string, more: Partial<TopUp> = {}): TopUp {
  return {
    state: 'pending',
    chain: 'arweave',
    token: 'arweave',
    id,
    quantity: '1000000',
    winc: '766000',
    usdEquivalent: '1',
    sender: alice,
    wallet: alice,
    createdMs: 0,
    timesCredited: 0,
    ...more,
  }
}

t.test('each round looks at all payments in a block, and at some others in turn', async (t) => {
  const { ledger } = await paymentRig(t)
  const mined = ['a', 'm', 'z'].map((id) => topUp(id, { height: 7 }))
  const credited = topUp('n', { state: 'credited', timesCredited: 1 })
  const unmined = Array.from({ length: 1100 }, (_, at) => topUp(`x${String(at).padStart(4, '0')}`))
  const records = [...mined, credited, ...unmined].flatMap((one) => {
    const key = topUpKey('arweave', one.id)
    return [
      { kind: topUpKind, key, value: encodeTopUp(one) },
      { kind: watchedKind, key, value: '1' },
    ]
  })
  await ledger.commit({ transfers: [], records })
  let seen: string[] = []
  const watched = new WatchedTopUps(ledger, createLog('silent', 'test'), async (stored: LedgerRecord) => {
    const { id, ...rest } = readTopUp(stored)
    seen.push(id)
    return { ...rest, id, state: id === 'm' ? 'credited' : rest.state }
  })
  const inTurn: string[] = []
  for (let rounds = 0; rounds < 6; rounds += 1) {
    seen = []
    t.equal(await watched.round('arweave'), 1)
    t.strictSame(seen.slice(0, 4).sort(), ['a', 'm', 'n', 'z'], 'those in a block come first, all of them')
    inTurn.push(...seen.slice(4))
  }
  t.strictSame(
    inTurn,
    unmined.map(({ id }) => id),
    'each of the others once, then from the first on again',
  )
  seen = []
  await watched.round('arweave')
  t.equal(seen[4], 'x0000')
  t.equal(await watched.round('ethereum'), 0)
})

t.test('a sender has few payments without a block, and more when they are in one', async (t) => {
  let mined = new Set<string>()
  const reader: ChainReader = {
    chain: 'arweave',
    tokens: ['arweave'],
    find: async (_, id): Promise<SeenPayment> => ({
      id,
      quantity: 1_000_000n,
      sender: id.startsWith('b') ? bob : alice,
      recipient: own,
      isFinal: false,
      isBeyondWatching: false,
      ...(mined.has(id) ? { height: 7 } : {}),
    }),
    close: async () => undefined,
  }
  const rig = await paymentRig(t, { readers: [reader], addresses: { arweave: own } })
  const report = async (id: string): Promise<number> =>
    (await rig.post('/v1/account/balance/arweave', JSON.stringify({ tx_id: id }))).status
  const first = Array.from({ length: 16 }, (_, at) => `a${at}`)
  for (const id of first) t.equal(await report(id), 202)
  t.equal(await report('late'), 503, 'one of its sender more')
  t.equal(await report('b0'), 202, 'another sender')
  mined = new Set(['late', ...first.slice(0, 8)])
  t.equal(await report('late'), 202, 'in a block')
  await rig.service.recheck()
  // The first round saw the blocks, the second one counts by what is written since.
  await rig.service.recheck()
  t.equal(await report('later'), 202, 'room again')
})
