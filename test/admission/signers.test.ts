import { randomBytes } from 'node:crypto'
import t from 'tap'
import { signatureDigest } from '../../src/admission/authorization.js'
import type { PaymentOrder } from '../../src/admission/cashier-messages.js'
import { Signers } from '../../src/admission/signers.js'
import { newAccount } from './scene.js'

/** A payment that is signed by its payer. */
async function payment(): Promise<Pick<PaymentOrder, 'digest' | 'signature' | 'payer'>> {
  const account = newAccount()
  const digest = randomBytes(32).toString('hex')
  const signature = await account.sign({ hash: `0x${digest}` })
  return { digest, signature, payer: account.address.toLowerCase() }
}

/** A digest that nobody signed. */
const forged = ({ signature, payer }: { readonly signature: string; readonly payer: string }) => ({
  digest: randomBytes(32).toString('hex'),
  signature,
  payer,
})

const floods: Readonly<Record<string, (at: number) => string>> = {
  'one client': () => '198.51.100.1',
  'all clients of a network': (at) => `203.0.113.${at % 256}`,
  'all networks of a provider': (at) => `45.33.${at % 256}.1`,
  'a thousand networks of 32 providers': (at) => `45.${at % 32}.${at % 31}.1`,
}

for (const [name, client] of Object.entries(floods))
  t.test(`${name} leave turns for the payments of others`, async (t) => {
    const signers = new Signers()
    const honest = await payment()
    const check = (order: object, asker: string) => signers.check({ ...order, asker } as PaymentOrder)
    let looked = 0
    const flood = Array.from({ length: 6000 }, async (_, at) => {
      const result = await check(forged(honest), client(at))
      if (result !== 'busy') looked += 1
      return result
    })
    t.equal(await check(honest, '198.18.7.1'), 'true')
    t.ok(looked < 100, `${looked} were looked at before`)
    t.notOk((await Promise.all(flood)).includes('true'))
  })

t.test('a payment that is repeated takes no turn', async (t) => {
  const signers = new Signers()
  const honest = await payment()
  const check = (asker: string) => signers.check({ ...honest, asker } as PaymentOrder)
  t.equal(await check('198.51.100.1'), 'true')
  const results = await Promise.all(Array.from({ length: 300 }, () => check('198.51.100.1')))
  t.same([...new Set(results)], ['true'])
  const other = { ...honest, payer: `0x${'1'.repeat(40)}`, asker: '198.51.100.1' } as PaymentOrder
  t.equal(await signers.check(other), 'false', 'of another payer')
})

t.test('a payment that was taken is known by its signature where only the chain can verify it', async (t) => {
  const signers = new Signers()
  const { digest, payer, signature } = await payment()
  const [taken, other] = [`0x${'aB'.repeat(200)}`, `0x${'ac'.repeat(200)}`]
  const check = (signed: string, known?: string) =>
    signers.check({ digest, payer, signature: signed, asker: '198.51.100.1' }, known)
  const known = signatureDigest(taken)
  t.equal(await check(other), 'true', 'one that nobody has brought before is for the chain to judge')
  t.equal(await check(taken.toLowerCase(), known), 'true')
  t.equal(await check(other, known), 'false')
  t.equal(await check(`${signature}00`, signatureDigest(signature)), 'false', 'nor where a key has signed')
  t.equal(await check(signature, known), 'true')
})
