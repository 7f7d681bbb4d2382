import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import t from 'tap'
import { makeServiceToken } from '../../../src/payment/requests/service-token.js'
import { paymentRig, secret } from '../rig.js'

const program = fileURLToPath(new URL('../../../../bin/sluice.mjs', import.meta.url))
/** As the setting may be: without spaces. */
const known = 'a-secret-of-both-services'
const address = `${'W'.repeat(42)}A`

t.test('an operator declares a promotion by a command', async (t) => {
  const rig = await paymentRig(t, { privateSecret: known })
  const command = async (key: string, ...words: string[]): Promise<number> => {
    const environment = { PATH: process.env.PATH ?? '', DATA_PATH: t.testdirName, PRIVATE_ROUTE_SECRET: key }
    const child = spawn(process.execPath, [program, 'promotion', ...words, '--payment', rig.url], {
      env: environment,
      stdio: 'ignore',
    })
    const [code] = (await once(child, 'exit')) as [number]
    return code
  }
  // The service checks tokens by its clock.
  rig.setTime(Date.now())
  const price = `/v1/price/usd/1000?destinationAddress=${address}&promoCode=FIFTH`
  t.equal((await rig.get(price)).status, 400)
  t.equal(await command('another-secret-of-nobody', 'FIFTH', '--percent', '20'), 1)
  t.equal(await command(known, 'FIFTH'), 2)
  t.equal(await command(known, 'FIFTH', '--percent', '200'), 1, 'more than everything')
  t.equal((await rig.get(price)).status, 400)
  t.equal(await command(known, 'FIFTH', '--percent', '20'), 0)
  t.match((await rig.get(price)).json, { actualPaymentAmount: 800, quotedPaymentAmount: 1000 })
})

t.test('what is no promotion is none', async (t) => {
  const rig = await paymentRig(t)
  rig.setTime(Date.now())
  const headers = { authorization: `Bearer ${await makeServiceToken(secret, Date.now())}` }
  for (const body of ['', '{', '[]', 'null', '{"code":"A"}', '{"code":"A b"}'])
    t.equal((await rig.post('/v1/promotions', body, headers)).status, 400, body)
  t.equal((await rig.post('/v1/promotions', '{}')).status, 401)
})
