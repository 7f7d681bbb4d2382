/** Credits are the key's, also where it takes its alias over between the read of a wallet and the commit. */
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { systemClock } from '../../src/actor/clock.js'
import { EmbeddedLedger } from '../../src/ledger/embedded.js'
import { headKey } from '../../src/ledger/head-key.js'
import type { CommitOrder, MoneyLedger } from '../../src/ledger/ledger-port.js'
import { accountOf, Wallets } from '../../src/payment/books/wallets.js'
import type { CardEvent, CardProvider } from '../../src/payment/cards/card-provider.js'
import type { ChainReader } from '../../src/payment/chains/seen-payment.js'
import { scratch } from '../scratch.js'
import { type PaymentRig, paymentRig } from './rig.js'

const alias = Buffer.alloc(32, 1).toString('base64url')
const bob = Buffer.alloc(32, 2).toString('base64url')
const wallet = '0xFCAd0B19bB29D4674531d6f115237E16AfCE377c'

/** A ledger in which the key takes its alias over before the next commit that moves credits of the alias. */
class TakenOver {
  readonly ledger: MoneyLedger
  isArmed = false

  constructor(kept: MoneyLedger) {
    const touches = ({ transfers }: CommitOrder): boolean =>
      transfers.some((one) => 'debit' in one && [one.debit, one.credit].includes(accountOf(alias)))
    this.ledger = new Proxy(kept, {
      get: (of, name: keyof MoneyLedger) => {
        if (name !== 'commit') return (of[name] as (...given: unknown[]) => unknown).bind(of)
        return async (order: CommitOrder) => {
          if (this.isArmed && touches(order)) {
            this.isArmed = false
            const wallets = new Wallets(of)
            // A key without credits at either address is not recorded by itself.
            await wallets.recordAliases(wallet, [alias])
            await wallets.takeOverAlias(wallet, alias)
          }
          return of.commit(order)
        }
      },
    })
  }
}

function takenOver(): TakenOver {
  const folder = scratch('taken-over')
  const key = headKey(join(folder, 'key.pem'))
  return new TakenOver(new EmbeddedLedger({ path: join(folder, 'ledger'), clock: systemClock, key }))
}

async function has(t: Test, { ledger, service }: PaymentRig, taken: TakenOver, winc: string): Promise<void> {
  t.equal(taken.isArmed, false, 'the key has taken its alias over')
  t.equal((await service.balanceOf(wallet))?.winc, winc)
  const left = await ledger.account(accountOf(alias))
  t.equal((left?.creditsPosted ?? 0n) - (left?.debitsPosted ?? 0n), 0n, 'nothing is left at the alias')
  t.strictSame((await ledger.check()).faults, [])
}

t.test('a payment on a chain, credited and lost', async (t) => {
  let isThere = true
  const facts = { id: 'tx', quantity: 1_000_000n, sender: alias, recipient: bob }
  const reader: ChainReader = {
    chain: 'arweave',
    tokens: ['arweave'],
    find: async () => (isThere ? { ...facts, isFinal: true, isBeyondWatching: false } : 'absent'),
    close: async () => undefined,
  }
  for (const isLost of [false, true]) {
    const taken = takenOver()
    isThere = true
    taken.isArmed = !isLost
    const rig = await paymentRig(t, {
      readers: [reader],
      addresses: { arweave: bob },
      ledger: taken.ledger,
    })
    t.equal((await rig.post('/v1/account/balance/arweave', '{"tx_id":"tx"}')).status, 200)
    if (isLost) {
      isThere = false
      taken.isArmed = true
      await rig.service.recheck()
    }
    await has(t, rig, taken, isLost ? '0' : '766000')
  }
})

t.test('a card payment, credited and disputed', async (t) => {
  const cards: CardProvider = {
    name: 'stripe',
    open: async ({ quoteId }) => ({ id: 's', url: quoteId, client_secret: null }),
    read: async (body) => JSON.parse(Buffer.from(body).toString()) as CardEvent,
    since: async () => ({ entries: [] }),
    taken: async () => ({ entries: [] }),
    find: async () => undefined,
    refund: async () => true,
  }
  for (const isDisputed of [false, true]) {
    const taken = takenOver()
    const rig = await paymentRig(t, { cards: () => cards, ledger: taken.ledger })
    const { json } = await rig.get(`/v1/top-up/checkout-session/${alias}/usd/1000`)
    const quoteId = (json as { topUpQuote: { topUpQuoteId: string } }).topUpQuote.topUpQuoteId
    const tell = (event: CardEvent) => rig.post('/v1/stripe-webhook', JSON.stringify(event))
    taken.isArmed = !isDisputed
    t.equal((await tell({ kind: 'paid', quoteId, payment: 'p', amount: 1000, currency: 'usd' })).status, 200)
    if (isDisputed) {
      taken.isArmed = true
      t.equal((await tell({ kind: 'disputed', quoteId, payment: 'p', reason: 'fraudulent' })).status, 200)
    }
    await has(t, rig, taken, isDisputed ? '0' : '1225600000000')
  }
})

t.test('what is left of an approval, and what an item gives back to one that is over', async (t) => {
  for (const isItem of [false, true]) {
    const taken = takenOver()
    const rig = await paymentRig(t, { ledger: taken.ledger })
    const { credits } = rig.service
    const given = { id: 'g', kind: 'posted', amount: 10_000_000n, reason: 'payment', reference: 'r' } as const
    const start = { ...given, debit: 'source:test', credit: accountOf(alias) }
    await rig.ledger.commit({ transfers: [start] })
    const pair = { payingAddress: alias, approvedAddress: bob }
    await credits.approve({ itemId: 'a', winc: '9000000', ...pair })
    if (isItem) {
      const spender = { address: bob, signatureType: 1, paidBy: [alias] }
      const held = await credits.reserve({ itemId: 'i', bytes: 1, ...spender })
      t.match(held, { paid: true })
    } else taken.isArmed = true
    await credits.revoke({ itemId: 'r', ...pair })
    if (isItem) {
      taken.isArmed = true
      await credits.refund('i')
    }
    await has(t, rig, taken, '10000000')
  }
})
