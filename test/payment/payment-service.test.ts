import t from 'tap'
import { systemClock } from '../../src/actor/clock.js'
import { isRefusal } from '../../src/format/refusal.js'
import { approvalFaults } from '../../src/payment/books/approval-faults.js'
import type { CreditsPort } from '../../src/payment/credits-port.js'
import { RemoteCredits } from '../../src/payment/links/remote-credits.js'
import { makeServiceToken } from '../../src/payment/requests/service-token.js'
import { paymentRig, secret } from './rig.js'
import { testWallets } from './wallet-keys.js'

const wallets = testWallets()
const start = Date.UTC(2026, 0, 1)

/** Pays by card for a wallet: 10 USD are 1,225,600,000,000 winc. */
async function pay(
  rig: Awaited<ReturnType<typeof paymentRig>>,
  address: string,
  query = '',
): Promise<string> {
  const opened = await rig.get(`/v1/top-up/checkout-session/${address}/usd/1000?${query}`)
  const { topUpQuote, paymentSession } = opened.json as {
    topUpQuote: { topUpQuoteId: string }
    paymentSession: { id: string }
  }
  await rig.post(`/checkout/${paymentSession.id}`, 'card=4242424242424242')
  return topUpQuote.topUpQuoteId
}

t.test(
  'a signed request is who signed it, in every way that wallets sign; a tampered one is nobody',
  async (t) => {
    const rig = await paymentRig(t)
    const paid = new Set<string>()
    for (const { name, address, headers } of wallets) {
      const before = paid.has(address) ? 200 : 404
      t.equal((await rig.get('/v1/balance', headers('n0'))).status, before, name)
      paid.add(address)
      await pay(rig, address)
      const { status, json } = await rig.get('/v1/balance', headers('0123456789abcdef0123456789abcdef'))
      t.equal(status, 200, name)
      t.match(json, { winc: /^[1-9]\d+$/ }, name)
      const right = headers('one')
      for (const [header, value] of Object.entries({
        'x-nonce': 'two',
        'x-public-key': 'AAAA',
        'x-signature': 'AAAA',
        'x-signature-type': '9',
      })) {
        const { status, text } = await rig.get('/v1/balance', { ...right, [header]: value })
        t.equal(
          `${status} ${text}`,
          '403 Invalid signature or missing required headers',
          `${name}: ${header}`,
        )
      }
    }
    t.equal((await rig.get('/v1/account/payments')).status, 401)
    t.strictSame((await rig.ledger.check(approvalFaults)).faults, [])
  },
)

t.test('a history in pages, by a cursor that is not broken by new payments', async (t) => {
  const rig = await paymentRig(t)
  const [wallet] = wallets
  if (wallet === undefined) throw new Error('no wallet')
  const ids: string[] = []
  for (let at = 0; at < 5; at += 1) {
    rig.setTime(start + at * 1000)
    ids.unshift(await pay(rig, wallet.address))
  }
  const page = async (
    query: string,
  ): Promise<{ payments: { receiptId: string }[]; hasMore: boolean; cursor: string | null }> =>
    (await rig.get(`/v1/account/payments?${query}`, wallet.headers('n'))).json as never
  const first = await page('limit=2')
  t.match(first.payments[0], {
    type: 'fiat',
    wincCredited: '1225600000000',
    paymentAmount: '1000',
    currencyType: 'usd',
    giftMessage: null,
  })
  t.equal(first.hasMore, true)
  rig.setTime(start + 60_000)
  await pay(rig, wallet.address)
  const second = await page(`limit=2&cursor=${first.cursor}`)
  const third = await page(`limit=2&cursor=${second.cursor}`)
  t.match(third, { hasMore: false, cursor: null })
  t.strictSame(
    [first, second, third].flatMap(({ payments }) => payments.map((one) => one.receiptId)),
    ids,
  )
  for (const query of ['limit=0', 'limit=101', 'limit=x', 'cursor=x', 'cursor=e30'])
    t.equal((await rig.get(`/v1/account/payments?${query}`, wallet.headers('n'))).status, 400, query)
})

