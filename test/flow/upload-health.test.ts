/** What the upload service says of itself, where a payment service is, and where it is gone. */
import t from 'tap'
import { ed25519Signer, signItem } from '../../src/proof/sign.js'
import { eventually } from '../eventually.js'
import { run } from './running.js'

const signer = ed25519Signer(Buffer.alloc(32, 14))

t.test('it is ready, and described, at the root and below /v1', async (t) => {
  const { urls } = await run(t, t.testdir(), { DEVNET_SEED: 'false' })
  for (const base of [`${urls.upload}`, `${urls.upload}/v1`]) {
    const ready = await fetch(`${base}/healthcheck`)
    t.equal(ready.status, 200)
    t.match(await ready.json(), { status: 'ok' })
    t.match(await (await fetch(`${base}/livez`)).json(), { status: 'ok' })
    const described = (await (await fetch(`${base}/openapi.json`)).json()) as { paths: object }
    t.ok('/v1/tx' in described.paths)
    t.match((await fetch(`${base}/api-docs`)).headers.get('content-type'), /html/)
    const body = signItem(signer, {}, Buffer.from(`by a slash at the end of ${base}`))
    const posted = await fetch(`${base}/tx/`, { method: 'POST', body })
    t.equal(posted.status, 200)
    t.match(await posted.json(), { id: /^[\w-]{43}$/ })
    t.equal((await fetch(`${base}/info/`)).status, 200)
    t.equal((await fetch(`${base}/tx/`)).status, 405)
    t.equal((await fetch(`${base}/nothing/`)).status, 404)
  }
  t.equal((await fetch(`${urls.payment}/v1/openapi.json`)).status, 200)
})

t.test('it is not ready while the payment service is gone, and says so', async (t) => {
  const settings = {
    DEVNET_SEED: 'false',
    SERVICES: 'gateway,upload',
    PAYMENT_SERVICE_URL: 'http://127.0.0.1:1',
    PRIVATE_ROUTE_SECRET: 'a-secret-of-the-services-for-tests',
  }
  const { urls } = await run(t, t.testdir(), settings)
  await eventually(
    'the upload service is unhealthy',
    async () => (await fetch(`${urls.upload}/healthcheck`)).status === 503,
  )
  const state = (await (await fetch(`${urls.upload}/v1/healthcheck`)).json()) as { reasons: string[] }
  t.match(state, { status: 'unhealthy', reasons: [/payment service does not answer/] })
  t.equal((await fetch(`${urls.upload}/livez`)).status, 200)
  t.equal((await fetch(`${urls.upload}/health`)).status, 200)
})
