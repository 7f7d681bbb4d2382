import { Redis } from 'ioredis'
import t, { type Test } from 'tap'
import { systemClock } from '../../src/actor/clock.js'
import type { SettledPayment } from '../../src/admission/admission-port.js'
import type { Witness } from '../../src/admission/chain-witness.js'
import { Clients } from '../../src/admission/clients.js'
import { RecordedOwners, type RecordOwner } from '../../src/admission/payment-owners.js'
import { RedisBuckets } from '../../src/admission/redis-buckets.js'
import type { KeptName, SettlementClaims } from '../../src/admission/settlement-claims.js'
import { eventually } from '../eventually.js'
import { scratch } from '../scratch.js'
import { dataFolder, localBuckets, silent, someClients } from './house.js'
import { hasRedis, startRedis, until } from './redis-server.js'
import { newAccount, payee } from './scene.js'
import { type ScriptedFacilitator, scriptedFacilitator } from './scripted-facilitator.js'
import { get, openShop, Purse, payment, type Shop, type ShopOptions, unpacked } from './shop.js'

const skip = hasRedis ? false : 'redis-server is not installed'
const rules = { capacity: 100, refillPerSecond: 0 }

/** A purse whose payments are marked in a Redis, too, as those of gateways are. */
class RedisPurse extends Purse {
  constructor(readonly redis: RedisBuckets) {
    super()
  }

  override async credit(
    client: string,
    payment: string,
    tokens: number,
    settled?: SettledPayment,
  ): Promise<'credited' | 'known'> {
    await this.redis.credit(client, payment, tokens, settled)
    return super.credit(client, payment, tokens)
  }
}

interface House {
  readonly purse: RedisPurse
  /** The server behind it, past the gateways. */
  readonly raw: Redis
  claims(self: string, leftMs?: number, kept?: KeptName): SettlementClaims
}

const secret = { low: 1, high: 2 }

/** A Redis of its own, and the purse of all gateways that use it. */
async function house(t: Test): Promise<House> {
  const server = await startRedis(dataFolder())
  const buckets = new RedisBuckets({
    redis: {
      endpoint: `redis://127.0.0.1:${server.port}`,
      tls: false,
      cluster: false,
      failure: 'closed',
      timeoutMs: 30_000,
    },
    ip: rules,
    resource: rules,
    clock: systemClock,
    log: silent,
    local: localBuckets({ ip: rules, resource: rules }, secret),
    clients: new Clients(someClients, secret),
  })
  const raw = new Redis(server.port, '127.0.0.1')
  t.teardown(async () => {
    raw.disconnect()
    await buckets.close()
    await server.stop()
  })
  const claims: House['claims'] = (self, leftMs = 60_000, kept) =>
    buckets.claims({ self, leftMs, ...(kept === undefined ? {} : { kept }) })
  await until(() =>
    claims('x')
      .look('none')
      .then(
        () => true,
        () => false,
      ),
  )
  return { purse: new RedisPurse(buckets), raw, claims }
}

/** Lets calls go on in the same moment, when so many are here. */
function together(count: number): () => Promise<void> {
  let open: () => void = () => undefined
  const all = new Promise<void>((resolve) => {
    open = resolve
  })
  let here = 0
  return () => {
    here += 1
    if (here >= count) open()
    return all
  }
}

/** Sees on the chain what the facilitator moved. */
function watching(facilitator: ScriptedFacilitator): Witness {
  return {
    async moved({ payment, payer }) {
      const nonce = payment.slice(payment.lastIndexOf(':') + 1)
      return facilitator.used.has(payer + nonce) ? `0x${'ab'.repeat(32)}` : 'no'
    },
  }
}

/** Nodes of the chain that decide nothing: one that does not answer, and none. */
const blind = [{ moved: async () => 'unknown' as const }, undefined]

interface Town {
  readonly facilitator: ScriptedFacilitator
  readonly headers: Record<string, string>
  open(of: House, self: string, leftMs?: number, more?: Partial<ShopOptions>): Promise<Shop>
}

/** Brings the payment to a gateway that dies, or cannot go on, once its money has moved. */
async function leave({ facilitator, headers }: Town, shop: Shop): Promise<void> {
  facilitator.afterSettle = ({ response }) => {
    void shop.close()
    response.destroy()
    return true
  }
  await get(`${shop.url}/file`, headers).catch(() => undefined)
  await eventually('the money has moved', () => facilitator.used.size === 1)
  await shop.close()
  facilitator.afterSettle = undefined
}

