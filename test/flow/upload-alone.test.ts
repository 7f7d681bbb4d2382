/** An upload service without a gateway in its program says which gateway serves what it takes, and none where it knows none. */
import t from 'tap'
import { ed25519Signer, signItem } from '../../src/proof/sign.js'
import { serveWeb } from '../admission/web.js'
import { run } from './running.js'

const scenes = { 'no gateway': false, 'a gateway that is told of uploads': true }

for (const [title, isReporting] of Object.entries(scenes)) {
  t.test(title, async (t) => {
    const web = await serveWeb(t, (call) => call.json(200, {}))
    const program = await run(t, t.testdir(), {
      SERVICES: 'upload',
      DEVNET_SEED: 'false',
      PAYMENT_SERVICE_URL: web.url,
      PRIVATE_ROUTE_SECRET: 'a'.repeat(16),
      ...(isReporting
        ? { UPLOAD_GATEWAY_ADMIN_URL: `${web.url}/gateway/admin`, UPLOAD_GATEWAY_ADMIN_KEY: 'its-key' }
        : {}),
    })
    const gateways = isReporting ? [web.url] : []
    const info = await (await fetch(`${program.urls.upload}/info`)).json()
    t.match(info, { gateway: gateways[0] ?? '', gateways })
    t.equal((info as { gateways: string[] }).gateways.length, gateways.length)
    const item = signItem(ed25519Signer(Buffer.alloc(32, 5)), {}, Buffer.from('alone'))
    const answer = await fetch(`${program.urls.upload}/tx`, { method: 'POST', body: item })
    const { dataCaches, fastFinalityIndexes } = (await answer.json()) as Record<string, unknown>
    t.strictSame({ dataCaches, fastFinalityIndexes }, { dataCaches: [], fastFinalityIndexes: gateways })
    t.equal(await program.stop(), 0)
  })
}
