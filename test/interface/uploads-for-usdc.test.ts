/**
 * Uploads that are paid for in USDC (x402), against the whole program. The facilitator has no chain, and does what is written.
 */
import { createHash, randomBytes, randomUUID } from 'node:crypto'
import t from 'tap'
import { pause } from '../../src/actor/clock.js'
import { newAccount, payee } from '../admission/scene.js'
import { payment, unpacked } from '../admission/shop.js'
import { eventually } from '../eventually.js'
import { run } from '../flow/running.js'
import {
  type Answered,
  answerTo,
  itemOf,
  newBuyer,
  offerIn,
  post,
  scene,
  signed,
} from '../flow/usdc-scene.js'

/** One program for all tests but the one that kills it: each buyer comes with a purse and a facilitator that has seen nothing. */
const shop = await scene(t)

t.test('a signed item is paid for by a payment of its own, once', async (t) => {
  const { facilitator, payer, program, taken } = newBuyer(shop)
  const { upload = '', gateway = '', payment: bank = '' } = program.urls
  const names = ['/x402/upload/signed', '/v1/x402/upload/signed', '/x402/data-item/signed/base-sepolia']
  for (const [at, name] of names.entries()) {
    const item = itemOf(`paid ${at}`)
    const unpaid = await post(upload + name, item)
    t.equal(unpaid.status, 402)
    t.match(unpaid.json, { x402Version: 1, accepts: [{ network: 'base-sepolia', payTo: payee }] })
    const offer = offerIn(unpaid)
    t.equal(offer.resource, upload + name)
    const required = unpacked<object>(unpaid.headers.get('payment-required'))
    t.match(required, { extensions: { 'payment-identifier': { info: { required: false } } } })
    t.equal(unpaid.headers.get('x-free-tier-exhausted'), null)
    const before = taken()
    const headers = await payment(payer, at === 1 ? 2 : 1, { to: payee, value: offer.maxAmountRequired })
    const answers = await Promise.all([1, 2, 3].map(() => post(upload + name, item, headers)))
    for (const { status } of answers) t.equal(status, 200)
    const [first] = answers as [Answered]
    for (const other of answers) t.strictSame(signed(other), signed(first), 'one receipt')
    t.match(first.json, { mUSDCPaid: offer.maxAmountRequired, x402PaymentTxId: /^0x[0-9a-f]{64}$/ })
    t.ok(BigInt(String(first.json.winc)) > 0n)
    const { success, transaction } = unpacked<{ success: boolean; transaction: string }>(
      first.headers.get('x-payment-response'),
    )
    t.strictSame({ success, transaction }, { success: true, transaction: first.json.x402PaymentTxId })
    t.equal(taken() - before, BigInt(offer.maxAmountRequired))
    t.equal(facilitator.count('settle'), at + 1)
    const served = await fetch(`${gateway}/raw/${String(first.json.id)}`)
    t.ok(Buffer.from(await served.arrayBuffer()).equals(item.subarray(item.length - 50_000)))
    const again = await post(upload + name, item, headers)
    t.equal(again.status, 200)
    t.strictSame(signed(again), signed(first), 'the same receipt, later, too')
    const other = await post(upload + name, itemOf(`other ${at}`), headers)
    t.equal(other.status, 402, 'a payment is good for one item')
    t.equal(other.json.error, 'payment_already_used')
    const twice = await payment(payer, 1, { to: payee, value: offer.maxAmountRequired })
    t.strictSame((await post(upload + name, item, twice)).json.id, first.json.id)
    t.equal(facilitator.count('settle'), at + 1, 'what is here already costs nothing')
  }
  const price = await fetch(`${bank}/v1/price/bytes/50106`)
  t.ok(price.ok)
})

