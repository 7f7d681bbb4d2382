/**
 * Rubbish, and what is nearly right, on every route: each is answered, none of it is a failure of ours (500), and the books are
 * right behind it. The seed repeats a run.
 */
import { join } from 'node:path'
import pino from 'pino'
import t from 'tap'
import type { Log } from '../../src/actor/log.js'
import { availableOf } from '../../src/ledger/ledger-account.js'
import { approvalFaults } from '../../src/payment/books/approval-faults.js'
import type { ChainReader, SeenPayment } from '../../src/payment/chains/seen-payment.js'
import { LocalNameRegistry } from '../../src/payment/names/name-registry.js'
import { paymentParameters } from '../../src/payment/requests/payment-parameters.js'
import { makeServiceToken } from '../../src/payment/requests/service-token.js'
import { newAccount, payee } from '../admission/scene.js'
import { scriptedFacilitator } from '../admission/scripted-facilitator.js'
import { payment } from '../admission/shop.js'
import { below, pick, random } from '../property.js'
import { scratch } from '../scratch.js'
import { type PaymentRig, paymentRig, secret } from './rig.js'
import { testWallets } from './wallet-keys.js'

const rounds = Number(process.env.FUZZ_ROUNDS ?? 12)
const start = Date.UTC(2026, 0, 1)

const numbers = [
  '0',
  '1',
  '-1',
  '-0',
  '1.5',
  '1e9',
  '1e400',
  '0x10',
  '+1',
  ' 1',
  '9'.repeat(30),
  '9'.repeat(400),
]
const words = [
  '',
  ' ',
  'NaN',
  'Infinity',
  'null',
  'undefined',
  'true',
  '__proto__',
  'constructor',
  'toString',
  'valueOf',
  'hasOwnProperty',
  '[object Object]',
  '../..',
  '..%2f',
  '%',
  '%00',
  '\0',
  '\u0001',
  '\r\nX: y',
  '\u0663',
  '"',
  "'",
  '<script>',
  '|',
  '\\',
  '\u{1f600}',
  '\ufeff',
  '\uffff',
  'a'.repeat(500),
  'é'.repeat(300),
  '{}',
  '[]',
  '0n',
]
const terms = [
  'usd',
  'jpy',
  'arweave',
  'ethereum',
  'solana',
  'base-usdc',
  'kyve',
  'ario',
  'email',
  'hosted',
  'embedded',
  'payment-intent',
  'checkout-session',
  'buy-name',
  'extend-lease',
  'increase-undername-limit',
  'upgrade-name',
  'set-record',
  'remove-record',
  'lease',
  'permabuy',
  'list-only',
  'list-or-signer',
  'later',
  'a@b.co',
  'some-name',
  '2026-01-31',
  '2026-02-31',
  '0000-00-00',
  '1000',
  '100000',
  '1',
  '3',
]

interface Described {
  readonly path: string
  readonly methods: readonly string[]
  readonly query?: readonly string[]
}

/** Names of fields that bodies have. */
const fields = [
  'tx_id',
  'bytes',
  'paymentHeader',
  'dataItemId',
  'byteCount',
  'actualByteCount',
  'mode',
  'type',
  'years',
  'name',
  'nonce',
  'ownerAddress',
  'processId',
  'antId',
  'undername',
  'transactionId',
  'ttlSeconds',
  'signature',
  'publicKey',
  'code',
  'permille',
  'expiresMs',
  'usesMax',
  'isForNew',
  'leastMicroUsd',
  'mostMicroUsd',
  'card',
  'signedTransaction',
]

function someJson(depth = 0): unknown {
  switch (below(depth > 2 ? 5 : 8)) {
    case 0:
      return pick([...numbers.map(Number), Number.MAX_SAFE_INTEGER, -1, 0.5])
    case 1:
      return pick([null, true, false])
    case 2:
    case 3:
      return pick(words)
    case 4:
      return pick(terms)
    case 5:
      return Array.from({ length: below(4) }, () => someJson(depth + 1))
    default:
      return Object.fromEntries(Array.from({ length: below(7) }, () => [pick(fields), someJson(depth + 1)]))
  }
}

