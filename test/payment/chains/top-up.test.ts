/** Records of payments on chains keep the names of their fields, because services of several releases share a ledger. */
import t from 'tap'
import { encodeTopUp, readTopUp, topUpKind } from '../../../src/payment/chains/top-up.js'

t.test('a stored payment is read, and written under the same names', async (t) => {
  const stored = {
    state: 'credited',
    chain: 'arweave',
    token: 'arweave',
    id: 'tx',
    quantity: '1000000',
    winc: '766000',
    usdEquivalent: '0.00001',
    sender: 'sender',
    recipient: 'service',
    aim: 'named',
    destination: 'wallet',
    createdMs: 5,
    pricedMs: 4,
    height: 7,
    credits: 2,
  }
  const { aim: _aim, recipient: _recipient, ...early } = stored
  for (const one of [stored, early]) {
    const read = readTopUp({ kind: topUpKind, key: 'arweave:tx', value: JSON.stringify(one), version: 1 })
    t.match(read, { wallet: 'wallet', timesCredited: 2, state: 'credited' })
    t.equal(read.beneficiary, 'aim' in one ? 'named' : undefined)
    t.strictSame(JSON.parse(encodeTopUp(read)), one)
  }
})