/** One wallet, one payer, one payment. */
async function town(t: Test): Promise<Town> {
  const facilitator = await scriptedFacilitator(t)
  const payer = newAccount()
  facilitator.balances.set(payer.address.toLowerCase(), 5000n)
  const headers = await payment(payer, 1, { to: payee })
  const folder = scratch('shop')
  return {
    facilitator,
    headers,
    open: (of, self, leftMs, more = {}) =>
      openShop(t, {
        facilitatorUrl: facilitator.url,
        wallet: payee,
        path: `${folder}/${self}`,
        purse: of.purse,
        claims: of.claims(self, leftMs),
        witness: watching(facilitator),
        cashier: { retryMs: 5 },
        ...more,
      }),
  }
}

t.test(
  'what one gateway took, one with the same Redis serves, and one with another does not',
  { skip },
  async (t) => {
    const { facilitator, headers, open } = await town(t)
    const [ours, others] = [await house(t), await house(t)]
    const [first, second, foreign] = [await open(ours, 'a'), await open(ours, 'b'), await open(others, 'c')]
    t.equal((await get(`${first.url}/file`, headers)).status, 200)
    t.equal((await get(`${foreign.url}/file`, headers)).status, 402, 'it moved, but not for these buckets')
    t.equal(others.purse.payments.size, 0)
    ours.purse.tokens.clear()
    t.equal((await get(`${second.url}/file`, headers)).status, 402, 'spent')
    t.equal(ours.purse.payments.size, 1)
    t.equal(second.records.recent(1)[0]?.state, 'settled', 'it was taken over')
    t.equal(facilitator.count('settle'), 1)
  },
)

t.test(
  'gateways that ask at once: one settles, only those with its Redis may have it',
  { skip },
  async (t) => {
    const { facilitator, headers, open } = await town(t)
    const [ours, others] = [await house(t), await house(t)]
    const first = await open(ours, 'a')
    const foreign = [await open(others, 'c'), await open(others, 'd')]
    let release: () => void = () => undefined
    const released = new Promise<void>((resolve) => {
      release = resolve
    })
    // All three have the facilitator's word that the payment is good, and request the settlement; then one of them gets it.
    const [verified, requested] = [together(3), together(3)]
    facilitator.settle = async () => {
      const isFirst = facilitator.count('settle') === 1
      await requested()
      if (!isFirst) await released
      return false
    }
    facilitator.verify = async () => {
      await verified()
      return false
    }
    const answers = [first, ...foreign].map((shop) => get(`${shop.url}/file`, headers))
    // On a busy machine one of them may have been repeated already.
    await eventually(
      'all are settled, and one was executed',
      () => facilitator.count('settle') >= 3 && facilitator.used.size === 1,
    )
    release()
    const statuses = await Promise.all(answers.map(async (answer) => (await answer).status))
    t.equal(ours.purse.payments.size + others.purse.payments.size, 1, 'credited in one place')
    t.equal(statuses.filter((status) => status === 200).length > 0, true)
  },
)

t.test(
  'a gateway that died while it asked is waited for, and then its payment is taken over',
  { skip },
  async (t) => {
    const { facilitator, headers, open } = await town(t)
    const ours = await house(t)
    const first = await open(ours, 'a')
    facilitator.afterSettle = ({ response }) => {
      void first.close()
      response.destroy()
      return true
    }
    t.not((await get(`${first.url}/file`, headers).catch(() => ({ status: 0 }))).status, 200)
    const soon = await open(ours, 'b')
    t.equal((await get(`${soon.url}/file`, headers)).status, 503, 'the other one may be at it')
    t.equal(ours.purse.payments.size, 0)
    const later = await open(ours, 'c', 1)
    t.equal((await get(`${later.url}/file`, headers)).status, 200)
    t.equal(ours.purse.payments.size, 1)
  },
)

t.test('without Redis no settlement is asked for', { skip }, async (t) => {
  const { facilitator, headers, open } = await town(t)
  const ours = await house(t)
  const shop = await open(ours, 'a')
  await ours.purse.redis.close()
  t.equal((await get(`${shop.url}/file`, headers)).status, 503)
  t.equal(facilitator.count('settle'), 0)
})

const stranger = { 'x-client': '198.51.100.66' }
const victim = '127.0.0.1'

t.test('what a gateway left counts for whom it was requested, whoever brings it', { skip }, async (t) => {
  const scene = await town(t)
  const ours = await house(t)
  await leave(scene, await scene.open(ours, 'a'))
  const soon = await scene.open(ours, 'b')
  t.equal((await get(`${soon.url}/file`, { ...scene.headers, ...stranger })).status, 503)
  const later = await scene.open(ours, 'c', 1)
  const stolen = await get(`${later.url}/file`, { ...scene.headers, ...stranger })
  t.match(stolen, { status: 409, error: 'payment_already_used' })
  t.notMatch(stolen.text, /accepts|127/)
  t.strictSame([...ours.purse.payments.values()], [victim], 'it is credited all the same')
  t.equal(ours.purse.of(stranger['x-client']), 0)
  t.equal((await get(`${later.url}/file`, scene.headers)).status, 200)
  const first = await scene.open(ours, 'a')
  await eventually('the first one sees it', () => first.records.recent(1)[0]?.credited === true)
  t.equal(ours.purse.payments.size, 1)
})

