/** A payment service without an upload service in its program asks the one that counts what is free. */
import t from 'tap'
import { ed25519Signer, signItem } from '../../src/proof/sign.js'
import { serveWeb } from '../admission/web.js'
import { run } from './running.js'

const secret = { PRIVATE_ROUTE_SECRET: 'a'.repeat(16), DEVNET_SEED: 'false' }

t.test('what is free is told by both services alike', async (t) => {
  const web = await serveWeb(t, (call) => call.json(200, {}))
  const uploads = await run(t, t.testdir({ uploads: {}, payments: {} }), {
    ...secret,
    SERVICES: 'upload',
    PAYMENT_SERVICE_URL: web.url,
    UPLOAD_FREE_WALLET_BYTES: '5000',
    UPLOAD_FREE_WALLETS: 'A'.repeat(43),
  })
  const { upload = '' } = uploads.urls
  const payments = await run(t, `${t.testdirName}/payments`, {
    ...secret,
    SERVICES: 'payment',
    UPLOAD_SERVICE_URL: upload,
  })
  const statedFor = async (address: string): Promise<unknown[]> => {
    const urls = [
      `${upload}/account/free`,
      `${upload}/v1/account/free`,
      `${payments.urls.payment}/v1/account/free`,
    ]
    // The upload service also says what the address range of the client has left.
    const bytesOf = async (url: string): Promise<unknown> => {
      const free = (await (await fetch(`${url}?address=${address}`)).json()) as { bytesRemaining: unknown }
      return { bytesRemaining: free.bytesRemaining }
    }
    return Promise.all(urls.map(bytesOf))
  }
  t.same(await statedFor(''), Array(3).fill({ bytesRemaining: 5000 }), 'nobody in particular')
  t.same(await statedFor('A'.repeat(43)), Array(3).fill({ bytesRemaining: null }), 'without end')
  const item = signItem(ed25519Signer(Buffer.alloc(32, 7)), {}, Buffer.from('free'))
  const answer = await fetch(`${upload}/tx`, { method: 'POST', body: item })
  const { owner } = (await answer.json()) as { owner: string }
  t.same(await statedFor(owner), Array(3).fill({ bytesRemaining: 5000 - item.length }))
  t.equal(await uploads.stop(), 0)
  const away = await fetch(`${payments.urls.payment}/v1/account/free?address=${owner}`)
  t.strictSame([away.status, await away.text()], [503, 'Upload Service is unreachable'])
  t.equal(await payments.stop(), 0)
})
