/** Payments in USDC that are only promised: one balance covers any number of them. */
import t, { type Test } from 'tap'
import { ed25519Signer, signItem } from '../../../src/proof/sign.js'
import { openUploadTables } from '../../../src/upload/records/uploads.js'
import type { UploadAnswer } from '../../../src/upload/requests/upload-answers.js'
import { UnsettledPayments } from '../../../src/upload/usdc/unsettled-payments.js'
import { eventually } from '../../eventually.js'
import { answered, type RigOptions, requestOf, type UploadRig, uploadRig } from '../upload-rig.js'

const path = '/x402/upload/signed'
const signer = ed25519Signer(Buffer.alloc(32, 7))
const item = signItem(signer, {}, Buffer.alloc(900_000, 'x'))

async function rigOf(t: Test, options: RigOptions = {}): Promise<UploadRig> {
  const environment = openUploadTables(t.testdir())
  t.teardown(() => environment.close())
  // Timers of the system's clock keep no process alive.
  const awake = setInterval(() => undefined, 1000)
  t.teardown(() => clearInterval(awake))
  return uploadRig(t, environment, {
    look: async () => ({ good: true, units: '1000' }),
    isRich: true,
    ...options,
  })
}

interface Promise402 {
  readonly nonce: number
  readonly value?: string
  /** Seconds from now. */
  readonly validFor?: number
  /** IP address of the client that brings it. */
  readonly client?: string
}

function payment({ nonce, value = '1000', validFor = 600 }: Promise402): string {
  const authorization = {
    from: `0x${'a1'.repeat(20)}`,
    to: `0x${'b2'.repeat(20)}`,
    value,
    validAfter: '0',
    validBefore: String(Math.floor(Date.now() / 1000) + validFor),
    nonce: `0x${nonce.toString(16).padStart(64, '0')}`,
  }
  const payload = { signature: `0x${'c3'.repeat(65)}`, authorization }
  const given = { x402Version: 1, scheme: 'exact', network: 'base-sepolia', payload }
  return Buffer.from(JSON.stringify(given)).toString('base64')
}

/** An upload that brings so many bytes and then no more. */
function stuck(rig: UploadRig, promised: Promise402, bytes = 600_000): Promise<UploadAnswer> {
  const headers = { 'content-length': String(item.length), 'x-payment': payment(promised) }
  const request = requestOf('POST', path, { from: promised.client ?? '198.51.100.7', headers })
  const stream: typeof request.stream = (sink) => {
    setImmediate(() => sink.piece(item.subarray(0, bytes)))
    return { pause: () => undefined, resume: () => undefined }
  }
  return answered(rig, path, { ...request, stream })
}

t.test('an upload whose payment is only promised makes room as a free one does', async (t) => {
  let isFull = false
  const rig: UploadRig = await rigOf(t, { leftBytes: () => (isFull ? 700_000 - rig.arriving.bytes : 1e12) })
  const held = stuck(rig, { nonce: 1 })
  await eventually('its bytes are on disk', () => rig.arriving.bytes > 0)
  isFull = true
  const other = signItem(signer, {}, Buffer.alloc(300_000, 'y'))
  const post = requestOf('POST', '/tx', {
    from: '203.0.113.1',
    headers: { 'content-length': String(other.length) },
    pieces: [other],
  })
  t.match(await answered(rig, '/tx', post), { status: 200 })
  t.match(await held, { status: 503 })
})

t.test('an upload ends when the time of its payment is over', async (t) => {
  const rig = await rigOf(t)
  const held = stuck(rig, { nonce: 1, validFor: 2 })
  t.match(await held, { status: 402 })
  t.equal(rig.arriving.bytes, 0)
})

t.test('bytes that the service signs end with their payment, too', async (t) => {
  const rig = await rigOf(t)
  const unsigned = '/x402/upload/unsigned'
  const headers = { 'content-length': '900000', 'x-payment': payment({ nonce: 1, validFor: 2 }) }
  const request = requestOf('POST', unsigned, { from: '198.51.100.7', headers })
  const stream: typeof request.stream = (sink) => {
    setImmediate(() => sink.piece(Buffer.alloc(600_000)))
    return { pause: () => undefined, resume: () => undefined }
  }
  t.match(await answered(rig, unsigned, { ...request, stream }), { status: 402 })
  t.equal(rig.arriving.bytes, 0)
})

t.test('a payer has some payments open at a time', async (t) => {
  const rig = await rigOf(t)
  const held = Array.from({ length: 64 }, (_, nonce) => stuck(rig, { nonce, validFor: 3 }, 1000))
  t.match(await stuck(rig, { nonce: 64 }), { status: 429, lines: /Retry-After/ })
  for (const answer of await Promise.all(held)) t.equal(answer.status, 402)
  t.match(
    await stuck(rig, { nonce: 65, validFor: 2 }),
    { status: 402 },
    'when they are over, others may come',
  )
})

/** A service that is still looking at payments of a client, and finds others good. `units`: what they cost. */
const looking =
  (units: string): NonNullable<RigOptions['look']> =>
  async ({ asker }) =>
    asker.startsWith('203.0.113.') ? new Promise(() => undefined) : { good: true, units }

