/** A database that stops and starts in the middle, is read-only for a while, or fails in a way that nobody has thought of. */

import { Client } from 'pg'
import pino from 'pino'
import t, { type Test } from 'tap'
import { systemClock } from '../../src/actor/clock.js'
import type { Log } from '../../src/actor/log.js'
import { PostgresLedger } from '../../src/ledger/postgres.js'
import { makeServiceToken } from '../../src/payment/requests/service-token.js'
import { type PostgresServer, postgresFolder, startPostgres } from '../engines/postgres-server.js'
import { eventually } from '../eventually.js'
import { type PaymentRig, paymentRig, secret } from './rig.js'

const skip = postgresFolder === undefined ? 'no PostgreSQL here' : false
const start = Date.UTC(2026, 0, 1)
const wallet = Buffer.alloc(32, 1).toString('base64url')
const token = { authorization: `Bearer ${await makeServiceToken(secret, start)}` }

async function opened(
  t: Test,
  log?: Log,
): Promise<{ readonly server: PostgresServer; readonly rig: PaymentRig; readonly url: string }> {
  const server = await startPostgres()
  t.teardown(() => server.stop())
  const url = await server.database('failing')
  const ledger = await PostgresLedger.open({ url, clock: systemClock })
  const rig = await paymentRig(t, { ledger, ...(log === undefined ? {} : { log }) })
  const { json } = await rig.get(`/v1/top-up/checkout-session/${wallet}/usd/1000000`)
  await rig.post(
    `/checkout/${(json as { paymentSession: { id: string } }).paymentSession.id}`,
    'card=4242424242424242',
  )
  return { server, rig, url }
}

async function connected(t: Test, url: string): Promise<Client> {
  const client = new Client({ connectionString: url })
  // The server ends it with itself.
  client.on('error', () => undefined)
  await client.connect()
  t.teardown(() => client.end())
  return client
}

const reserve = (rig: PaymentRig, item: string) =>
  rig.get(`/v1/reserve-balance/arweave/${wallet}?byteCount=1000&dataItemId=${item}`, token)
const refund = (rig: PaymentRig, item: string) =>
  rig.get(`/v1/refund-balance/arweave/${wallet}?winstonCredits=1&dataItemId=${item}`, token)

/** 1,225,600,000,000,000 winc were bought, an item costs 3,200,100. */
const winc = async (rig: PaymentRig) => BigInt((await rig.service.balanceOf(wallet))?.winc ?? 0)

t.test('stopped and started in the middle: what was said is so, and nothing twice', { skip }, async (t) => {
  const { server, rig } = await opened(t)
  const reserved = new Set<string>()
  const refunded = new Set<string>()
  const others = new Set<number>()
  let isOver = false
  const client = async (name: number): Promise<void> => {
    for (let at = 0; !isOver; at += 1) {
      const item = `item-${name}-${at}`
      // As an upload service does: the same order until it is answered.
      const first = await eventually('the credits are reserved', async () => {
        const { status } = await reserve(rig, item)
        if (status !== 200) others.add(status)
        return status === 200
      })
      if (first) reserved.add(item)
      if (at % 3 !== 0) continue
      await eventually('the credits are returned', async () => {
        const { status } = await refund(rig, item)
        if (status !== 200) others.add(status)
        return status === 200
      })
      refunded.add(item)
    }
  }
  const clients = [1, 2, 3, 4].map(client)
  for (let turn = 0; turn < 3; turn += 1) {
    const before = reserved.size
    await eventually('twenty more are reserved', () => reserved.size > before + 20)
    await server.stop()
    // Nobody is answered now.
    const { status } = await rig.get(`/v1/account/balance?address=${wallet}`)
    t.equal(status, 503)
    await server.start()
  }
  const before = reserved.size
  await eventually('twenty more are reserved', () => reserved.size > before + 20)
  isOver = true
  await Promise.all(clients)
  t.strictSame(
    [...others].filter((status) => status !== 503),
    [],
    'all else that anybody was told',
  )
  const spent = BigInt(reserved.size - refunded.size) * 3_200_100n
  t.equal(
    await winc(rig),
    1_225_600_000_000_000n - spent,
    `${reserved.size} items, ${refunded.size} given back`,
  )
  t.strictSame((await rig.ledger.check()).faults, [])
})

t.test('read-only for a while: nothing is taken, and what is there can be read', { skip }, async (t) => {
  const { rig, url } = await opened(t)
  const sql = await connected(t, url.replace(/failing$/, 'postgres'))
  const set = async (mode: 'on' | 'off'): Promise<void> => {
    await sql.query(`ALTER DATABASE failing SET default_transaction_read_only = ${mode}`)
    await sql.query("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = 'failing'")
  }
  await set('on')
  t.match(await reserve(rig, 'a'), { status: 503, text: 'Cloud Database Unavailable' })
  t.equal(await winc(rig), 1_225_600_000_000_000n)
  await set('off')
  t.ok(
    await eventually('credits can be reserved again', async () => (await reserve(rig, 'a')).status === 200),
  )
  t.equal(await winc(rig), 1_225_600_000_000_000n - 3_200_100n, 'once')
  t.strictSame((await rig.ledger.check()).faults, [])
})

t.test(
  'a failure that nobody has thought of is 500, and its line in the log names the transfers',
  { skip },
  async (t) => {
    const lines: string[] = []
    const log = pino({ level: 'warn' }, { write: (line: string) => lines.push(line) })
    const { rig, url } = await opened(t, log)
    const sql = await connected(t, url)
    await sql.query('ALTER TABLE ledger_entries RENAME TO ledger_entries_away')
    t.equal((await reserve(rig, 'lost')).status, 500)
    t.ok(
      lines.some((line) => line.includes('reserve:lost:0:0') && line.includes('ledger_entries')),
      lines.join(''),
    )
    t.equal(await winc(rig), 1_225_600_000_000_000n, 'nothing of it has happened')
    await sql.query('ALTER TABLE ledger_entries_away RENAME TO ledger_entries')
    t.equal((await reserve(rig, 'lost')).status, 200)
    t.strictSame((await rig.ledger.check()).faults, [])
  },
)