t.test('wrong payments of one client behind a proxy are not counted for others behind it', async (t) => {
  const { payer, program } = newBuyer(shop)
  const { upload = '', payment: bank = '' } = program.urls
  const item = itemOf('behind a proxy')
  const url = `${upload}/x402/upload/signed`
  const value = offerIn(await post(url, item)).maxAmountRequired
  const from = (address: string) => ({ 'x-forwarded-for': address })
  const tamper = { from: newAccount().address }
  const wrong = { ...(await payment(newAccount(), 1, { to: payee, value, tamper })), ...from('9.9.9.9') }
  const topUp = `${bank}/v1/x402/top-up/arweave/${'W'.repeat(42)}A`
  const statuses: number[] = []
  for (let time = 0; time < 24; time += 1) statuses.push((await post(topUp, Buffer.from('{}'), wrong)).status)
  t.equal(statuses[0], 402)
  t.equal(statuses.at(-1), 503, 'it has used its share')
  t.equal((await post(url, item, wrong)).status, 503, 'at the upload service, too')
  const good = { ...(await payment(payer, 1, { to: payee, value })), ...from('8.8.8.8') }
  t.equal((await post(url, item, good)).status, 200, 'another one pays')
})

t.test('a name that the client gives a payment is good for one request', async (t) => {
  const { facilitator, payer, program } = newBuyer(shop)
  const { upload = '' } = program.urls
  const url = `${upload}/x402/upload/signed`
  const item = itemOf('named')
  const value = offerIn(await post(url, item)).maxAmountRequired
  const id = `pay_${randomBytes(16).toString('hex')}`
  const named = async (): Promise<Record<string, string>> => {
    const headers = await payment(payer, 2, { to: payee, value })
    const given = unpacked<object>(headers['PAYMENT-SIGNATURE'] ?? '')
    const extensions = { 'payment-identifier': { info: { required: false, id } } }
    const text = JSON.stringify({ ...given, extensions })
    return { 'PAYMENT-SIGNATURE': Buffer.from(text).toString('base64') }
  }
  const first = await post(url, item, await named())
  t.equal(first.status, 200)
  const again = await post(url, item, await named())
  t.strictSame(signed(again), signed(first), 'another payment of that name is not taken')
  const other = await post(url, itemOf('other'), await named())
  t.equal(other.status, 409)
  t.equal(facilitator.count('settle'), 1)
})

