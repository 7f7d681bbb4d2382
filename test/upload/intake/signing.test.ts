import { constants, createPublicKey, verify } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import t from 'tap'
import { silentLog } from '../../../src/actor/log.js'
import { PooledSigning } from '../../../src/upload/intake/signing.js'

const keyFile = fileURLToPath(new URL('../../../../test/fixture/rsa-4096.jwk.json', import.meta.url))
const { kty, n, e } = JSON.parse(readFileSync(keyFile, 'utf8')) as Record<'kty' | 'n' | 'e', string>
const key = createPublicKey({ key: { kty, n, e }, format: 'jwk' })
const padding = constants.RSA_PKCS1_PSS_PADDING

t.test('receipts that are signed together have the signatures that each has alone', async (t) => {
  const signing = new PooledSigning(keyFile, 2, silentLog)
  t.teardown(() => signing.close())
  const messages = Array.from({ length: 23 }, (_, at) => Buffer.alloc(48, at))
  const together = messages.map((message) => signing.receipt(message, 'paid'))
  t.equal(signing.isBehind, true)
  const signatures = await Promise.all(together)
  t.equal(signing.isBehind, false)
  for (const [at, signature] of signatures.entries())
    t.ok(verify('sha256', messages[at] as Buffer, { key, padding, saltLength: 0 }, signature))
  const other = new PooledSigning(keyFile, 1, silentLog)
  t.teardown(() => other.close())
  t.strictSame(await other.receipt(messages[7] as Buffer, 'paid'), signatures[7])
  t.equal(await signing.receipt(messages[7] as Buffer, 'free'), signatures[7], 'it is remembered')
})

t.test('paid receipts are signed before free ones that wait, and some free ones beside them', async (t) => {
  const signing = new PooledSigning(keyFile, 1, silentLog)
  t.teardown(() => signing.close())
  const order: ('paid' | 'free')[] = []
  const sign = (rank: 'paid' | 'free', at: number): Promise<number> =>
    signing.receipt(Buffer.from(`${rank} ${at}`.padEnd(48)), rank).then(() => order.push(rank))
  const free = Array.from({ length: 40 }, (_, at) => sign('free', at))
  const paid = Array.from({ length: 40 }, (_, at) => sign('paid', at))
  await Promise.all(paid)
  const before = order.filter((rank) => rank === 'free').length
  t.ok(before > 1 && before < 20, `${before} free ones were signed meanwhile`)
  t.ok(order.indexOf('paid') < 5, 'the first paid one waited for the task that was under way')
  await Promise.all(free)
})

t.test('data is signed with a salt, beside receipts', async (t) => {
  const signing = new PooledSigning(keyFile, 1, silentLog)
  t.teardown(() => signing.close())
  const message = Buffer.alloc(48, 1)
  const [one, receipt, other] = await Promise.all([
    signing.data(message),
    signing.receipt(message, 'free'),
    signing.data(message),
  ])
  for (const signature of [one, other])
    t.ok(verify('sha256', message, { key, padding, saltLength: 32 }, signature))
  t.notSame(one, other)
  t.ok(verify('sha256', message, { key, padding, saltLength: 0 }, receipt))
})

t.test('who waits is told where the key cannot be read', async (t) => {
  const signing = new PooledSigning(`${t.testdir()}/none.json`, 1, silentLog)
  t.teardown(() => signing.close())
  const outcomes = await Promise.allSettled(
    [1, 2, 3].map((at) => signing.receipt(Buffer.alloc(48, at), 'paid')),
  )
  t.strictSame(
    outcomes.map(({ status }) => status),
    ['rejected', 'rejected', 'rejected'],
  )
  t.equal(signing.isBehind, false)
})
