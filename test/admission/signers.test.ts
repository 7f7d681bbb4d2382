import { randomBytes } from 'node:crypto'
import t from 'tap'
import type { PaymentOrder } from '../../src/admission/settlement-messages.js'
import { Signers } from '../../src/admission/signers.js'
import { HandClock } from './house.js'
import { newAccount } from './scene.js'

/** What is said to a client that brings the same valid payment again. */
async function repeater(): Promise<(asker: string) => string> {
  const account = newAccount()
  const digest = randomBytes(32).toString('hex')
  const signature = await account.sign({ hash: `0x${digest}` })
  const payer = account.address.toLowerCase()
  const signers = new Signers(new HandClock())
  return (asker) => signers.check({ digest, signature, payer, asker } as PaymentOrder)
}

t.test('a client that repeats one valid payment leaves time for the payments of others', async (t) => {
  const check = await repeater()
  const results = Array.from({ length: 300 }, () => check('198.51.100.1'))
  const busy = results.indexOf('busy')
  t.ok(busy > 0 && busy < 100, `${busy} were looked at`)
  t.same([...new Set(results.slice(0, busy))], ['true'])
  t.same([...new Set(results.slice(busy))], ['busy'])
  t.equal(check('198.51.100.2'), 'true', 'within the same second')
})

t.test('so do all clients of one network and of one provider', async (t) => {
  for (const client of [(at: number) => `203.0.113.${at}`, (at: number) => `45.33.${at}.1`]) {
    const check = await repeater()
    const results = Array.from({ length: 150 }, (_, at) => check(client(at)))
    t.equal(results[0], 'true')
    t.equal(results.at(-1), 'busy')
    t.equal(check('198.51.100.2'), 'true', 'within the same second')
  }
})
