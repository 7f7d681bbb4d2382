import t, { type Test } from 'tap'
import { systemClock } from '../../src/actor/clock.js'
import type { Witness } from '../../src/admission/chain-witness.js'
import { Clients } from '../../src/admission/clients.js'
import { RedisBuckets } from '../../src/admission/redis-buckets.js'
import type { SettlementClaims } from '../../src/admission/settlement-claims.js'
import { eventually } from '../eventually.js'
import { scratch } from '../scratch.js'
import { dataFolder, silent, someClients } from './house.js'
import { hasRedis, startRedis, until } from './redis-server.js'
import { newAccount, payee } from './scene.js'
import { type ScriptedFacilitator, scriptedFacilitator } from './scripted-facilitator.js'
import { get, openShop, Purse, payment, type Shop } from './shop.js'

const skip = hasRedis ? false : 'redis-server is not installed'
const rules = { capacity: 100, refillPerSecond: 0 }

/** A purse whose payments are marked in a Redis, too, as those of gateways are. */
class RedisPurse extends Purse {
  constructor(readonly redis: RedisBuckets) {
    super()
  }

  override async credit(client: string, payment: string, tokens: number): Promise<'credited' | 'known'> {
    await this.redis.credit(client, payment, tokens)
    return super.credit(client, payment, tokens)
  }
}

/** A Redis of its own, and the purse of all gateways that use it. */
async function house(
  t: Test,
): Promise<{ purse: RedisPurse; claims(self: string, leftMs?: number): SettlementClaims }> {
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
    clients: new Clients(someClients, { low: 1, high: 2 }),
  })
  t.teardown(async () => {
    await buckets.close()
    await server.stop()
  })
  const { claims } = { claims: (self: string, leftMs = 60_000) => buckets.claims({ self, leftMs }) }
  await until(() =>
    claims('x')
      .look('none')
      .then(
        () => true,
        () => false,
      ),
  )
  return { purse: new RedisPurse(buckets), claims }
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

interface Town {
  readonly facilitator: ScriptedFacilitator
  readonly headers: Record<string, string>
  open(of: Awaited<ReturnType<typeof house>>, self: string, leftMs?: number): Promise<Shop>
}

/** One wallet, one payer, one payment. */
async function town(t: Test): Promise<Town> {
  const facilitator = await scriptedFacilitator(t)
  const payer = newAccount()
  facilitator.balances.set(payer.address.toLowerCase(), 5000n)
  const headers = await payment(payer, 1, { to: payee })
  return {
    facilitator,
    headers,
    open: (of, self, leftMs) =>
      openShop(t, {
        facilitatorUrl: facilitator.url,
        wallet: payee,
        path: `${scratch('shop')}/${self}`,
        purse: of.purse,
        claims: of.claims(self, leftMs),
        witness: watching(facilitator),
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
