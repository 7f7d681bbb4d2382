import t from 'tap'
import type { Request } from '../../src/http/exchange.js'
import { paymentRig } from './rig.js'
import { testWallets } from './wallet-keys.js'

t.test(
  'signatures of one client are looked at a hundred times a second, and anything else always',
  async (t) => {
    let second = 5
    const rig = await paymentRig(t, { monotonic: () => second * 1000 })
    const [wallet] = testWallets()
    const headers = wallet?.headers('nonce') ?? {}
    const statuses = new Map<number, number>()
    for (let count = 0; count < 130; count += 1) {
      const { status } = await rig.get('/v1/account/payments', headers)
      statuses.set(status, (statuses.get(status) ?? 0) + 1)
    }
    t.strictSame(
      [...statuses],
      [
        [200, 100],
        [429, 30],
      ],
    )
    t.equal((await rig.get('/v1/price/bytes/1000')).status, 200)
    second += 1
    t.equal((await rig.get('/v1/account/payments', headers)).status, 200)
  },
)

t.test('behind a proxy each network has its own hundred, however many addresses it has', async (t) => {
  const clientOf = (request: Request): string => request.header('x-forwarded-for') ?? ''
  const rig = await paymentRig(t, { monotonic: () => 5000, clientOf })
  const [wallet] = testWallets()
  const ask = (client: string): Promise<{ status: number }> =>
    rig.get('/v1/account/payments', { ...wallet?.headers('nonce'), 'x-forwarded-for': client })
  for (let count = 0; count < 100; count += 1) await ask(`2001:db8:0:${count.toString(16)}::1`)
  t.equal((await ask('2001:db8:0:ffff::1')).status, 429)
  t.equal((await ask('5.6.7.8')).status, 200)
})

t.test(
  'strangers begin card payments sixty times a minute from one network, each with its record',
  async (t) => {
    let minute = 5
    const clientOf = (request: Request): string => request.header('x-forwarded-for') ?? '127.0.0.1'
    // Sessions are begun at the provider some times a second: each request comes half a second behind the one before.
    let requests = 0
    const rig = await paymentRig(t, { monotonic: () => minute * 60_000 + requests * 500, clientOf })
    const wallet = `${'W'.repeat(42)}A`
    const paths = [`/v1/top-up/payment-intent/${wallet}/usd/1000`, `/credits?address=${wallet}&amount=10`]
    const ask = async (from?: string): Promise<number[]> => {
      const headers = from === undefined ? {} : { 'x-forwarded-for': from }
      requests += 1
      return Promise.all(paths.map(async (path) => (await rig.get(path, headers)).status))
    }
    for (let count = 0; count < 30; count += 1) t.strictSame(await ask(`203.0.113.${count}`), [200, 200])
    t.strictSame(await ask('203.0.113.99'), [429, 429], 'the same network')
    t.strictSame(await ask('198.51.100.1'), [200, 200], 'another one')
    t.strictSame(await ask(), [200, 200], 'this machine itself')
    t.equal((await rig.get('/v1/price/bytes/1000', { 'x-forwarded-for': '203.0.113.99' })).status, 200)
    minute += 1
    t.strictSame(await ask('203.0.113.99'), [200, 200])
  },
)
