/** Names for credits: paid once, refunded where the registry refuses, and gone on with where it was silent. */
import { randomUUID, sign } from 'node:crypto'
import t from 'tap'
import { encodeBase58 } from '../../../src/format/base58.js'
import { refuse } from '../../../src/format/refusal.js'
import { parseName } from '../../../src/names/name.js'
import { duePurchaseKind } from '../../../src/payment/books/due-purchases.js'
import { newEd25519Key } from '../../../src/proof/new-key.js'
import { someId } from '../../source/rig.js'
import { type TestWallet, testWallets } from '../wallet-keys.js'
import { pay, shop, sound, wincOf } from './name-shop.js'

const [arweave, , , ethereum] = testWallets() as [TestWallet, TestWallet, TestWallet, TestWallet]

t.test('a name is bought once for a nonce, extended, upgraded, and pointed at content', async (t) => {
  const market = await shop(t)
  const { rig, list } = market
  const target = someId()
  const price = async (path: string): Promise<{ winc: string; mARIO: string }> =>
    (await rig.get(`/v1/arns/price/${path}`)).json as never
  // A year of a name of 7 characters: 1,000 ARIO and a fifth of it; at 0.02 USD an ARIO and 6.25 an AR.
  const quoted = await price('buy-name/example?type=lease&years=1')
  t.strictSame(quoted, { winc: '3840000000001', mARIO: '1200000000' })
  t.strictSame(await price('Buy-Record/EXAMPLE?type=lease&years=1'), quoted, 'the old word, in any case')
  for (const [path, text] of [
    ['other/x', 'Invalid intent parameter'],
    ['buy-name/example', /Missing required parameter: type/],
    ['buy-name/example?type=lease&years=6', /years/],
    ['buy-name/-bad?type=permabuy', /Invalid name/],
    ['extend-lease/example?years=1', /is not registered/],
  ] as const)
    t.match(await rig.get(`/v1/arns/price/${path}`), { status: 400, text })
  const nonce = randomUUID()
  const buy = (path: string, headers = arweave.headers(nonce)) =>
    rig.post(`/v1/arns/purchase/${path}`, '', headers)
  const wanted = `Buy-Name/example?type=lease&years=1&processId=${target}`
  t.match(await rig.post(`/v1/arns/purchase/${wanted}`, ''), {
    status: 401,
    text: 'Signed request is required for this route',
  })
  t.match(await buy(wanted, arweave.headers('0123456789abcdef0123456789abcdef')), {
    status: 400,
    text: /UUID/,
  })
  t.match(await buy(wanted), { status: 402, text: 'Insufficient balance' })
  await pay(market, arweave.address)
  const before = await wincOf(market, arweave.address)
  const both = await Promise.all([buy(wanted), buy(wanted)])
  for (const one of [...both, await buy(wanted)]) {
    t.equal(one.status, 200, one.text)
    t.match(one.json, {
      nonce,
      purchaseReceipt: { name: 'example', intent: 'Buy-Name', wincQty: quoted.winc, status: 'success' },
      arioWriteResult: { id: /^.{43}$/ },
    })
  }
  t.equal(before - (await wincOf(market, arweave.address)), BigInt(quoted.winc), 'paid once')
  t.match(list.get(parseName('example')!), { id: target, undernameLimit: 10, recordIndex: 0 })
  t.match(await buy(wanted.replace('example', 'another')), { status: 400, text: /nonce was used/ })
  t.match(await buy(wanted, ethereum.headers(nonce)), { status: 400, text: /nonce was used/ })
  t.match(await buy(wanted, arweave.headers(randomUUID())), { status: 400, text: /already registered/ })
  t.match(await rig.get(`/v1/arns/purchase/${nonce}`), { status: 200, json: { status: 'success' } })
  t.equal((await rig.get(`/v1/arns/purchase/${randomUUID()}`)).status, 404)
  t.match((await rig.get(`/v1/arns/my-names/${arweave.address}`)).json, {
    names: [{ name: 'example', intent: 'Buy-Name', type: 'lease', years: 1, antId: /^.{43}$/ }],
  })
  t.strictSame((await rig.get(`/v1/arns/my-names/${ethereum.address}`)).json, {
    names: [],
    hasMore: false,
    cursor: null,
  })

  // Anybody may extend it, with credits that somebody else shares.
  const shared = { itemId: 's', payingAddress: arweave.address, approvedAddress: ethereum.address }
  await rig.service.credits.approve({ ...shared, winc: '100000000000000' })
  const paidBy = `paidBy=${arweave.address}`
  for (const path of [
    `extend-lease/example?years=2&${paidBy}`,
    `increase-undername-limit/example?increaseQty=5&${paidBy}`,
    `upgrade-name/example?${paidBy}`,
  ])
    t.equal((await buy(path, ethereum.headers(randomUUID()))).status, 200, path)
  t.match(list.get(parseName('example')!), { id: target, undernameLimit: 15 })
  t.match(await buy(`extend-lease/example?years=1`, arweave.headers(randomUUID())), {
    status: 400,
    text: /is permanent already/,
  })
  await sound(t, market)
})