t.test('bytes are signed by the service: small ones for nothing, others for USDC', async (t) => {
  const { facilitator, payer, program, taken } = newBuyer(shop)
  const { upload = '', gateway = '' } = program.urls
  for (const name of ['/v1/x402/upload/unsigned', '/x402/data-item/unsigned']) {
    const url = upload + name
    const tags = JSON.stringify([{ name: 'App-Name', value: `test ${name}` }])
    const free = await post(url, Buffer.from('small'), { 'x-data-item-tags': tags })
    t.equal(free.status, 200)
    t.equal(free.json.winc, '0')
    const body = Buffer.alloc(name.includes('upload') ? 400_000 : 30_000, name)
    const wanted = { 'x-data-item-tags': tags, 'content-type': 'text/plain' }
    const unpaid = await post(url, body, wanted)
    t.equal(unpaid.status, 402)
    const { maxAmountRequired: value } = offerIn(unpaid)
    const before = taken()
    const headers = { ...wanted, ...(await payment(payer, 1, { to: payee, value })) }
    const answers = await Promise.all([1, 2].map(() => post(url, body, headers)))
    const [first] = answers as [Answered]
    t.strictSame(
      answers.map(({ status }) => status),
      [200, 200],
    )
    for (const other of answers) t.strictSame(signed(other), signed(first), 'one item of two tries')
    t.match(first.json, { payer: payer.address.toLowerCase(), receipt: { id: first.json.id } })
    t.match(first.json.x402Payment, { network: 'base-sepolia', mode: 'payg' })
    t.equal(taken() - before, BigInt(value))
    const served = await fetch(`${gateway}/raw/${String(first.json.id)}`)
    t.match(served.headers.get('content-type'), 'text/plain')
    t.ok(Buffer.from(await served.arrayBuffer()).equals(body))
    const again = await post(url, body, headers)
    t.strictSame(signed(again), signed(first))
    const other = await post(url, Buffer.alloc(body.length, 'x'), headers)
    t.equal(other.json.error, 'payment_already_used')
  }
  t.equal(facilitator.count('settle'), 2)
  const wrong = await post(`${upload}/x402/upload/unsigned`, Buffer.from('x'), { 'x-data-item-tags': '{' })
  t.equal(wrong.status, 400)
  // In protocols of others an item orders for whoever signs it: that is a key which has no other use and owns nothing.
  const { addresses } = (await (await fetch(`${upload}/info`)).json()) as { addresses: { arweave: string } }
  const orders = [
    { 'Data-Protocol': 'ao', Type: 'Message', Action: 'Transfer', Recipient: 'A'.repeat(43), Quantity: '1' },
    { 'App-Name': 'SmartWeaveAction', Contract: 'A'.repeat(43), Input: '{"function":"transfer"}' },
    { 'App-Name': 'SmartWeaveContract', 'Init-State': '{}' },
    { 'Data-Protocol': 'Vouch', 'Vouch-For': 'A'.repeat(43) },
    { ArFS: '0.15', 'Entity-Type': 'drive', 'Drive-Id': randomUUID() },
    { 'Protocol-Name': 'Account-0.3', Handle: 'somebody' },
  ]
  const owners = new Set<unknown>()
  for (const order of orders) {
    const headers = Object.fromEntries(Object.entries(order).map(([name, value]) => [`x-tag-${name}`, value]))
    const accepted = await post(`${upload}/x402/upload/unsigned`, Buffer.from(JSON.stringify(order)), headers)
    const { headers: served } = await fetch(`${gateway}/raw/${String(accepted.json.id)}`)
    t.match(served.get('x-chain-signature-type'), '2', JSON.stringify(order))
    const owner = Buffer.from(served.get('x-chain-owner') ?? '', 'base64url')
    owners.add(createHash('sha256').update(owner).digest('base64url'))
    t.ok(owners.has(accepted.json.owner))
  }
  t.equal(owners.size, 1)
  t.notOk(owners.has(addresses.arweave), 'the wallet of the service has signed none of them')
  // What these tags do, they do to whoever signs; and the service says itself who has paid.
  const acting = [
    'x-approve-payment',
    'X-Amount',
    'x-expires-seconds',
    'x-delete-payment-approval',
    'payer-address',
  ]
  for (const name of acting) {
    const url = `${upload}/x402/upload/unsigned`
    const tags = JSON.stringify([{ name, value: 'A'.repeat(43) }])
    const named = new RegExp(`The tag '${name.toLowerCase()}'`)
    for (const headers of [{ 'x-data-item-tags': tags }, { [`x-tag-${name}`]: '5' }]) {
      const refused = await fetch(url, { method: 'POST', body: 'small', headers })
      t.equal(refused.status, 400)
      t.match(await refused.text(), named)
    }
  }
})

