/** Payments in SOL, USDC and ARIO on Solana, and in KYVE, as nodes have answered: a small server says it again. */
import t, { type Test } from 'tap'
import { systemClock } from '../../../src/actor/clock.js'
import { encodeBase58 } from '../../../src/format/base58.js'
import { KyveReader } from '../../../src/payment/chains/kyve-reader.js'
import { SolanaReader } from '../../../src/payment/chains/solana-reader.js'
import { type PaymentRig, paymentRig } from '../rig.js'
import {
  amountData,
  coinPay,
  key,
  kyveOwn,
  kyvePayer,
  type Recorded,
  recorded,
  sent,
  tokenPay,
} from './recorded-answers.js'
import { answeringServer } from './recorded-rpc.js'

const [own, payer, friend, stranger] = [key(9), key(1), key(2), key(3)]
const [ownToken, payerToken, strangerToken, relay] = [key(19), key(11), key(13), key(4)]
const mints = { 'solana-usdc': key(50), ario: key(51) }
interface Node {
  /** By signature: how far it is, and what it is. */
  readonly has: Map<string, { readonly level: 'confirmed' | 'finalized'; readonly transaction: object }>
  status: number
}

async function solana(
  t: Test,
): Promise<{ readonly rig: PaymentRig; readonly node: Node; readonly calls: string[] }> {
  const node: Node = { has: new Map(), status: 200 }
  const calls: string[] = []
  const url = await answeringServer(t, ({ body }) => {
    const { method, params, id } = body as {
      method: string
      params: [string, { commitment: string }]
      id: number
    }
    calls.push(`${method} ${params[1].commitment}`)
    if (node.status !== 200) return node.status
    const found = node.has.get(params[0])
    const isFar = found?.level === 'finalized' || params[1].commitment === 'confirmed'
    return { jsonrpc: '2.0', id, result: found !== undefined && isFar ? found.transaction : null }
  })
  const reader = new SolanaReader({ url, wallet: own, mints, limitMs: 60_000 }, systemClock)
  const addresses = Object.fromEntries(reader.tokens.map((token) => [token, own]))
  return { rig: await paymentRig(t, { readers: [reader], addresses }), node, calls }
}

let signatures = 0
function signature(): string {
  signatures += 1
  return encodeBase58(Buffer.concat([Buffer.alloc(63, 7), Uint8Array.of(signatures)]))
}

const tell = (rig: PaymentRig, token: string, id: string) =>
  rig.post(`/v1/account/balance/${token}`, JSON.stringify({ tx_id: id }))
const winc = async (rig: PaymentRig, address: string) => (await rig.service.balanceOf(address))?.winc

t.test('SOL: pending while confirmed, credited when final, once', async (t) => {
  const { rig, node, calls } = await solana(t)
  const id = signature()
  t.match(await tell(rig, 'solana', signature()), { status: 404, text: 'Transaction not found' })
  // One SOL of 150 USD, at 6.25 USD an AR: 24 AR, less the fee.
  const transaction = recorded({ keys: [payer, own], before: [3e9, 1e9], after: [2e9 - 5000, 2e9] })
  node.has.set(id, { level: 'confirmed', transaction })
  t.match(await tell(rig, 'solana', id), {
    status: 202,
    json: {
      pendingTransaction: { transactionQuantity: '1000000000', winstonCreditAmount: '18384000000000' },
    },
  })
  t.equal(await winc(rig, payer), undefined)
  node.status = 500
  t.equal((await tell(rig, 'solana', id)).status, 202, 'nothing follows from silence')
  node.status = 200
  node.has.set(id, { level: 'finalized', transaction })
  await rig.service.recheck()
  t.equal(await winc(rig, payer), '18384000000000')
  for (const again of await Promise.all([1, 2, 3].map(() => tell(rig, 'solana', id))))
    t.match(again, { status: 200, json: { message: 'Transaction already credited' } })
  t.equal(await winc(rig, payer), '18384000000000', 'once')
  const byTable = recorded({
    keys: [payer],
    loaded: { writable: [stranger, own], readonly: [] },
    before: [3e9, 1, 1, 7, 1e9],
    after: [2e9 - 5000, 1, 1, 7, 2e9],
  })
  const [short, lost] = [signature(), signature()]
  node.has.set(short, { level: 'finalized', transaction: byTable })
  t.match(await tell(rig, 'solana', short), {
    status: 200,
    json: { creditedTransaction: { transactionQuantity: '1000000000' } },
  })
  const elsewhere = recorded({
    keys: [payer],
    loaded: { writable: [own, stranger], readonly: [] },
    before: [3e9, 1, 1, 7, 1e9],
    after: [2e9 - 5000, 1, 1, 7, 2e9],
  })
  node.has.set(lost, { level: 'finalized', transaction: elsewhere })
  t.equal((await tell(rig, 'solana', lost)).status, 400, 'the next account of the table was paid')
  t.equal(await winc(rig, payer), String(2n * 18384000000000n))
  t.match(await tell(rig, 'ed25519', id), { status: 200 }, 'by the other word for it, too')
  t.equal(await winc(rig, payer), String(2n * 18384000000000n))
  t.ok(calls.every((one) => /^getTransaction (?:finalized|confirmed)$/.test(one)))
  t.strictSame((await rig.ledger.check()).faults, [])
})

