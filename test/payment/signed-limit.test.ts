import t from 'tap'
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