t.test(
  'bytes of no announced length: what is free, and what the payment of the request is enough for',
  async (t) => {
    const { facilitator, payer, program, taken } = newBuyer(shop)
    const { upload = '', gateway = '' } = program.urls
    const url = `${upload}/x402/upload/unsigned`
    const chunked = async (body: Uint8Array, headers: Record<string, string> = {}): Promise<Answered> => {
      const pieces = async function* (): AsyncGenerator<Uint8Array> {
        for (let from = 0; from < body.length; from += 50_000) yield body.subarray(from, from + 50_000)
      }
      const answer = await fetch(url, {
        method: 'POST',
        body: ReadableStream.from(pieces()),
        duplex: 'half',
        headers: { ...headers, connection: 'close' },
      } as RequestInit)
      const text = await answer.text()
      const json = text.startsWith('{') ? (JSON.parse(text) as Record<string, unknown>) : { text }
      return { status: answer.status, headers: answer.headers, json }
    }
    const small = await chunked(Buffer.from('small'), { 'x-tag-app-name': 'By-Lines', 'X-Tag-Kind': 'b' })
    t.equal(small.status, 200)
    t.equal(small.json.winc, '0')
    const served = await fetch(`${gateway}/raw/${String(small.json.id)}`)
    t.equal(served.headers.get('x-chain-tag-app-name'), 'By-Lines')
    t.equal(served.headers.get('x-chain-tag-kind'), 'b')
    t.equal(await served.text(), 'small')
    const body = Buffer.alloc(400_000, 'of no announced length')
    const unpaid = await chunked(body)
    t.equal(unpaid.status, 411)
    t.match(unpaid.json.text, /^Missing Content Length\. Content Length is required for x402 upload/)
    const { maxAmountRequired: value } = offerIn(await post(url, body))
    const short = await chunked(body, await payment(payer, 1, { to: payee, value: '1000' }))
    t.equal(short.status, 402)
    t.equal(offerIn(short).maxAmountRequired, value, 'what those bytes cost')
    t.equal((await chunked(body, await payment(newAccount(), 1, { to: payee, value }))).status, 402)
    t.equal(taken(), 0n)
    const headers = await payment(payer, 1, { to: payee, value })
    const sold = await chunked(body, headers)
    t.equal(sold.status, 200)
    t.strictSame(signed(await chunked(body, headers)), signed(sold), 'the same receipt')
    t.equal((await chunked(Buffer.alloc(400_000, 'other'), headers)).json.error, 'payment_already_used')
    t.equal(taken(), BigInt(value))
    t.equal(facilitator.count('settle'), 1)
    const bytes = Buffer.from(await (await fetch(`${gateway}/raw/${String(sold.json.id)}`)).arrayBuffer())
    t.ok(bytes.equals(body))
  },
)

t.test('an upload in parts is paid at its beginning, and what is not used becomes credits', async (t) => {
  const { facilitator, payer, program, taken } = newBuyer(shop)
  const { upload = '', gateway = '', payment: bank = '' } = program.urls
  const item = itemOf('in parts', 6_000_000)
  const chunk = 5_242_880
  const address = newAccount().address
  const begin = async (totalBytes: number, headers: Record<string, string> = {}): Promise<Answered> => {
    const query = `chunkSize=${chunk}&totalBytes=${totalBytes}&address=${address}&signatureType=3`
    const answer = await fetch(`${upload}/v1/chunks/base-usdc/-1/-1?${query}`, { headers })
    const text = await answer.text()
    const json = text.startsWith('{') ? (JSON.parse(text) as Record<string, unknown>) : { text }
    return { status: answer.status, headers: answer.headers, json }
  }
  const credits = async (): Promise<bigint> => {
    const accepted = await fetch(`${bank}/v1/account/balance/ethereum?address=${address}`)
    return accepted.status === 404 ? 0n : BigInt(((await accepted.json()) as { winc: string }).winc)
  }
  const unpaid = await begin(12_000_000)
  t.equal(unpaid.status, 402)
  const value = offerIn(unpaid).maxAmountRequired
  const headers = await payment(payer, 1, { to: payee, value })
  const [first, second] = await Promise.all([begin(12_000_000, headers), begin(12_000_000, headers)])
  t.equal(first.status, 200)
  t.match(first.json, { chunkSize: chunk, id: second.json.id })
  t.equal((await begin(12_000_000, headers)).json.id, first.json.id, 'one payment begins one upload')
  t.equal((await begin(50_000_000, headers)).json.error, 'payment_already_used')
  // All that was signed stands on the chain now. Whoever has the id of an upload may put an item of his own in its place.
  const stranger = await begin(12_000_000, { ...headers, 'x-forwarded-for': '198.51.100.7' })
  t.match([stranger.status, stranger.json.error], [409, 'upload_begun'])
  const { nonce } = unpacked<{ payload: { authorization: { nonce: string } } }>(headers['X-PAYMENT'] ?? '')
    .payload.authorization
  const name = `84532:${payer.address}:${nonce}`.toLowerCase()
  t.not(
    createHash('sha256').update(`upload ${name}`).digest('base64url'),
    first.json.id,
    'nor can it be computed',
  )
  t.equal(taken(), BigInt(value))
  const parts = `${upload}/v1/chunks/base-usdc/${String(first.json.id)}`
  t.equal((await post(`${parts}/0`, item.subarray(0, chunk))).status, 200)
  t.equal((await post(`${parts}/${chunk}`, item.subarray(chunk))).status, 200)
  const beyond = await post(`${parts}/${2 * chunk}`, new Uint8Array(2_000_000))
  t.equal(beyond.status, 400, 'no more than was paid for')
  const done = await post(`${parts}/-1`, new Uint8Array(0))
  t.equal(done.status, 200)
  const served = await fetch(`${gateway}/raw/${String(done.json.id)}`)
  t.ok(Buffer.from(await served.arrayBuffer()).equals(item.subarray(item.length - 6_000_000)))
  const spent = BigInt(String(done.json.winc))
  await eventually('the payment is credited', async () => (await credits()) > 0n)
  const back = await credits()
  const paid = spent + back
  t.ok(
    back > (paid * 4n) / 10n && back < (paid * 6n) / 10n,
    'half of it was not used, and the receipt says so',
  )

  const again = await payment(payer, 1, { to: payee, value })
  const known = String((await begin(12_000_000, again)).json.id)
  const other = `${upload}/v1/chunks/base-usdc/${known}`
  t.equal((await post(`${other}/0`, item.subarray(0, chunk))).status, 200)
  t.equal((await post(`${other}/${chunk}`, item.subarray(chunk))).status, 200)
  t.equal((await post(`${other}/-1`, new Uint8Array(0))).status, 200)
  await eventually('both amounts are credited', async () => (await credits()) === back + paid)
  t.equal(facilitator.count('settle'), 2)
  const accepted = await (await fetch(`${bank}/metrics`)).text()
  t.match(accepted, /^payment_unpaid_items_total(\{[^}]*\})? 0$/m, 'all that was accepted was paid')
})

