import t from 'tap'
import { systemClock } from '../../src/actor/clock.js'
import { PostgresLedger } from '../../src/ledger/postgres.js'
import { postgresFolder, startPostgres } from '../engines/postgres-server.js'
import { paymentRig } from './rig.js'

const skip = postgresFolder === undefined ? 'no PostgreSQL here' : false
const wallet = Buffer.alloc(32, 1).toString('base64url')

t.test('a database that is gone is said to be, and the service ends nevertheless', { skip }, async (t) => {
  const server = await startPostgres()
  let isUp = true
  t.teardown(() => (isUp ? server.stop() : undefined))
  const ledger = await PostgresLedger.open({ url: await server.database('gone'), clock: systemClock })
  const rig = await paymentRig(t, { ledger })
  const balance = `/v1/account/balance?address=${wallet}`
  t.match(await rig.get(balance), { status: 404, text: 'User Not Found' })
  t.match(
    await rig.get('/v1/account/balance?address=%00'),
    { status: 404 },
    'no text of PostgreSQL holds this',
  )
  await server.stop()
  isUp = false
  t.match(await rig.get(balance), { status: 503, text: 'Cloud Database Unavailable' })
  t.match(await rig.get(`/v1/account/approvals/get?userAddress=${wallet}`), {
    status: 503,
    text: 'Database error',
  })
  t.match(await rig.get(`/v1/top-up/checkout-session/${wallet}/usd/1000`), { status: 503 })
  t.equal((await rig.get('/v1/price/1000')).status, 200, 'what needs no ledger is answered')
})