t.test('tokens of SPL: USDC and ARIO, for whom the memo names', async (t) => {
  const { rig, node } = await solana(t)
  const paid = (mint: string, amount: string, memo?: string): string => {
    const id = signature()
    const transaction = recorded({
      keys: [payer, payerToken, ownToken],
      before: [1e9, 2e6, 2e6],
      after: [1e9 - 5000, 2e6, 2e6],
      tokens: [
        [mint, payer, amount, '0'],
        [mint, own, '10', String(BigInt(amount) + 10n)],
      ],
      ...(memo === undefined ? {} : { memo }),
    })
    node.has.set(id, { level: 'finalized', transaction })
    return id
  }
  t.match(await tell(rig, 'solana-usdc', paid(mints['solana-usdc'], '6250000')), {
    status: 200,
    json: { creditedTransaction: { winstonCreditAmount: '766000000000', transactionSenderAddress: payer } },
  })
  const aimed = paid(mints.ario, '312500000', `turboCreditDestinationAddress=${friend}`)
  t.match(await tell(rig, 'ario', aimed), {
    status: 200,
    json: { creditedTransaction: { destinationAddress: friend, winstonCreditAmount: '766000000000' } },
  })
  t.equal(await winc(rig, friend), '766000000000')
  const other = paid(key(52), '6250000')
  t.match(await tell(rig, 'solana-usdc', other), {
    status: 400,
    text: 'The transaction does not pay this service',
  })
  t.match(await tell(rig, 'ario', paid(mints['solana-usdc'], '1')), { status: 400 }, 'another token')
  t.strictSame((await rig.ledger.check()).faults, [])
})

t.test('what is no payment to us: another recipient, one that failed, one that takes from us', async (t) => {
  const { rig, node } = await solana(t)
  const rows: [why: string, transaction: object][] = [
    ['to somebody else', recorded({ keys: [payer, stranger], before: [3e9, 0], after: [2e9, 1e9] })],
    [
      'failed',
      recorded({
        keys: [payer, own],
        before: [3, 1],
        after: [2, 2],
        err: { InstructionError: [0, 'Custom'] },
      }),
    ],
    ['from us', recorded({ keys: [payer, own], before: [1e9, 3e9], after: [2e9, 2e9] })],
    ['nothing', recorded({ keys: [payer, own], before: [1e9, 3e9], after: [1e9, 3e9] })],
    ['no shape', { slot: 1, meta: { err: null }, transaction: {} }],
    ['no numbers', recorded({ keys: [payer, own], before: [1, Number.NaN], after: [1, 1e300] })],
    ['a number as text', { ...recorded({ keys: [payer, own], before: [1], after: [1] }) }],
  ]
  for (const [why, transaction] of rows) {
    const id = signature()
    node.has.set(id, { level: 'finalized', transaction })
    t.equal((await tell(rig, 'solana', id)).status, 400, why)
  }
  t.equal((await tell(rig, 'solana', '')).status, 400)
  for (const id of ['x', 'a'.repeat(64), encodeBase58(Buffer.alloc(63, 1))])
    t.equal((await tell(rig, 'solana', id)).status, 404, id)
  t.strictSame(await rig.ledger.accounts('wallet:', '', 10), [])
})

