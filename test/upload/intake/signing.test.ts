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
  const together = messages.map((message) => signing.receipt(message))
  t.equal(signing.isBehind, true)
  const signatures = await Promise.all(together)
  t.equal(signing.isBehind, false)
  for (const [at, signature] of signatures.entries())
    t.ok(verify('sha256', messages[at] as Buffer, { key, padding, saltLength: 0 }, signature))
  t.strictSame(await signing.receipt(messages[7] as Buffer), signatures[7])
})

t.test('data is signed with a salt, beside receipts', async (t) => {
  const signing = new PooledSigning(keyFile, 1, silentLog)
  t.teardown(() => signing.close())
  const message = Buffer.alloc(48, 1)
  const [one, receipt, other] = await Promise.all([
    signing.data(message),
    signing.receipt(message),
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
  const outcomes = await Promise.allSettled([1, 2, 3].map((at) => signing.receipt(Buffer.alloc(48, at))))
  t.strictSame(
    outcomes.map(({ status }) => status),
    ['rejected', 'rejected', 'rejected'],
  )
  t.equal(signing.isBehind, false)
})