t.test('payments that only name a payer keep him from nothing', async (t) => {
  const rig = await rigOf(t, { look: looking('1000') })
  const strange: Promise<UploadAnswer>[] = []
  for (let nonce = 0; nonce < 300; nonce += 1)
    strange.push(stuck(rig, { nonce, value: '100000000', validFor: 2, client: `203.0.113.${nonce % 100}` }))
  const own = stuck(rig, { nonce: 1000, validFor: 2 })
  t.match(await own, { status: 402 }, 'his upload goes on until its payment is over')
  for (const answer of await Promise.all(strange)) t.not(answer.status, 200)
})

t.test('payments that one client has looked at are bounded, and others have their own bound', async (t) => {
  const rig = await rigOf(t, { look: looking('1000') })
  const one = { validFor: 2, client: '203.0.113.1' }
  const held = Array.from({ length: 64 }, (_, nonce) => stuck(rig, { nonce, ...one }))
  t.match(await stuck(rig, { nonce: 64, ...one }), { status: 429, lines: /Retry-After/ })
  t.match(await stuck(rig, { nonce: 65, validFor: 2 }), { status: 402 })
  await Promise.all(held)
})

t.test('a payment counts by what it costs, and one that was made counts nothing', async (t) => {
  const large = { value: '100000000', validFor: 2 }
  for (const [units, count] of [
    ['1000', 20],
    ['0', 100],
  ] as const) {
    const rig = await rigOf(t, { look: looking(units) })
    const all = Array.from({ length: count }, (_, nonce) =>
      stuck(rig, { nonce, ...large, client: `198.51.100.${nonce}` }, 1000),
    )
    for (const answer of await Promise.all(all)) t.equal(answer.status, 402)
  }
  const rig = await rigOf(t, { look: looking('60000000') })
  const first = stuck(rig, { nonce: 1, ...large })
  await eventually('its bytes are on disk', () => rig.arriving.bytes > 0)
  t.match(await stuck(rig, { nonce: 2, ...large }), { status: 429 })
  await first
})

t.test('a body whose length is not known costs more as it comes', (t) => {
  const promises = new UnsettledPayments()
  const over = promises.open('a', 'one', 1n)
  t.ok(promises.grow('a', 'one', 10n ** 12n), 'any single payment may grow')
  over?.()
  t.ok(promises.open('a', 'two', 99_000_000n))
  t.ok(promises.open('a', 'three', 1n))
  t.notOk(promises.grow('a', 'three', 2_000_000n))
  t.ok(promises.grow('a', 'three', 1_000_000n))
  t.equal(promises.open('a', 'four', 1n), undefined)
  t.end()
})

t.test('what one payer promises has a bounded sum, and a payment counts once', (t) => {
  const promises = new UnsettledPayments()
  const dollars = (count: number): bigint => BigInt(count) * 1_000_000n
  const large = promises.open('a', 'large', dollars(5000))
  t.ok(large, 'any single payment may be brought')
  t.ok(promises.open('a', 'large', dollars(5000)), 'by several requests')
  t.equal(promises.open('a', 'small', 1n), undefined)
  t.ok(promises.open('b', 'small', 1n), 'others have their own bound')
  const open = promises.open('c', 'one', dollars(60))
  t.equal(promises.open('c', 'two', dollars(41)), undefined)
  t.ok(promises.open('c', 'three', dollars(40)))
  open?.()
  open?.()
  t.ok(promises.open('c', 'two', dollars(41)))
  t.end()
})

t.test('an item stays while its payment may move, whatever a repeated order is answered', async (t) => {
  const small = signItem(signer, {}, Buffer.from('small'))
  const facts = { payment: 'p', winc: '7', units: '1000', transaction: '0x1', payer: '0xa', network: 'base' }
  let [isPaid, payments] = [false, 0]
  const rig = await rigOf(t, {
    look: async () => ({ good: true, units: '0' }),
    pay: async () => {
      payments += 1
      return { status: payments === 1 ? 503 : 402, json: { payments }, lines: '' }
    },
    outcome: async () => (isPaid ? { paid: true, lines: '', ...facts } : { paid: false, state: 'open' }),
  })
  const buy = (nonce: number): Promise<UploadAnswer> => {
    const headers = { 'content-length': String(small.length), 'x-payment': payment({ nonce }) }
    return answered(rig, path, requestOf('POST', path, { headers, pieces: [small] }))
  }
  t.match(await buy(1), { status: 503 })
  t.match(
    await buy(1),
    { status: 503 },
    'refused now, because its validity is over, and under way since before',
  )
  isPaid = true
  t.match(await buy(1), { status: 200 }, 'it was settled')
})

t.test('an item goes when nothing of its payment can move', async (t) => {
  const small = signItem(signer, {}, Buffer.from('other'))
  const rig = await rigOf(t, {
    pay: async () => ({ status: 402, json: {}, lines: '' }),
    outcome: async () => ({ paid: false, state: 'unknown' }),
  })
  const headers = { 'content-length': String(small.length), 'x-payment': payment({ nonce: 1 }) }
  t.match(await answered(rig, path, requestOf('POST', path, { headers, pieces: [small] })), { status: 402 })
})