t.test('prices are told in USDC, and are what is asked for', async (t) => {
  const { program } = newBuyer(shop)
  const { upload = '' } = program.urls
  const item = itemOf('priced')
  const ask = async (path: string): Promise<Record<string, unknown>> =>
    (await (await fetch(upload + path)).json()) as Record<string, unknown>
  const offer = offerIn(await post(`${upload}/x402/upload/signed`, item))
  for (const token of ['usdc-base-sepolia', 'base-sepolia-usdc'])
    t.match(await ask(`/v1/price/x402/data-item/${token}/${item.length}`), {
      currency: 'usdc',
      network: 'base-sepolia',
      byteCount: item.length,
      x402Version: 1,
      usdcAmount: offer.maxAmountRequired,
    })
  t.match(await ask('/price/x402/data/usdc-base-sepolia/100000?tags=3&contentType=text%2Fplain'), {
    rawDataSize: 100_000,
    userTagCount: 3,
    usdcAmount: /^\d+$/,
    overhead: Number,
    winstonCost: /^\d+$/,
  })
  for (const path of ['data-item/usdc-base/1000', 'data-item/gold/1000', 'data-item/usdc-base-sepolia/0'])
    t.equal((await fetch(`${upload}/price/x402/${path}`)).status, 400, path)
  t.equal((await fetch(`${upload}/price/x402/data/usdc-base-sepolia/1000?tags=101`)).status, 400)
})