t.test('every route, with rubbish in every place', async (t) => {
  const failures: string[] = []
  const log: Log = pino({ level: 'error' }, { write: (line: string) => void failures.push(line) })
  const wallets = testWallets()
  const addresses = wallets.map(({ address }) => address)
  const facilitator = await scriptedFacilitator(t)
  const payer = newAccount()
  facilitator.balances.set(payer.address.toLowerCase(), 10n ** 12n)
  const folder = scratch('fuzz-names')
  const paths = { list: join(folder, 'names'), leases: join(folder, 'leases') }
  const own = 'O'.repeat(43)
  const reader: ChainReader = {
    chain: 'arweave',
    tokens: ['arweave'],
    find: async (_, id): Promise<SeenPayment | 'absent'> =>
      id.length % 2 === 0
        ? 'absent'
        : {
            id,
            sender: pick(addresses),
            recipient: own,
            quantity: 1000n,
            isFinal: true,
            isBeyondWatching: true,
          },
    close: async () => undefined,
  }
  const rig = await paymentRig(t, {
    log,
    readers: [reader],
    addresses: { arweave: own },
    names: new LocalNameRegistry(paths, () => start),
    // Each signature counts as that of another client, so that all of them are looked at.
    clientOf: () => String(random()),
    x402: {
      network: 'base-sepolia',
      wallet: payee.toLowerCase(),
      facilitatorUrl: facilitator.url,
      protocol: 'http',
      verifyMs: 30_000,
      settleMs: 30_000,
    },
  })
  const bearer = { authorization: `Bearer ${await makeServiceToken(secret, start)}` }
  const known = await seeded(rig, addresses)
  const value = (): string => pick(pick([numbers, words, terms, addresses, known]))
  const described = rig.service.routes.flatMap(({ about }) => about as unknown as readonly Described[])
  t.ok(described.length > 40, `${described.length} routes`)
  const bad: string[] = []
  const seen = new Map<number, number>()
  for (const { path, methods, query = [] } of described) {
    for (let round = 0; round < rounds; round += 1) {
      const full = path.replace(/\{(\w+)\}/g, (_, name: string) => {
        const example = paymentParameters[name]?.example ?? ''
        return encodeURIComponent(below(3) === 0 ? String(example) : value() || 'x')
      })
      const given = new URLSearchParams()
      for (const name of query) {
        const example = String(paymentParameters[name]?.example ?? '')
        for (let times = below(3); times > 0; times -= 1)
          given.append(name, below(3) === 0 ? example : value())
      }
      const headers: Record<string, string> = {}
      if (below(2) === 0) Object.assign(headers, bearer)
      if (below(3) === 0) Object.assign(headers, pick(wallets).headers(pick(['nonce', '', known[0] ?? ''])))
      if (below(8) === 0) headers['x-signature'] = pick(['', 'AAAA', 'A'.repeat(700)])
      if (below(8) === 0) headers['x-public-key'] = pick(['', 'AAAA', 'A'.repeat(87), 'A'.repeat(683)])
      if (below(8) === 0)
        headers['x-signature-type'] = pick(['0', '1', '2', '3', '4', '5', '7', '101', '-1', 'x'])
      if (path.includes('x402') && below(3) === 0)
        Object.assign(
          headers,
          await payment(payer, 1, { to: payee, value: pick(['1000', '5000', '50000000']) }),
        )
      const target = `${full}?${given}`
      const isGet = methods.includes('GET')
      const body = pick([
        '',
        '{',
        '\0',
        '[]',
        'null',
        '""',
        'card=4242424242424242',
        JSON.stringify(someJson()),
      ])
      const { status, text } = await (isGet ? rig.get(target, headers) : rig.post(target, body, headers))
      seen.set(status, (seen.get(status) ?? 0) + 1)
      if (status === 500 || status > 503 || status < 200)
        bad.push(
          [target, JSON.stringify(headers), body, `${status} ${text}`]
            .map((one) => one.slice(0, 300))
            .join('\n'),
        )
    }
  }
  t.strictSame(bad, [], [...new Set(failures)].slice(0, 5).join('\n'))
  t.ok((seen.get(200) ?? 0) > 100, `some of it was right: ${JSON.stringify([...seen])}`)
  t.strictSame((await rig.ledger.check(approvalFaults)).faults, [])
  for (const start of ['wallet:', 'approval:', 'gift:', 'x402:'])
    for (const account of await rig.ledger.accounts(start, '', 10_000))
      t.ok(availableOf(account) >= 0n, `${account.name} is not below zero`)
})

/** Wallets with credits, a gift, and an approval: ids that mean something. */
async function seeded(rig: PaymentRig, addresses: readonly string[]): Promise<string[]> {
  const known: string[] = []
  for (const to of [...new Set(addresses), 'a@b.co']) {
    const type = to.includes('@') ? '?destinationAddressType=email' : ''
    const { json } = await rig.get(`/v1/top-up/checkout-session/${encodeURIComponent(to)}/usd/100000${type}`)
    const { topUpQuote, paymentSession } = json as {
      topUpQuote: { topUpQuoteId: string }
      paymentSession: { id: string }
    }
    known.push(topUpQuote.topUpQuoteId, paymentSession.id)
    if (known.length % 4 === 2) await rig.post(`/checkout/${paymentSession.id}`, 'card=4242424242424242')
  }
  return known
}