t.test('numbers and words of prices', async (t) => {
  const rig = await paymentRig(t)
  // 2^30 winston for 10 GiB: a tenth of a winston a byte. An item is 20 millionths of USD, at 6.25 USD for an AR: 3,200,000.
  const rows: [path: string, status: number, answer: object | string][] = [
    ['/v1/price/bytes/0', 200, { winc: '3200000', adjustments: [] }],
    ['/v1/price/bytes/1', 200, { winc: '3200001' }],
    ['/v1/price/bytes/1000', 200, { winc: '3200100' }],
    ['/v1/price/1001', 200, { winc: '3200101' }],
    ['/price/arweave/1001', 200, '3200101'],
    ['/v1/price/bytes/-1', 400, 'Invalid byte count'],
    ['/v1/price/bytes/1.5', 400, 'Invalid byte count'],
    ['/v1/price/bytes/x', 400, 'Invalid byte count'],
    [`/v1/price/bytes/${2 ** 53}`, 400, 'Byte count too large'],
    [
      '/v1/price/arweave/1000',
      200,
      { winc: '766', actualPaymentAmount: '1000', fees: [{ operatorMagnitude: 0.766 }] },
    ],
    ['/v1/price/arweave/10', 200, { winc: '7', actualPaymentAmount: '10' }],
    [
      '/v1/price/arweave/1',
      400,
      'Crypto payment amount is too small! Token value must convert to at least one winc',
    ],
    // 2,500 USD an ETH, 6.25 an AR: 400 AR, less the fee.
    [
      '/v1/price/ethereum/1000000000000000000',
      200,
      { winc: '306400000000000', actualPaymentAmount: '400000000000000' },
    ],
    ['/v1/price/base-usdc/6250000', 200, { winc: '766000000000', actualPaymentAmount: '1000000000000' }],
    [
      '/v1/price/usd/1000',
      200,
      { winc: '1225600000000', actualPaymentAmount: 1000, quotedPaymentAmount: 1000, adjustments: [] },
    ],
    ['/v1/price/jpy/1500', 200, { winc: '1225600000000' }],
    ['/v1/price/USD/1000?destinationAddress=placeholder&', 200, { winc: '1225600000000' }],
    ['/v1/price/usd/499', 400, /too small/ as never],
    ['/v1/price/usd/1000001', 400, /too large/ as never],
    [
      '/v1/price/usd/0',
      400,
      'The provided payment amount (0) is invalid; it must be a positive non-decimal integer!',
    ],
    [
      '/v1/price/usd/1.5',
      400,
      'The provided payment amount (1.5) is invalid; it must be a positive non-decimal integer!',
    ],
    [`/v1/price/usd/${'9'.repeat(79)}`, 400, /is invalid/ as never],
    ['/v1/price/xyz/1', 400, "The currency type 'xyz' is currently not supported by this API!"],
    ['/v1/rates/usd', 200, { currency: 'usd', rate: 6.25 }],
    ['/v1/rates/eur', 200, { rate: 5.625 }],
    ['/v1/rates/xyz', 404, 'Invalid currency.'],
    ['/v1/account/balance/arweave', 400, 'Missing address in query parameters'],
    ['/v1/account/approvals/get?userAddress=x', 200, { givenApprovals: [], receivedApprovals: [] }],
    ['/v1/account/free?address=x', 200, { bytesRemaining: 0 }],
    [
      '/v1/top-up/other/x/usd/1000',
      400,
      'Payment method must include one of: payment-intent,checkout-session!',
    ],
    [
      '/v1/top-up/checkout-session/x/usd/1000',
      403,
      'Destination address is not a valid supported native wallet address!',
    ],
    [
      '/v1/top-up/checkout-session/x/usd/1000?destinationAddressType=email',
      400,
      'Destination address is not a valid email!',
    ],
    ['/health', 200, 'OK'],
    ['/nothing', 404, 'Not found'],
  ]
  for (const token of [
    'ario',
    'base-ario',
    'solana',
    'kyve',
    'matic',
    'pol',
    'base-eth',
    'usdc',
    'polygon-usdc',
    'solana-usdc',
  ])
    rows.push([`/v1/price/${token}/1000000000000`, 200, { winc: /^\d+$/ }])
  for (const [path, status, answer] of rows) {
    const got = await rig.get(path)
    t.equal(got.status, status, path)
    t.match(got.json ?? got.text, answer, path)
  }
  for (const path of ['/v1/account/balance/arweave', '/account/balance/arweave']) {
    t.match(await rig.post(path, '{"tx_id":"x"}'), { status: 400, text: 'Token not supported' })
  }
})