/** A transfer of coins whose fee `relay` pays; `change`: what else is in it. */
const sponsored = (change: Partial<Recorded> = {}): object =>
  recorded({
    keys: [relay, payer, own, stranger],
    before: [5e9, 3e9, 1e9, 4e9],
    after: [5e9 - 10_000, 2e9, 2e9, 4e9],
    pays: [coinPay(1, 2, 10n ** 9n)],
    ...change,
  })
/** The same of tokens. The fourth account is another one for tokens, of `stranger`. */
const sponsoredTokens = (change: Partial<Recorded> = {}): object =>
  recorded({
    keys: [relay, payerToken, ownToken, strangerToken],
    before: [5e9, 2e6, 2e6, 2e6],
    after: [5e9 - 10_000, 2e6, 2e6, 2e6],
    tokens: [
      [mints.ario, payer, '400000000', '0'],
      [mints.ario, own, '0', '400000000'],
      [mints.ario, stranger, '400000000', '400000000'],
    ],
    pays: [tokenPay(1, 2, 400_000_000n, 0)],
    ...change,
  })
const [half, ario] = [5n * 10n ** 8n, 400_000_000n]
const named = (text: string) => ({ memo: `turboCreditDestinationAddress=${text}` })
const swapped: Partial<Recorded> = {
  tokens: [
    [mints.ario, payer, '0', '0'],
    [mints.ario, own, '0', '400000000'],
    [mints.ario, stranger, '400000000', '0'],
  ],
}

const payers: readonly [what: string, token: string, transaction: object, credited: string | undefined][] = [
  ['coins, the fee by another', 'solana', sponsored(), payer],
  ['for whom the memo names', 'solana', sponsored({ ...named(friend), signers: 2 }), friend],
  ['a memo beside a payer who has not signed', 'solana', sponsored(named(friend)), payer],
  [
    'a program that is called moves the coins',
    'solana',
    sponsored({ pays: [], inner: [coinPay(1, 2, 10n ** 9n)] }),
    payer,
  ],
  [
    'a wallet with a seed: its base signs',
    'solana',
    sponsored({
      pays: [{ program: 'system', accounts: [3, 1, 2], data: amountData([11, 0, 0, 0], 10n ** 9n) }],
    }),
    payer,
  ],
  ['in two transfers', 'solana', sponsored({ pays: [coinPay(1, 2, half), coinPay(1, 2, half)] }), payer],
  ['of two payers', 'solana', sponsored({ pays: [coinPay(1, 2, half), coinPay(3, 2, half)] }), undefined],
  [
    'of two payers, one by a program',
    'solana',
    sponsored({ pays: [coinPay(1, 2, half)], inner: [coinPay(3, 2, half)] }),
    undefined,
  ],
  ['from an account that is closed', 'solana', sponsored({ pays: [] }), undefined],
  [
    'another program with the same data',
    'solana',
    sponsored({ pays: [{ ...coinPay(1, 2, half), program: 'token' }] }),
    undefined,
  ],
  [
    'to itself, and by a payer',
    'solana',
    sponsored({ pays: [coinPay(2, 2, half), coinPay(1, 2, 10n ** 9n)] }),
    payer,
  ],
  ['tokens, the fee by another', 'ario', sponsoredTokens(), payer],
  ['tokens that a delegate sends', 'ario', sponsoredTokens({ pays: [tokenPay(1, 2, ario, 3)] }), payer],
  [
    'tokens by the older instruction',
    'ario',
    sponsoredTokens({ pays: [{ program: 'token', accounts: [1, 2, 0], data: amountData([3], ario) }] }),
    payer,
  ],
  [
    'tokens with a fee',
    'ario',
    sponsoredTokens({
      pays: [
        { program: 'token', accounts: [1, 0, 2, 0], data: amountData([26, 1], ario, 6, ...Buffer.alloc(8)) },
      ],
    }),
    payer,
  ],
  ['tokens out of a swap', 'ario', sponsoredTokens({ ...swapped, inner: [tokenPay(3, 1, ario, 3)] }), payer],
  [
    'tokens of two payers',
    'ario',
    sponsoredTokens({ pays: [tokenPay(1, 2, 1n, 0), tokenPay(3, 2, ario, 0)] }),
    undefined,
  ],
  [
    'tokens from an account that nobody knows',
    'ario',
    sponsoredTokens({ pays: [tokenPay(0, 2, ario, 0)] }),
    undefined,
  ],
  [
    'tokens that are made',
    'ario',
    sponsoredTokens({ pays: [{ program: 'token', accounts: [0, 2, 0], data: amountData([7], ario) }] }),
    undefined,
  ],
]

