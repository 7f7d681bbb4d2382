/**
 * Several upload services with one payment service: what one payment in USDC has paid for at one, no other one accepts. They have
 * the same host name, and no `CLUSTER_NODE`.
 */
import t from 'tap'
import { payee } from '../admission/scene.js'
import { payment } from '../admission/shop.js'
import { type Running, run } from './running.js'
import { buyer, itemOf, offerIn, post } from './usdc-scene.js'

t.test('a payment that stands on the chain buys nothing at another machine', async (t) => {
  const { facilitator, payer, settings } = await buyer(t)
  const folders = t.testdir({ bank: {}, one: {}, two: {} })
  const bank = await run(t, `${folders}/bank`, { ...settings, SERVICES: 'payment' })
  const machine = (name: string): Promise<Running> =>
    run(t, `${folders}/${name}`, {
      DEVNET_SEED: 'false',
      UPLOAD_FREE_ITEM_BYTES: '2000',
      PRIVATE_ROUTE_SECRET: settings.PRIVATE_ROUTE_SECRET ?? '',
      SERVICES: 'upload',
      PAYMENT_SERVICE_URL: bank.urls.payment ?? '',
    })
  const [one, two] = [await machine('one'), await machine('two')]
  const sold = ({ urls }: Running): string => `${urls.upload}/v1/x402/upload/signed`
  const item = itemOf('bought once')
  const { maxAmountRequired: value } = offerIn(await post(sold(one), item))
  const headers = await payment(payer, 1, { to: payee, value })
  t.equal((await post(sold(one), item, headers)).status, 200)
  t.match(await post(sold(two), item, headers), { status: 409 }, 'the same request')
  t.match(await post(`${two.urls.upload}/v1/tx`, item), { status: 409 }, 'and the bytes alone')
  const again = await payment(payer, 1, { to: payee, value })
  t.equal((await post(sold(two), item, again)).status, 409)
  t.equal(facilitator.count('settle'), 1)
  t.match((await post(sold(one), item, headers)).status, 200, 'where it was bought it is answered as before')
})
