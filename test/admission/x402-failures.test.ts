import t from 'tap'
import { systemClock } from '../../src/actor/clock.js'
import type { MovedOnChain } from '../../src/admission/chain-witness.js'
import { eventually } from '../eventually.js'
import { newAccount, payee, scene } from './scene.js'
import { type Script, type ScriptedFacilitator, scriptedFacilitator } from './scripted-facilitator.js'
import { fileBytes, get, openShop, Purse, payment, type Shop, unpacked, type Wish } from './shop.js'

const seconds = (): number => Math.floor(Date.now() / 1000)

const says =
  (status: number, body: unknown): Script =>
  ({ json }) => {
    json(status, body)
    return true
  }
const sends =
  (status: number, text: string, headers: Record<string, string> = {}): Script =>
  ({ response }) => {
    response.writeHead(status, headers).end(text)
    return true
  }
const breaks: Script = ({ response }) => {
  response.destroy()
  return true
}

/** What becomes of a payment that is shown until it is settled or refused. */
function untilDecided(shop: Shop, headers: Record<string, string>): ReturnType<typeof get> {
  return eventually('an answer other than 503', async () => {
    const got = await get(`${shop.url}/file`, headers)
    return got.status === 503 ? undefined : got
  })
}

t.test('a payment that is wrong in any way is refused here, before the facilitator is asked', async (t) => {
  const { facilitator, shop, payer, taken } = await scene(t)
  const other = newAccount().address
  const wrong: Record<string, Wish> = {
    invalid_exact_evm_payload_authorization_valid_before: { to: payee, validBefore: seconds() - 10 },
    'valid_before|a few seconds left': { to: payee, validBefore: seconds() + 4 },
    'valid_before|for ever': { to: payee, validBefore: seconds() + 9_999_999 },
    'valid_after|not yet valid': { to: payee, validAfter: seconds() + 100 },
    'authorization_value|too little': { to: payee, value: '999' },
    'authorization_value|too much': { to: payee, value: '1001' },
    'authorization_value|nothing': { to: payee, value: '0' },
    'recipient_mismatch|somebody else': { to: other },
    'signature|name of the other chain': { to: payee, domain: { name: 'USD Coin' } },
    'signature|other chain': { to: payee, domain: { chainId: 8453 } },
    'signature|other token': { to: payee, domain: { verifyingContract: other } },
    'signature|changed after signing': { to: payee, tamper: { validBefore: String(seconds() + 900) } },
    'signature|somebody else paid': { to: payee, tamper: { from: other } },
    'signature|short': { to: payee, signature: '0x00' },
    'signature|zeros': { to: payee, signature: `0x${'00'.repeat(65)}` },
    'signature|ones': { to: payee, signature: `0x${'ff'.repeat(65)}` },
    'scheme|another scheme': { to: payee, scheme: 'upto' },
    'network|the other network': { to: payee, network: 'base' },
  }
  for (const [name, wish] of Object.entries(wrong)) {
    const part = name.split('|')[0] ?? ''
    for (const version of [1, 2] as const) {
      const got = await get(`${shop.url}/file`, await payment(payer, version, wish))
      t.equal(got.status, 402, `${name}, version ${version}`)
      t.match(got.message, part, name)
      t.equal(got.error, 'payment_verification_failed')
    }
  }
  const accepted = { accepted: { amount: '1' } }
  t.equal((await get(`${shop.url}/file`, await payment(payer, 2, { to: payee, ...accepted }))).status, 402)
  t.equal(facilitator.count('verify') + facilitator.count('settle'), 0, 'nobody else was asked')
  t.equal(taken(), 0n, 'nothing moved')
  t.equal(shop.records.recent(10).length, 0, 'nothing is on record')
})

