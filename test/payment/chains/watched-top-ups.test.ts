/** Which payments on a chain are looked at again, beside any number of transactions that are never mined. */
import t from 'tap'
import { createLog } from '../../../src/actor/log.js'
import type { LedgerRecord } from '../../../src/ledger/ledger-port.js'
import type { ChainReader, SeenPayment } from '../../../src/payment/chains/seen-payment.js'
import {
  encodeTopUp,
  minedKind,
  readTopUp,
  type TopUp,
  topUpKey,
  topUpKind,
  watchedKind,
} from '../../../src/payment/chains/top-up.js'
import { WatchedTopUps } from '../../../src/payment/chains/watched-top-ups.js'
import { paymentRig } from '../rig.js'

const own = Buffer.alloc(32, 9).toString('base64url')
const alice = Buffer.alloc(32, 1).toString('base64url')

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

t.test('each round looks at all payments in a block, and at some of all in turn', async (t) => {
  const { ledger } = await paymentRig(t)
  const mined = ['a', 'm', 'z'].map((id) => topUp(id, { height: 7 }))
  const unmined = Array.from({ length: 500 }, (_, at) => topUp(`x${String(at).padStart(4, '0')}`))
  const records = [...mined, ...unmined].flatMap((one) => {
    const key = topUpKey('arweave', one.id)
    const names = one.height === undefined ? [watchedKind] : [watchedKind, minedKind]
    return [
      { kind: topUpKind, key, value: encodeTopUp(one) },
      ...names.map((kind) => ({ kind, key, value: '1' })),
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
  for (let rounds = 0; rounds < 3; rounds += 1) {
    seen = []
    t.ok((await watched.round('arweave')) >= 1)
    t.strictSame(seen.slice(0, 3).sort(), ['a', 'm', 'z'], 'those in a block come first, all of them')
    t.ok(seen.length <= 203)
    inTurn.push(...seen.slice(3))
  }
  t.strictSame(inTurn.sort(), unmined.map(({ id }) => id).sort(), 'each of the others once')
  seen = []
  await watched.round('arweave')
  t.ok(seen.slice(3).includes('x0000'), 'and from the first on again')
  t.equal(await watched.round('ethereum'), 0)
})

t.test(
  'a payment is looked at in each round from its block on, and given up after a day without one',
  async (t) => {
    let isMined = false
    const facts = {
      quantity: 1_000_000n,
      sender: alice,
      recipient: own,
      isFinal: false,
      isBeyondWatching: false,
    }
    const reader: ChainReader = {
      chain: 'arweave',
      tokens: ['arweave'],
      find: async (_, id): Promise<SeenPayment> => ({
        id,
        ...facts,
        ...(isMined && id === 'mined' ? { height: 7 } : {}),
      }),
      close: async () => undefined,
    }
    const rig = await paymentRig(t, { readers: [reader], addresses: { arweave: own } })
    const named = async (kind: string): Promise<string[]> =>
      (await rig.ledger.records(kind, '', '', 10)).map(({ key }) => key)
    for (const id of ['mined', 'never'])
      t.equal((await rig.post('/v1/account/balance/arweave', JSON.stringify({ tx_id: id }))).status, 202)
    t.strictSame(await named(minedKind), [])
    isMined = true
    await rig.service.recheck()
    t.strictSame(await named(minedKind), [topUpKey('arweave', 'mined')])
    rig.setTime(Date.UTC(2026, 0, 2))
    t.equal(await rig.service.recheck(), 1)
    t.strictSame(await named(watchedKind), [topUpKey('arweave', 'mined')])
    t.strictSame(await named(minedKind), [topUpKey('arweave', 'mined')])
  },
)