t.test('what was paid and is refused is given back; where nobody answers it is gone on with', async (t) => {
  const market = await shop(t)
  const { rig, says, sold } = market
  await pay(market, arweave.address)
  const before = await wincOf(market, arweave.address)
  const buy = (name: string, nonce: string) =>
    rig.post(`/v1/arns/purchase/buy-name/${name}?type=permabuy`, '', arweave.headers(nonce))
  const [refused, silent] = [randomUUID(), randomUUID()]
  says.push({ noSale: 'Somebody was faster' })
  t.match(await buy('faster', refused), {
    status: 400,
    text: 'Somebody was faster: the credits were refunded',
  })
  t.equal(await wincOf(market, arweave.address), before)
  t.match((await rig.get(`/v1/arns/purchase/${refused}`)).json, {
    status: 'failed',
    failedDate: /^2026-/,
    failedReason: 'Somebody was faster',
  })
  t.equal((await buy('faster', refused)).status, 400, 'and is not paid again')
  const silence = refuse('late', 'upstream', 'no answer')
  says.push(silence, silence)
  t.match(await buy('silence', silent), { status: 202, json: { purchaseReceipt: { status: 'pending' } } })
  const held = await wincOf(market, arweave.address)
  t.ok(held < before, 'held back until it is known')
  t.match((await rig.get(`/v1/arns/purchase/${silent}`)).json, { status: 'pending' })
  const broken = { kind: duePurchaseKind, key: '0', value: '1' }
  await rig.ledger.commit({ transfers: [], records: [broken] })
  await rig.service.recheck()
  t.match((await rig.get(`/v1/arns/purchase/${silent}`)).json, { status: 'pending' })
  await rig.service.recheck()
  t.match((await rig.get(`/v1/arns/purchase/${silent}`)).json, { status: 'success' })
  t.equal(await wincOf(market, arweave.address), held)
  t.equal(sold.filter((one) => one === silent).length, 3)
  await sound(t, market)
})