t.test('what is no payment is answered 400, never 500', async (t) => {
  const { shop } = await scene(t)
  const inBase64 = (text: string): string => Buffer.from(text).toString('base64')
  const bad = ['%%%', 'null', inBase64('null'), inBase64('[]'), inBase64('{}'), inBase64('{"x402Version":1}')]
  bad.push(inBase64('{"x402Version":2}'), 'A'.repeat(9000), inBase64('\xff'), 'eyJ4NDAyVmVyc2lvbiI6MX0')
  for (const header of bad) {
    for (const name of ['X-PAYMENT', 'PAYMENT-SIGNATURE']) {
      const got = await get(`${shop.url}/file`, { [name]: header })
      t.equal(got.status, 400, `${name}: ${header.slice(0, 30)}`)
      t.equal(got.error, 'malformed_payment')
    }
  }
})

t.test('an offer says what is sold: bytes of an answer, or an allowance', async (t) => {
  const { shop } = await scene(t)
  const [file, echo] = await Promise.all(['/file', '/gateway/x402/test'].map((path) => get(shop.url + path)))
  const described = (got?: { text: string }) => JSON.parse(got?.text ?? '').accepts[0]
  t.match(described(file), {
    description: `Gateway data egress for ${fileBytes} bytes`,
    mimeType: 'text/plain',
  })
  t.match(described(echo), { description: 'Allowance for gateway data egress', mimeType: 'application/json' })
})

t.test('a payer without money is refused by the facilitator, and nothing is kept', async (t) => {
  const { facilitator, shop } = await scene(t)
  const got = await get(`${shop.url}/file`, await payment(newAccount(), 1, { to: payee }))
  t.match(got, { status: 402, error: 'payment_verification_failed', message: 'insufficient_funds' })
  t.equal(facilitator.count('settle'), 0)
  t.equal(shop.records.recent(10).length, 0)
})

t.test('a payment settles and credits once, however often and from wherever it is shown', async (t) => {
  const { facilitator, shop, payer, taken } = await scene(t, { multiplier: 1 })
  for (const version of [1, 2] as const) {
    const headers = await payment(payer, version, { to: payee })
    const before = facilitator.count('settle')
    const all = await Promise.all(Array.from({ length: 8 }, () => get(`${shop.url}/9999000`, headers)))
    t.equal(facilitator.count('settle') - before, 1, 'settled once')
    const paid = all.filter(({ status }) => status === 200)
    t.equal(paid.length, 1, 'and it paid for one answer')
    t.same(new Set(all.map(({ status }) => status)), new Set([200, 402]))
    const receipt = unpacked<{ success: boolean; payer: string; network: string; transaction: string }>(
      paid[0]?.headers.get(version === 1 ? 'x-payment-response' : 'payment-response') ?? null,
    )
    t.match(receipt, { success: true, network: version === 1 ? 'base-sepolia' : 'eip155:84532' })
    t.match(receipt.transaction, /^0x[0-9a-f]{64}$/)
    const again = await get(`${shop.url}/9999000`, { ...headers, 'x-client': 'a thief' })
    t.match(again, { status: 409, error: 'payment_already_used' }, 'a thief who saw the header gets nothing')
    t.notMatch(again.text, /accepts/)
    t.equal(facilitator.count('settle') - before, 1)
  }
  t.equal(taken(), 2000n)
  t.equal(shop.purse.payments.size, 2)
  const rows = shop.records.recent(10)
  t.equal(rows.length, 2)
  t.notMatch(JSON.stringify(rows), /signature|message/, 'the list holds nothing that could be used')
})

t.test('two authorizations with one nonce are two payments: the second is refused', async (t) => {
  const { facilitator, shop, payer, taken } = await scene(t)
  const nonce = `0x${'ab'.repeat(32)}` as const
  const first = await payment(payer, 1, { to: payee, nonce })
  const second = await payment(payer, 1, { to: payee, nonce, value: '2000' })
  t.equal((await get(`${shop.url}/file`, first)).status, 200)
  shop.purse.tokens.clear()
  const got = await get(`${shop.url}/20000000`, second)
  t.match(got, { status: 402, message: 'invalid_exact_evm_nonce_already_used' })
  t.equal(facilitator.count('settle'), 1)
  t.equal(taken(), 1000n)
})