t.test('who has paid is credited, whoever pays the fee', async (t) => {
  for (const [what, token, transaction, credited] of payers) {
    const { rig, node } = await solana(t)
    const id = signature()
    node.has.set(id, { level: 'finalized', transaction })
    const answer = await tell(rig, token, id)
    const holders = (await rig.ledger.accounts('wallet:', '', 10)).map(({ name }) => name)
    t.strictSame(holders, credited === undefined ? [] : [`wallet:${credited}`], what)
    if (credited !== undefined) t.equal(answer.status, 200, what)
    else t.match(answer, { status: 400, text: 'The transaction does not say which wallet has paid' }, what)
  }
})

t.test('what came in another way than by transfers is credited to nobody', async (t) => {
  const { rig, node } = await solana(t)
  const id = signature()
  node.has.set(id, { level: 'finalized', transaction: sponsored({ pays: [coinPay(1, 2, half)] }) })
  t.match(await tell(rig, 'solana', id), {
    status: 200,
    json: { creditedTransaction: { transactionQuantity: String(half), transactionSenderAddress: payer } },
  })
})

t.test('KYVE: credited at once, since its blocks are final', async (t) => {
  const has = new Map<string, object>()
  let status = 200
  const url = await answeringServer(t, ({ path }) => {
    if (status !== 200) return status
    return (
      has.get(path.split('/').at(-1) ?? '') ?? { code: 5, message: 'tx not found: NotFound', details: [] }
    )
  })
  const reader = new KyveReader({ url, limitMs: 60_000 }, systemClock)
  const rig = await paymentRig(t, { readers: [reader], addresses: { kyve: kyveOwn } })
  const hash = (digit: string): string => digit.repeat(64)
  t.match(await tell(rig, 'kyve', hash('0')), { status: 404 })
  status = 500
  t.equal((await tell(rig, 'kyve', hash('A'))).status, 503)
  status = 200
  // A KYVE of 0.03 USD, at 6.25 USD an AR: 4,800,000,000 winc, less the fee.
  has.set(hash('A'), sent(hash('A')))
  t.match(await tell(rig, 'kyve', hash('a')), {
    status: 200,
    json: { creditedTransaction: { winstonCreditAmount: '3676800000', transactionSenderAddress: kyvePayer } },
  })
  t.match(await tell(rig, 'kyve', hash('A')), {
    status: 200,
    json: { message: 'Transaction already credited' },
  })
  t.equal(await winc(rig, kyvePayer), '3676800000', 'in any case of letters, once')
  const rows: [digit: string, change: Parameters<typeof sent>[1]][] = [
    ['B', { to: kyvePayer }],
    ['C', { denom: 'uother' }],
    ['D', { code: 11 }],
    ['E', { amount: '0' }],
    ['F', { amount: '-5' }],
  ]
  for (const [digit, change] of rows) {
    has.set(hash(digit), sent(hash(digit), change))
    t.equal((await tell(rig, 'kyve', hash(digit))).status, 400, digit)
  }
  has.set(hash('1'), sent(hash('2')))
  t.equal((await tell(rig, 'kyve', hash('1'))).status, 503, 'an answer about another one')
  const aimed = sent(hash('3'), { memo: `turboCreditDestinationAddress=${friend}` })
  has.set(hash('3'), aimed)
  t.equal((await tell(rig, 'kyve', hash('3'))).status, 200)
  t.equal(await winc(rig, friend), '3676800000')
  t.strictSame((await rig.ledger.check()).faults, [])
})