t.test(
  'one that would settle is bound before it is on the chain, until it certainly did not',
  { skip },
  async (t) => {
    const { facilitator, headers, open } = await town(t)
    const ours = await house(t)
    const [first, second] = [await open(ours, 'a'), await open(ours, 'b')]
    let release: () => void = () => undefined
    const released = new Promise<void>((resolve) => {
      release = resolve
    })
    facilitator.settle = async ({ response }) => {
      await released
      response.writeHead(200, { 'content-type': 'application/json' })
      response.end('{"success":false,"errorReason":"insufficient_funds","transaction":""}')
      return true
    }
    const buying = get(`${first.url}/file`, headers)
    await eventually('it is requested', () => facilitator.count('settle') === 1)
    t.equal((await get(`${second.url}/file`, { ...headers, ...stranger })).status, 409)
    release()
    t.match(await buying, { status: 402, message: 'insufficient_funds' })
    facilitator.settle = undefined
    t.equal((await get(`${second.url}/file`, { ...headers, ...stranger })).status, 200, 'free again')
  },
)

t.test('what one gateway credited is answered without the chain by another', { skip }, async (t) => {
  const { headers, open } = await town(t)
  const ours = await house(t)
  const first = await open(ours, 'a')
  t.equal((await get(`${first.url}/file`, headers)).status, 200)
  const [{ transaction } = {}] = first.records.recent(1)
  for (const [at, witness] of blind.entries()) {
    ours.purse.tokens.clear()
    const shop = await open(ours, `blind ${at}`, 1, { witness })
    const again = await get(`${shop.url}/file`, headers)
    t.equal(again.error, 'payment_already_used', 'it has paid for one answer')
    t.match(shop.records.recent(1), [{ state: 'settled', credited: true, transaction }])
  }
  t.equal(ours.purse.payments.size, 1)
})

t.test('what may have moved is not offered anew while the chain is not seen', { skip }, async (t) => {
  const scene = await town(t)
  const ours = await house(t)
  await leave(scene, await scene.open(ours, 'a'))
  for (const [at, witness] of blind.entries()) {
    const shop = await scene.open(ours, `blind ${at}`, 1, { witness })
    const got = await get(`${shop.url}/file`, scene.headers)
    t.match(got, { status: 503, error: 'settlement_pending' })
    await shop.close()
  }
  const seeing = await scene.open(ours, 'b', 1)
  t.equal((await get(`${seeing.url}/file`, scene.headers)).status, 200)
})

/** The look of gateways of older releases. */
const oldLook = `
local time = redis.call('TIME')
local now = tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)
local requests = redis.call('HGETALL', KEYS[1])
return math.max(0, now - tonumber(requests[2]))
`

t.test('gateways of older releases and of this one leave payments to each other', { skip }, async (t) => {
  const scene = await town(t)
  const ours = await house(t)
  await leave(scene, await scene.open(ours, 'a'))
  const [key = ''] = await ours.raw.keys('*:asked:*')
  t.equal(await ours.raw.eval(oldLook, 1, key), 0, 'an older one waits')
  // As an older one has it: the time alone.
  await ours.raw.del(...(await ours.raw.keys('*:bound:*')))
  await ours.raw.hset(key, 'a', Date.now() - 3600_000)
  const later = await scene.open(ours, 'b', 1)
  t.equal((await get(`${later.url}/file`, { ...scene.headers, ...stranger })).status, 503)
  t.equal((await get(`${later.url}/file`, scene.headers)).status, 503)
  t.equal(ours.purse.payments.size, 0, 'nobody knows for whom it was')
  await scene.open(ours, 'a')
  await eventually('who requested it credits it', () => ours.purse.payments.size === 1)
  t.strictSame([...ours.purse.payments.values()], [victim])
})

t.test('a payment that is in another bucket already is not said to be in this one', { skip }, async (t) => {
  const { facilitator, headers, open } = await town(t)
  const ours = await house(t)
  facilitator.settle = async () => {
    const [order] = facilitator.messages
    const { from, nonce } = order?.paymentPayload.payload.authorization ?? { from: '', nonce: '' }
    await ours.purse.credit(stranger['x-client'], `84532:${from}:${nonce}`.toLowerCase(), 5)
    return false
  }
  const shop = await open(ours, 'a')
  const got = await get(`${shop.url}/file`, headers)
  t.equal(got.status, 409, got.text)
  t.match(shop.records.recent(1), [{ state: 'settled', credited: true, client: stranger['x-client'] }])
})