t.test('a facilitator that cannot be used moves no money: 503, Retry-After, no offer', async (t) => {
  const modes: Record<string, ScriptedFacilitator['verify']> = {
    silent: () => true,
    'a 500 in JSON': says(500, { isValid: true }),
    'a 503 in HTML': sends(503, '<html>busy'),
    'not JSON': sends(200, 'ok'),
    'an empty object': says(200, {}),
    'an array': says(200, [true]),
    'isValid as text': says(200, { isValid: 'true' }),
    'another payer': says(200, { isValid: true, payer: payee }),
    'too many requests': says(429, { error: 'slow down' }),
    unauthorised: says(401, { isValid: true }),
    'reset in the middle': ({ response }) => {
      response.writeHead(200, { 'content-length': '100' })
      response.write('{"isV')
      response.destroy()
      return true
    },
    'a megabyte': sends(200, `"${'x'.repeat(2 ** 20)}"`),
    'a redirect': sends(307, '', { location: '/verify' }),
  }
  const { facilitator, shop, payer, taken } = await scene(t, { verifyMs: 2000 })
  const headers = await payment(payer, 1, { to: payee })
  for (const [name, script] of Object.entries(modes)) {
    facilitator.verify = script
    const got = await get(`${shop.url}/file`, headers)
    t.match(got, { status: 503, error: 'payment_service_unavailable' }, name)
    t.ok(Number(got.headers.get('retry-after')) > 0)
  }
  t.equal(facilitator.count('settle'), 0)
  facilitator.verify = undefined
  t.equal((await get(`${shop.url}/file`, headers)).status, 200, 'the same payment is good when it is back')
  t.equal(taken(), 1000n)
})

t.test('a facilitator that is unreachable, or refuses a settlement, moves no money', async (t) => {
  const { facilitator, shop, payer, taken } = await scene(t)
  const headers = await payment(payer, 1, { to: payee })
  facilitator.settle = says(429, { error: 'slow down' })
  t.equal((await get(`${shop.url}/file`, headers)).status, 503)
  t.equal(shop.records.recent(10).length, 0, 'nothing is left on record')
  await facilitator.close()
  t.equal((await get(`${shop.url}/file`, headers)).status, 503)
  t.equal(taken(), 0n)
  t.equal(shop.purse.payments.size, 0)
})

t.test(
  'a facilitator that supports nothing yet is asked again soon, and then payments are taken',
  async (t) => {
    const facilitator = await scriptedFacilitator(t)
    facilitator.supported = (call) => facilitator.count('supported') < 3 && says(200, { kinds: [] })(call)
    const { kinds } = await openShop(t, { facilitatorUrl: facilitator.url, wallet: payee })
    t.ok(
      await eventually(
        'the kinds of both protocols are known',
        () => kinds.known && kinds.has(1) && kinds.has(2),
      ),
    )
    t.equal(facilitator.count('supported'), 3)
  },
)

t.test('a 4xx with a verdict in its body is a verdict', async (t) => {
  const { facilitator, shop, payer } = await scene(t)
  facilitator.verify = says(400, { isValid: false, invalidReason: 'insufficient_funds' })
  const got = await get(`${shop.url}/file`, await payment(payer, 1, { to: payee }))
  t.match(got, { status: 402, message: 'insufficient_funds' })
})

t.test('reasons that are not codes of the protocol are not passed on', async (t) => {
  const { facilitator, shop, payer } = await scene(t)
  const raw = 'HTTP request failed.\nURL: https://node.example/v2/secret-key\r\nX-Evil: 1 </script>'
  facilitator.verify = says(200, { isValid: false, invalidReason: raw })
  const one = await get(`${shop.url}/file`, await payment(payer, 2, { to: payee }))
  facilitator.verify = undefined
  facilitator.settle = says(200, { success: false, errorReason: raw, transaction: '' })
  const two = await get(`${shop.url}/file`, await payment(payer, 2, { to: payee }))
  t.equal(one.status, 402)
  t.equal(two.status, 409, 'it may have moved')
  for (const got of [one, two]) {
    const everything = got.text + [...got.headers].flat().join()
    const decoded = Buffer.from(got.headers.get('payment-required') ?? '', 'base64').toString()
    t.notMatch(everything + decoded, /secret|<\/|Evil/)
  }
})