t.test('gifts: paid for an e-mail address, redeemed once', async (t) => {
  const rig = await paymentRig(t)
  const id = await pay(
    rig,
    encodeURIComponent('friend@example.org'),
    'destinationAddressType=email&giftMessage=Hello',
  )
  const [wallet] = wallets
  const to = wallet?.address ?? ''
  const redeem = (email: string, destination: string, gift: string) =>
    rig.get(
      `/v1/redeem?${new URLSearchParams({ email, destinationAddress: destination, id: gift, token: 'arweave' })}`,
    )
  t.match(await redeem('x', to, id), {
    status: 400,
    text: 'Provided recipient email address is not a valid email!',
  })
  t.match(await redeem('friend@example.org', 'x', id), {
    status: 400,
    text: 'Provided destination address is not a valid native address!',
  })
  t.match(await redeem('other@example.org', to, id), {
    status: 400,
    text: 'Failure to redeem payment receipt!',
  })
  t.match(await redeem('friend@example.org', to, 'x'), {
    status: 400,
    text: 'Failure to redeem payment receipt!',
  })
  const both = await Promise.all([redeem('friend@example.org', to, id), redeem('Friend@Example.org', to, id)])
  t.strictSame(both.map(({ status }) => status).sort(), [200, 400])
  t.match(both.find(({ status }) => status === 200)?.json, {
    message: 'Payment receipt redeemed for 1225600000000 winc!',
    userBalance: '1225600000000',
    userAddress: to,
  })
  t.match(await redeem('friend@example.org', to, id), {
    status: 400,
    text: 'Gift has already been redeemed!',
  })
  const { json } = await rig.get('/v1/account/payments', wallet?.headers('n'))
  t.match(json, { payments: [{ type: 'fiat', wincCredited: '1225600000000', giftMessage: 'Hello' }] })
  t.strictSame((await rig.ledger.check(approvalFaults)).faults, [])
})

t.test('promotions: a part of the payment is a gift of ours', async (t) => {
  const rig = await paymentRig(t)
  const [wallet] = wallets
  const address = wallet?.address ?? ''
  const promotion = {
    permille: 200,
    expiresMs: start + 1000,
    leastMicroUsd: 0,
    mostMicroUsd: 1_000_000,
    usesMax: 1,
    isForNew: false,
  }
  await rig.service.promotions.declare({ code: 'FIFTH', ...promotion })
  await rig.service.promotions.declare({ code: 'NEW', ...promotion, isForNew: true, usesMax: 0 })
  await rig.service.promotions.declare({ code: 'LARGE', ...promotion, leastMicroUsd: 20_000_000 })
  const quote = (code: string, amount = 1000) =>
    rig.get(`/v1/price/usd/${amount}?destinationAddress=${address}&promoCode=${code}`)
  t.match(
    (await rig.get('/v1/price/usd/1000?promoCode=FIFTH')).text,
    /Promo codes must be applied to a specific `destinationAddress`/,
  )
  t.match(await quote('NONE'), { status: 400, text: "No promo code found with code 'NONE'" })
  t.match((await quote('LARGE')).text, /can only used on payments above 2000/)
  t.match(
    (await quote('FIFTH')).json,
    { winc: '1225600000000', actualPaymentAmount: 900, quotedPaymentAmount: 1000 },
    'at most 1 USD',
  )
  t.match((await quote('FIFTH', 500)).json, { actualPaymentAmount: 400, quotedPaymentAmount: 500 })
  t.match((await quote('FIFTH%2CNEW')).json, {
    actualPaymentAmount: 800,
    adjustments: [{ promoCode: 'FIFTH' }, { promoCode: 'NEW' }],
  })
  await pay(rig, address, 'promoCode=FIFTH')
  t.match((await rig.get(`/v1/account/balance?address=${address}`)).json, { winc: '1225600000000' })
  t.equal((await rig.ledger.account('promotions'))?.debitsPosted, 122_560_000_000n)
  const { json } = await rig.get('/v1/account/payments', wallet?.headers('n'))
  t.match(json, { payments: [{ paymentAmount: '900', wincCredited: '1225600000000' }], hasMore: false })
  t.match((await quote('FIFTH')).text, /maximum number of times \(1\)/)
  t.match((await quote('NEW')).text, `The user '${address}' is ineligible for the promo code 'NEW'`)
  rig.setTime(start + 1000)
  t.match((await quote('LARGE', 3000)).text, /expired on 2026-01-01T00:00:01/)
  t.strictSame((await rig.ledger.check(approvalFaults)).faults, [])
})