t.test('the offer comes before the body, and bad payments and items move nothing', async (t) => {
  const { facilitator, payer, program, taken } = newBuyer(shop)
  const { upload = '' } = program.urls
  const url = `${upload}/v1/x402/upload/signed`
  const item = itemOf('never paid')
  const value = offerIn(await post(url, item)).maxAmountRequired
  const head = `POST /v1/x402/upload/signed HTTP/1.1\r\nHost: uploads.test\r\n`
  const offered = await answerTo(upload, `${head}Content-Length: 5000000\r\n\r\n`)
  t.match(offered, /^HTTP\/1\.1 402 .*"maxTimeoutSeconds":300,/s, 'without a byte of the body')
  t.match(offered, 'http://uploads.test/v1/x402/upload/signed')
  const large = await answerTo(upload, `${head}Content-Length: 50000000\r\n\r\n`)
  t.match(large, '"maxTimeoutSeconds":1800,')
  const headless = await answerTo(upload, `${head}Transfer-Encoding: chunked\r\n\r\n`)
  t.match(headless, /^HTTP\/1\.1 411 .*Content Length is required for x402 upload\.$/s)
  const wishes = [
    { to: newAccount().address, value },
    { to: payee, value: '999' },
    { to: payee, value, signature: `0x${'00'.repeat(65)}` },
    { to: payee, value, domain: { chainId: 8453 } },
    { to: payee, value, validBefore: Math.floor(Date.now() / 1000) + 3 },
  ]
  for (const wish of wishes) {
    const refused = await post(url, item, await payment(payer, 1, wish))
    t.equal(refused.status, 402)
    t.match(refused.json, { error: 'payment_verification_failed', accepts: [{ payTo: payee }] })
  }
  t.equal((await post(url, item, { 'x-payment': 'rubbish' })).status, 400)
  // One client may bring 25 payments in a burst, and this one has brought about as many: it comes again when it is told to. Each
  // try counts, so without the pause none would succeed.
  const patient = (body: Uint8Array, headers: Record<string, string>) =>
    eventually('an answer other than 503', async () => {
      const answer = await post(url, body, headers)
      if (answer.status !== 503) return answer
      await pause(Number(answer.headers.get('retry-after')) * 1000)
      return undefined
    })
  const poor = await patient(item, await payment(newAccount(), 1, { to: payee, value }))
  t.equal(poor.status, 402)
  const sound = await payment(payer, 1, { to: payee, value })
  const broken = Buffer.from(item)
  broken[broken.length - 1] = (broken.at(-1) ?? 0) ^ 1
  const invalid = await patient(broken, sound)
  t.equal(invalid.status, 400)
  t.equal(invalid.json.text, 'Invalid Data Item!')
  t.equal(facilitator.count('settle'), 0)
  t.equal(taken(), 0n)
  const bought = await patient(item, sound)
  t.equal(bought.status, 200, 'the payment is good all the same')
  facilitator.verify = (call) => {
    call.response.writeHead(500).end()
    return true
  }
  const away = await post(url, itemOf('away'), await payment(payer, 1, { to: payee, value }))
  t.equal(away.status, 503)
})

t.test('a kill between the settlement and the receipt loses nothing', async (t) => {
  const here = await scene(t)
  const { facilitator, payer, taken, folder, settings } = here
  facilitator.remembers = true
  const items = [itemOf('lost answer'), itemOf('the client comes again')] as const
  const paid: Record<string, string>[] = []
  for (const item of items) {
    const url = `${here.program.urls.upload}/x402/upload/signed`
    const value = offerIn(await post(url, item)).maxAmountRequired
    let reached: () => void = () => undefined
    const moved = new Promise<void>((resolve) => {
      reached = resolve
    })
    // The money moves; nobody hears of it.
    facilitator.afterSettle = () => {
      facilitator.afterSettle = undefined
      reached()
      return true
    }
    const headers = await payment(payer, 1, { to: payee, value })
    paid.push(headers)
    const before = taken()
    const unpaid = post(url, item, headers).catch(() => undefined)
    await moved
    await here.program.kill()
    await unpaid
    t.equal(taken() - before, BigInt(value))
    here.program = await run(t, folder, settings)
  }
  const { upload = '', gateway = '', payment: bank = '' } = here.program.urls
  const [first, second] = items
  const again = await eventually('an answer other than 503', async () => {
    const answer = await post(`${upload}/x402/upload/signed`, second, paid[1] as Record<string, string>)
    return answer.status === 503 ? undefined : answer
  })
  t.equal(again.status, 200, 'the same payment is good for its receipt')
  const id = String(
    (
      await eventually('the first item is accepted', async () => {
        const answer = await post(`${upload}/tx`, first)
        return answer.status === 202 && answer
      })
    ).json.id,
  )
  const served = await fetch(`${gateway}/raw/${id}`)
  t.ok(Buffer.from(await served.arrayBuffer()).equals(first.subarray(first.length - 50_000)))
  t.equal(facilitator.used.size, 2)
  t.ok((await fetch(`${bank}/v1/info`)).ok)
})