t.test('a refused settlement is a 402, and final for that payment', async (t) => {
  const { facilitator, shop, payer } = await scene(t)
  facilitator.settle = says(200, {
    success: false,
    errorReason: 'insufficient_funds',
    transaction: '',
  })
  const headers = await payment(payer, 1, { to: payee })
  const got = await get(`${shop.url}/file`, headers)
  t.match(got, { status: 402, error: 'payment_settlement_failed', message: 'insufficient_funds' })
  t.match(unpacked(got.headers.get('x-payment-response')), { success: false })
  facilitator.settle = undefined
  t.equal((await get(`${shop.url}/file`, headers)).status, 402)
  t.equal(facilitator.count('settle'), 1, 'not asked again')
  t.match(shop.records.recent(1), [{ state: 'failed', doubtful: false }])
})

/** What facilitators answer where they sent the transaction, and could not wait for its receipt. */
const sentAndLost: Record<string, Script> = {
  'a failure of its node': says(200, {
    success: false,
    errorReason: 'settle_exact_node_failure',
    transaction: `0x${'4'.repeat(64)}`,
  }),
  'no receipt': says(200, { success: false, errorReason: 'invalid_exact_evm_failed_to_get_receipt' }),
  'a failure without a hash': says(200, {
    success: false,
    errorReason: 'transaction_failed',
    transaction: '',
  }),
  'a 400': says(400, { error: 'Timed out while waiting for transaction' }),
}

for (const [name, script] of Object.entries(sentAndLost)) {
  t.test(`${name} after the transaction was sent does not lose the payment`, async (t) => {
    const mined = `0x${'4'.repeat(64)}` as const
    const witness = { moved: async () => mined }
    const seen = await scene(t, { witness, cashier: { waitMs: 60_000 } })
    seen.facilitator.settle = script
    const got = await get(`${seen.shop.url}/file`, await payment(seen.payer, 1, { to: payee }))
    t.equal(got.status, 200, 'the chain has it')

    const blind = await scene(t, { cashier: { waitMs: 60_000, giveUpMs: -60_000 } })
    blind.facilitator.settle = script
    const headers = await payment(blind.payer, 1, { to: payee })
    const decided = await untilDecided(blind.shop, headers)
    t.match(decided, { status: 409, error: 'settlement_unknown' }, 'nobody sees the chain: no new offer')
    t.match(blind.shop.records.recent(1), [{ state: 'failed', doubtful: true }])
  })
}

t.test('a payment that failed in doubt counts when the chain shows it', async (t) => {
  const mined = `0x${'5'.repeat(64)}` as const
  let seen: MovedOnChain = 'unknown'
  const witness = { moved: async () => seen }
  const cashier = { waitMs: 60_000, giveUpMs: -60_000, doubtfulEveryMs: 20 }
  const { facilitator, shop, payer } = await scene(t, { witness, cashier })
  facilitator.settle = says(200, { success: false, errorReason: 'transaction_failed' })
  const [moves, never] = [await payment(payer, 1, { to: payee }), await payment(payer, 2, { to: payee })]
  const decided = (headers: Record<string, string>, status: number) =>
    eventually(`a payment answered ${status}`, async () => {
      const got = await get(`${shop.url}/file`, headers)
      return got.status === status ? got : undefined
    })
  t.match(await decided(moves, 409), { error: 'settlement_unknown' })
  seen = mined
  await decided(moves, 200)
  t.equal(facilitator.count('settle'), 1, 'the facilitator gets no second request')
  t.equal(shop.purse.payments.size, 1)
  shop.purse.tokens.clear()
  seen = 'unknown'
  await decided(never, 409)
  seen = 'never'
  t.match(await decided(never, 402), { error: 'payment_settlement_failed' }, 'it can be paid again')
  t.equal(shop.purse.payments.size, 1)
})