/** The owners that a payment service records, and a name that lasts as those of the disk do. */
function service(): { readonly record: RecordOwner; kept(): KeptName } {
  const owners = new Map<string, { owner: string; purpose?: string }>()
  return {
    async record({ payment, owner, purpose }) {
      const known = owners.get(payment) ?? { owner, ...(purpose === undefined ? {} : { purpose }) }
      owners.set(payment, known)
      return known
    },
    kept() {
      let name: string | undefined
      const keep = (given: string): void => {
        name = given
      }
      return { find: () => name, keep }
    },
  }
}

t.test('a Redis that comes back empty costs no payment its owner', { skip }, async (t) => {
  const scene = await town(t)
  const ours = await house(t)
  const { record, kept } = service()
  const names = { a: kept(), b: kept() }
  const open = (self: 'a' | 'b', leftMs = 60_000): Promise<Shop> => {
    const claims = ours.claims(self, leftMs, names[self])
    const owners = new RecordedOwners(record, () => claims.commonName())
    return scene.open(ours, self, leftMs, { claims, owners })
  }
  // The name is that of the other one, which came first.
  await ours.claims('b', 1, names.b).commonName()
  await leave(scene, await open('a'))
  await ours.raw.flushall()
  // Another one has named them anew meanwhile.
  t.equal(await ours.claims('c').commonName(), 'c')
  const first = await open('a')
  await eventually('it is settled', () => first.records.recent(1)[0]?.credited === true)
  t.strictSame([...ours.purse.payments.values()], [victim])
  await ours.raw.flushall()
  t.equal(await ours.claims('a', 1, names.a).commonName(), 'b', 'what was seen last is put back')
})

t.test('after its time it is answered as before: credited, or being settled', { skip }, async (t) => {
  const scene = await town(t)
  const ours = await house(t)
  const first = await scene.open(ours, 'a')
  const later = { ...systemClock, now: () => systemClock.now() + 3600_000 }
  await leave(scene, first)
  const before = scene.facilitator.count('verify')
  const blindly = await scene.open(ours, 'b', 1, { clock: later, witness: undefined })
  t.equal((await get(`${blindly.url}/file`, scene.headers)).status, 503)
  const seeing = await scene.open(ours, 'c', 1, { clock: later })
  t.equal((await get(`${seeing.url}/file`, scene.headers)).status, 200)
  t.equal(scene.facilitator.count('verify'), before, 'its facilitator would refuse it')
  const unpaid = { ...(await payment(newAccount(), 1, { to: payee })), ...stranger }
  t.match(await get(`${seeing.url}/file`, unpaid), {
    status: 402,
    message: 'invalid_exact_evm_payload_authorization_valid_before',
  })
})

t.test(
  'a payment that is only written under the name of another one leaves no record',
  { skip },
  async (t) => {
    const scene = await town(t)
    const ours = await house(t)
    const first = await scene.open(ours, 'a')
    t.equal((await get(`${first.url}/file`, scene.headers)).status, 200)
    const second = await scene.open(ours, 'b')
    const [header = ''] = Object.values(scene.headers)
    const { payload, ...head } = unpacked<{ payload: { authorization: Record<string, string> } }>(header)
    // Its signature is that of a contract by its length, and its time is over: nobody checks it.
    const made = {
      ...head,
      payload: {
        signature: `0x${'ab'.repeat(66)}`,
        authorization: { ...payload.authorization, validBefore: String(Math.floor(Date.now() / 1000) - 60) },
      },
    }
    const forged = { 'X-PAYMENT': Buffer.from(JSON.stringify(made)).toString('base64') }
    t.equal((await get(`${second.url}/file`, { ...forged, ...stranger })).status, 402)
    t.strictSame(second.records.recent(1), [])
    // In its time a facilitator may look at the nonce first: then it is used, whatever signature it has.
    scene.facilitator.verify = ({ response }) => {
      const isValid = { isValid: false, invalidReason: 'invalid_exact_evm_nonce_already_used', payer: '' }
      response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(isValid))
      return true
    }
    const inTime = {
      ...head,
      payload: {
        signature: `0x${'ab'.repeat(66)}`,
        authorization: { ...payload.authorization, validAfter: '0' },
      },
    }
    const planted = { 'X-PAYMENT': Buffer.from(JSON.stringify(inTime)).toString('base64') }
    t.equal((await get(`${second.url}/file`, { ...planted, ...stranger })).status, 409)
    ours.purse.tokens.clear()
    const own = await get(`${second.url}/file`, scene.headers)
    t.equal(own.error, 'payment_already_used', 'it has paid for one answer')
    t.match(second.records.recent(1), [{ state: 'settled', credited: true }])
  },
)