t.test('the owner alone says what a name points at, each change once', async (t) => {
  const market = await shop(t)
  const { rig, list, setDay } = market
  await pay(market, arweave.address)
  const keys = newEd25519Key()
  const owner = keys.publicKey
  const proof = (message: string, nonce = randomUUID()): Record<string, string> => ({
    'x-owner-nonce': nonce,
    'x-owner-public-key': owner.toString('base64url'),
    'x-owner-signature': sign(null, Buffer.from(message + nonce), keys.privateKey).toString('base64url'),
    'x-owner-signature-type': '4',
  })
  const act = (action: string, body: object, headers: Record<string, string> = {}) =>
    rig.post(`/v1/arns/actions/${action}`, JSON.stringify(body), {
      ...arweave.headers(randomUUID()),
      ...headers,
    })
  const bought = await act('buy-name', {
    name: 'mine',
    type: 'lease',
    years: 1,
    ownerAddress: encodeBase58(owner),
  })
  t.match(bought, { status: 200, json: { status: 'completed', action: 'buy-name', antId: /^.{43}$/ } })
  const { antId, nonce } = bought.json as { antId: string; nonce: string }
  t.match(await rig.get(`/v1/arns/actions/${nonce}`), { status: 200, json: { status: 'completed' } })
  t.match(await rig.post(`/v1/arns/actions/${nonce}/sign`, '{}'), {
    status: 200,
    json: { alreadyCompleted: true },
  })
  t.equal(list.get(parseName('mine')!), undefined, 'it points at nothing yet')
  t.match((await rig.get('/v1/arns/actions/set-record/price')).json, { wincQty: '160000000' })
  const [first, second] = [someId(), someId()]
  const record = (id: string, undername = '@') => ({ antId, undername, transactionId: id, ttlSeconds: 60 })
  const words = (id: string, undername = '@') => ['arns', 'set-record', antId, undername, id, '60'].join('\n')
  t.equal((await act('set-record', record(first))).status, 403, 'without the owner')
  t.equal(
    (await act('set-record', record(first), proof(words(second)))).status,
    403,
    'signed for something else',
  )
  const once = proof(words(first))
  const changed = await act('set-record', record(first), once)
  t.match(changed, { status: 200, json: { status: 'completed' } }, changed.text)
  t.match(list.get(parseName('mine')!), { id: first, ttlSeconds: 60, antId })
  t.equal((await act('set-record', record(second), proof(words(second)))).status, 200)
  t.not((await act('set-record', record(first), once)).status, 200, 'what was signed once is not done twice')
  t.match(list.get(parseName('mine')!), { id: second })
  // What is signed has nothing between the message and the nonce: a letter of one must not pass for one of the other.
  const hourly = ['arns', 'set-record', antId, '@', first, '3600'].join('\n')
  const { 'x-owner-nonce': nonce36 = '', ...signed } = proof(hourly)
  const shorter = { antId, undername: '@', transactionId: first, ttlSeconds: 360 }
  const shifted = await act('set-record', shorter, { ...signed, 'x-owner-nonce': `0${nonce36}` })
  t.match(shifted, { status: 400, text: /x-owner-nonce/ })
  t.match(list.get(parseName('mine')!), { id: second })
  t.equal((await act('set-record', record(first, 'docs'), proof(words(first, 'docs')))).status, 200)
  t.match(list.get(parseName('docs_mine')!), { id: first, recordIndex: 1 })
  const gone = { antId, undername: 'docs' }
  t.equal((await act('remove-record', gone, proof(`arns\nremove-record\n${antId}\ndocs`))).status, 200)
  t.equal(list.get(parseName('docs_mine')!), undefined)
  t.match(await act('transfer', { antId, target: 'x' }), { status: 400 })

  setDay(365 + 13)
  await rig.service.recheck()
  t.match(list.get(parseName('mine')!), { id: second }, 'two weeks of grace')
  setDay(365 + 15)
  await rig.service.recheck()
  t.equal(list.get(parseName('mine')!), undefined)
  await pay(market, arweave.address)
  t.equal((await act('buy-name', { name: 'mine', type: 'lease', years: 1 })).status, 200, 'for somebody else')
  await sound(t, market)
})

t.test('a name by card: bought when the card is charged; what it costs less is credited', async (t) => {
  const market = await shop(t)
  const { rig, list, says } = market
  const target = someId()
  const ask = (name: string, query = 'type=lease&years=1') =>
    rig.get(`/v1/arns/quote/checkout-session/${ethereum.address.toLowerCase()}/usd/Buy-Name/${name}?${query}`)
  t.match(await ask('x_y'), { status: 400, text: /Invalid name/ })
  const opened = await ask('bycard', `type=lease&years=1&processId=${target}`)
  t.equal(opened.status, 200, opened.text)
  const { purchaseQuote, paymentSession } = opened.json as {
    purchaseQuote: Record<string, string>
    paymentSession: { url: string; id: string }
  }
  t.match(purchaseQuote, {
    intent: 'Buy-Name',
    wincQty: '3840000000001',
    currencyType: 'usd',
    owner: ethereum.address,
  })
  const status = async (): Promise<unknown> =>
    ((await rig.get(`/v1/arns/purchase/${purchaseQuote.nonce}`)).json as { status: string }).status
  t.equal(await status(), 'pending')
  await rig.service.recheck()
  t.equal(await status(), 'pending', 'until the card is charged')
  t.match((await rig.get(`/checkout/${paymentSession.id}`)).text, 'the name bycard')
  for (const again of [1, 2])
    t.equal(
      (await rig.post(`/checkout/${paymentSession.id}`, 'card=4242424242424242')).status,
      200,
      `${again}`,
    )
  t.equal(await status(), 'success')
  t.match(list.get(parseName('bycard')!), { id: target })
  const rest = await wincOf(market, ethereum.address)
  t.equal(rest, BigInt(purchaseQuote.excessWincAmount ?? 0))
  t.ok(rest < 10_000_000_000n, `${rest} is some cents`)

  const second = (await ask('othername')).json as typeof opened.json as {
    purchaseQuote: { nonce: string }
    paymentSession: { id: string }
  }
  says.push({ noSale: 'Somebody was faster' })
  await rig.post(`/checkout/${second.paymentSession.id}`, 'card=4242424242424242')
  t.match((await rig.get(`/v1/arns/purchase/${second.purchaseQuote.nonce}`)).json, { status: 'failed' })
  t.ok((await wincOf(market, ethereum.address)) > 3_840_000_000_000n, 'the payment stays as credits')
  await sound(t, market)
})