t.test('a payment whose own first attempt used the nonce counts when the chain shows it', async (t) => {
  const mined = `0x${'6'.repeat(64)}` as const
  let seen: MovedOnChain = 'unknown'
  const witness = { moved: async () => seen }
  const cashier = { waitMs: 60_000, giveUpMs: -59_900, doubtfulEveryMs: 20 }
  const { facilitator, shop, payer } = await scene(t, { witness, cashier })
  facilitator.settle = (call) =>
    facilitator.count('settle') === 1
      ? breaks(call)
      : says(200, { success: false, errorReason: 'invalid_exact_evm_nonce_already_used' })(call)
  const headers = await payment(payer, 1, { to: payee })
  await eventually('it failed in doubt', async () => (await get(`${shop.url}/file`, headers)).status === 409)
  seen = mined
  await eventually('it counts', async () => (await get(`${shop.url}/file`, headers)).status === 200)
  t.equal(shop.purse.payments.size, 1)
})

t.test('one payer has few payments that only the chain can decide', async (t) => {
  const { facilitator, shop, payer } = await scene(t, {
    witness: { moved: async () => 'unknown' },
    cashier: { waitMs: 60_000, giveUpMs: -60_000 },
  })
  facilitator.settle = says(400, { error: 'Timed out while waiting for transaction' })
  const statuses: number[] = []
  for (let count = 0; count < 12; count += 1)
    statuses.push((await get(`${shop.url}/file`, await payment(payer, 2, { to: payee }))).status)
  t.strictSame(statuses, [...Array(8).fill(409), ...Array(4).fill(statuses.at(-1))])
  t.ok([429, 503].includes(statuses.at(-1) ?? 0), `then they are not begun: ${statuses.at(-1)}`)
  t.equal(facilitator.count('settle'), 8)
})

t.test('a nonce that somebody else used is never offered again', async (t) => {
  const { facilitator, shop, payer } = await scene(t)
  facilitator.settle = says(200, { success: false, errorReason: 'invalid_exact_evm_nonce_already_used' })
  const got = await get(`${shop.url}/file`, await payment(payer, 1, { to: payee }))
  t.match(got, { status: 409, error: 'settlement_unknown' })
  t.match(shop.records.recent(1), [{ state: 'failed', doubtful: true, isStray: true }])
  t.strictSame(shop.records.doubtful('', 9), [], 'the transfer may be of another seller')
})

t.test('a settlement that outlives the request goes on, and the same payment joins it', async (t) => {
  const { facilitator, shop, payer, taken } = await scene(t, { settleMs: 60_000, cashier: { waitMs: 100 } })
  let release: () => void = () => undefined
  const held = new Promise<void>((resolve) => {
    release = resolve
  })
  facilitator.afterSettle = async () => {
    await held
    return false
  }
  const headers = await payment(payer, 1, { to: payee })
  const [one, two] = await Promise.all([get(`${shop.url}/file`, headers), get(`${shop.url}/file`, headers)])
  for (const got of [one, two]) t.match(got, { status: 503, error: 'settlement_pending' })
  t.ok(Number(one.headers.get('retry-after')) > 0)
  release()
  await eventually('the payment is credited', () => shop.purse.payments.size === 1)
  t.pass('credited though nobody waited')
  const got = await get(`${shop.url}/file`, headers)
  t.equal(got.status, 200)
  t.equal(facilitator.count('settle'), 1)
  t.equal(taken(), 1000n)
})

t.test('a settlement whose answer is lost is asked for again, and never credited twice', async (t) => {
  const lost: Record<string, ScriptedFacilitator['afterSettle']> = {
    silent: () => true,
    reset: breaks,
    'a 500': says(500, { error: 'lost' }),
    'HTML with 200': sends(200, '<html>'),
    'success without a transaction': says(200, { success: true, transaction: '' }),
    'success of another payer': says(200, {
      success: true,
      transaction: `0x${'1'.repeat(64)}`,
      payer: payee,
    }),
  }
  for (const [name, script] of Object.entries(lost)) {
    const { facilitator, shop, payer, taken } = await scene(t, {
      settleMs: 200,
      cashier: { waitMs: 50, retryMs: 150 },
    })
    facilitator.remembers = true
    facilitator.afterSettle = script
    let answerAgain = (): void => undefined
    const held = new Promise<void>((resolve) => {
      answerAgain = resolve
    })
    facilitator.settle = async () => {
      if (facilitator.count('settle') > 1) await held
      return false
    }
    const headers = await payment(payer, 1, { to: payee })
    t.equal((await get(`${shop.url}/file`, headers)).status, 503, name)
    t.equal(shop.purse.payments.size, 0, 'not credited on a guess')
    answerAgain()
    t.equal((await untilDecided(shop, headers)).status, 200, name)
    t.equal(taken(), 1000n)
    t.equal(shop.purse.payments.size, 1)
  }
})