t.test('protected routes, as other services know them and by our own client', async (t) => {
  const rig = await paymentRig(t)
  const token = { authorization: `Bearer ${await makeServiceToken(secret, start)}` }
  const [wallet] = wallets
  const address = wallet?.address ?? ''
  const path = `reserve-balance/arweave/${address}?byteCount=1000&dataItemId=item`
  for (const headers of [
    {},
    { authorization: 'Bearer x' },
    { authorization: `Bearer ${await makeServiceToken('another secret', start)}` },
    { authorization: `Bearer ${await makeServiceToken(secret, start - 7200_000)}` },
  ])
    t.equal((await rig.get(`/v1/${path}`, headers)).status, 401)
  t.match(await rig.get(`/v1/${path}`, token), { status: 402, text: 'Insufficient balance' })
  t.equal((await rig.get(`/v1/check-balance/arweave/${address}?byteCount=1000`, token)).status, 404)
  await pay(rig, address)
  t.match(await rig.get(`/v1/check-balance/arweave/${address}?byteCount=1000`, token), {
    status: 200,
    json: {
      userHasSufficientBalance: true,
      bytesCostInWinc: '3200100',
      adjustments: [],
      userBalanceInWinc: '1225600000000',
    },
  })
  t.match(await rig.get(`/v1/${path}`, token), { status: 200, text: '3200100' })
  t.match(await rig.get(`/v1/${path}`, token), { status: 200, text: '3200100' }, 'once')
  const left = async (): Promise<string> => {
    const { json } = await rig.get(`/v1/account/balance?address=${address}`)
    return (json as { winc: string }).winc
  }
  t.equal(await left(), '1225596799900')
  t.equal((await rig.ledger.account('revenue'))?.creditsPosted, 3_200_100n, 'spent at once')
  t.equal(
    (await rig.get(`/v1/refund-balance/arweave/${address}?winstonCredits=3200100&dataItemId=item`, token))
      .status,
    200,
  )
  t.equal(await left(), '1225600000000')
  const unknown = wallets[3]?.address ?? ''
  t.match(await rig.get(`/v1/refund-balance/ethereum/${unknown}?winstonCredits=1&dataItemId=item`, token), {
    status: 404,
    text: 'User not found',
  })
  const reasonOf = async (route: string): Promise<string> =>
    (await fetch(`${rig.url}/v1/${route}`, { headers: token })).statusText
  t.equal(await reasonOf(path.replace('=item', '=item2')), 'Balance reserved')
  t.equal(
    await reasonOf('account/approvals'),
    'Invalid paying address',
    'what is wrong stands in the status line',
  )
  const share = (payer: string, winc: string): Promise<{ status: number; text: string }> =>
    rig.get(
      `/v1/account/approvals/create?dataItemId=a&winc=${winc}&payingAddress=${payer}&approvedAddress=${address}`,
      token,
    )
  t.match(await share(unknown, '1'), {
    status: 402,
    text: `No user found in database with address '${unknown}'`,
  })
  const many = `/v1/account/approvals/create?dataItemId=a&winc=9999999999999&payingAddress=${address}`
  t.match(await rig.get(`${many}&approvedAddress=${unknown}`, token), {
    status: 402,
    text: `Insufficient balance for '${address}'`,
  })
  await rig.get(`/v1/refund-balance/arweave/${address}?winstonCredits=1&dataItemId=item2`, token)

  const clock = { ...systemClock, now: () => start }
  const remote: CreditsPort & { close(): Promise<void> } = new RemoteCredits(
    { url: rig.url, secret, limitMs: 60_000, connectionsMax: 4 },
    clock,
  )
  t.teardown(() => remote.close())
  const payer = { address, signatureType: 1, paidBy: [] }
  t.strictSame(await remote.price(1000), { winc: '3200100' })
  t.match(await remote.check({ bytes: 1000, ...payer }), { isEnough: true, balance: '1225600000000' })
  t.strictSame(await remote.reserve({ itemId: 'other', bytes: 1000, ...payer }), {
    paid: true,
    winc: '3200100',
  })
  t.equal((await rig.ledger.account('revenue'))?.creditsPending, 3_200_100n, 'held back only')
  t.strictSame(await remote.settle('other'), { winc: '3200100' })
  t.strictSame(await remote.refund('other'), { winc: '3200100' })
  const named = { itemId: 'named', ticket: 'a ticket of 16 letters'.replaceAll(' ', '-') }
  t.match(await remote.reserve({ ...named, bytes: 1000, ...payer }), { paid: true })
  t.strictSame(await remote.withdraw(named), { winc: '3200100' })
  t.ok(isRefusal(await remote.reserve({ ...named, bytes: 1000, ...payer })), 'delivered once more')
  const poor = wallets[3]?.address ?? ''
  t.strictSame(await remote.reserve({ itemId: 'poor', bytes: 1000, ...payer, address: poor }), {
    paid: false,
    winc: '3200100',
    isUnknownWallet: true,
  })
  const shared = { itemId: 'share', payingAddress: address, approvedAddress: poor, winc: '5000000' }
  t.match(await remote.approve(shared), { approvalDataItemId: 'share', approvedWincAmount: '5000000' })
  t.strictSame(
    await remote.reserve({ itemId: 'by', bytes: 1000, ...payer, address: poor, paidBy: [address] }),
    { paid: true, winc: '3200100' },
  )
  t.match(await remote.revoke({ ...shared, itemId: 'end' }), [
    { usedWincAmount: '3200100', inactiveReason: 'revoked' },
  ])
  t.match(await remote.revoke({ ...shared, itemId: 'end2' }), { denied: true, status: 400 })
  const stranger = new RemoteCredits(
    { url: rig.url, secret: 'another secret', limitMs: 60_000, connectionsMax: 1 },
    clock,
  )
  t.ok(isRefusal(await stranger.price(1)))
  await stranger.close()
  t.strictSame((await rig.ledger.check(approvalFaults)).faults, [])
})