t.test('settlement_pending is asked again until it is over', async (t) => {
  const { facilitator, shop, payer, taken } = await scene(t)
  let times = 0
  facilitator.settle = ({ json }) => {
    times += 1
    if (times > 3) return false
    json(200, { success: false, errorReason: 'settlement_pending', transaction: `0x${'2'.repeat(64)}` })
    return true
  }
  const got = await get(`${shop.url}/file`, await payment(payer, 2, { to: payee }))
  t.equal(got.status, 200)
  t.equal(times, 4)
  t.equal(taken(), 1000n)
})

t.test('an answer that never comes is given up, and said to be doubtful', async (t) => {
  const { facilitator, shop, payer } = await scene(t, { cashier: { waitMs: 50 } })
  facilitator.settle = ({ json, response }) => {
    if (facilitator.count('settle') === 1) response.destroy()
    else json(200, { success: false, errorReason: 'invalid_exact_evm_nonce_already_used', transaction: '' })
    return true
  }
  const headers = await payment(payer, 1, { to: payee })
  await get(`${shop.url}/file`, headers)
  const decided = await untilDecided(shop, headers)
  t.match(decided, { status: 409, error: 'settlement_unknown' }, 'never served unpaid, nor offered again')
  t.notMatch(decided.text, /accepts/)
  t.match(shop.records.recent(1), [{ state: 'failed', doubtful: true }])
})

t.test('a payment that is mined late is seen late, and served', async (t) => {
  const mined = `0x${'3'.repeat(64)}` as const
  const words = ['no', 'unknown', 'early', 'no', mined] as const
  let looks = 0
  const witness = { moved: async () => words[looks++] ?? mined }
  const { facilitator, shop, payer } = await scene(t, { witness, cashier: { waitMs: 60_000 } })
  facilitator.settle = (call) => {
    if (facilitator.count('settle') === 1) return breaks(call)
    return says(200, { success: false, errorReason: 'invalid_transaction_state', transaction: '' })(call)
  }
  const got = await get(`${shop.url}/file`, await payment(payer, 1, { to: payee }))
  t.equal(got.status, 200)
  t.match(unpacked(got.headers.get('x-payment-response')), { success: true, transaction: mined })
  t.equal(looks, 5)
})

t.test('tokens that cannot be credited at once are credited later', async (t) => {
  const { shop, payer } = await scene(t)
  shop.purse.broken = 2
  const got = await get(`${shop.url}/file`, await payment(payer, 1, { to: payee }))
  t.equal(got.status, 200)
  t.equal(shop.purse.payments.size, 1)
})

t.test(
  'tokens that were paid for and not credited when the process died are credited at the next start',
  async (t) => {
    const path = t.testdir()
    const facilitator = await scriptedFacilitator(t)
    const payer = newAccount()
    facilitator.balances.set(payer.address.toLowerCase(), 10_000n)
    const options = { facilitatorUrl: facilitator.url, wallet: payee, path, cashier: { waitMs: 50 } }
    const purse = new Purse()
    purse.broken = 1_000_000
    const first = await openShop(t, { ...options, purse })
    const headers = await payment(payer, 1, { to: payee })
    t.match(await get(`${first.url}/file`, headers), { status: 503, error: 'settlement_pending' })
    // The answer above comes after 50 ms, on a busy machine before the facilitator's, and nothing would be known as paid.
    await eventually('the payment is settled', () => first.records.recent(1)[0]?.state === 'settled')
    await first.close()
    purse.broken = 0
    const second = await openShop(t, { ...options, purse })
    t.equal((await untilDecided(second, headers)).status, 200)
    t.equal(purse.payments.size, 1)
    t.equal(facilitator.count('settle'), 1)
  },
)

t.test('a flood of false signatures leaves turns for the payments of others', async (t) => {
  // Faults are not forgotten meanwhile.
  const clock = { ...systemClock, monotonic: () => 1000 }
  const { facilitator, shop, payer } = await scene(t, { clock })
  const bad = await payment(newAccount(), 1, { to: payee, tamper: { from: newAccount().address } })
  const pay = (headers: Readonly<Record<string, string>>, client: string) =>
    get(`${shop.url}/file`, { ...headers, 'x-client': client })
  const flood = async (count: number, addressOf: (at: number) => string): Promise<void> => {
    const all = await Promise.all(Array.from({ length: count }, (_, at) => pay(bad, addressOf(at))))
    const turned = all.filter(({ status }) => status === 503)
    t.ok(turned.every(({ headers }) => headers.get('retry-after') === '1'))
    t.equal(all.filter(({ status }) => status === 402).length + turned.length, count)
  }
  await flood(60, () => '198.51.100.1')
  t.equal((await pay(bad, '198.51.100.1')).status, 503, 'who has sent many false ones has to wait')
  t.equal((await pay(await payment(payer, 1, { to: payee }), '198.51.100.77')).status, 200, 'others pay')
  const flooding = flood(300, (at) => `${20 + (at % 40)}.${at % 3}.100.1`)
  t.equal((await pay(await payment(payer, 1, { to: payee }), '192.0.2.5')).status, 200, 'others pay')
  await flooding
  t.equal(facilitator.count('verify'), 2)
})

t.test('settlements beyond the bound are refused before any money moves', async (t) => {
  const room = { verifyMs: 60_000, cashier: { settlementsMax: 2, waitMs: 60_000 } }
  const { facilitator, shop, payer, taken } = await scene(t, room)
  let release: () => void = () => undefined
  const turnedAway = new Promise<void>((resolve) => {
    release = resolve
  })
  facilitator.verify = async () => {
    await turnedAway
    return false
  }
  const all = await Promise.all(
    Array.from({ length: 5 }, async () => {
      const got = await get(`${shop.url}/file`, await payment(payer, 1, { to: payee }))
      if (got.status === 503) release()
      return got
    }),
  )
  const busy = all.filter(({ status }) => status === 503).length
  t.ok(busy >= 1, `${busy} were turned away`)
  t.equal(taken(), BigInt(1000 * facilitator.count('settle')))
})

t.test('a settlement that was under way when the process died is resumed at the next start', async (t) => {
  const path = t.testdir()
  const facilitator = await scriptedFacilitator(t)
  facilitator.remembers = true
  const payer = newAccount()
  facilitator.balances.set(payer.address.toLowerCase(), 10_000n)
  facilitator.afterSettle = () => true
  const options = { facilitatorUrl: facilitator.url, wallet: payee, path, cashier: { waitMs: 50 } }
  const first = await openShop(t, options)
  const headers = await payment(payer, 1, { to: payee })
  t.equal((await get(`${first.url}/file`, headers)).status, 503)
  // The answer above comes after 50 ms, on a busy machine before the request to the facilitator, and nothing would be under way.
  await eventually('the money has moved', () => facilitator.balances.get(payee.toLowerCase()) === 1000n)
  await first.close()
  facilitator.afterSettle = undefined
  const second = await openShop(t, { ...options, purse: first.purse })
  await eventually('the second one credits the payment', () => second.purse.payments.size === 1)
  t.pass('credited though nobody asked')
  t.equal((await untilDecided(second, headers)).status, 200)
  t.equal(facilitator.balances.get(payee.toLowerCase()), 1000n)
  await second.close()
  const third = await openShop(t, { ...options, purse: new Purse() })
  t.equal((await get(`${third.url}/file`, headers)).status, 402, 'and is not credited again')
  t.equal(facilitator.count('settle'), 2)
})
