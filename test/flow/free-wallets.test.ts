/** A wallet of UPLOAD_FREE_WALLETS uploads what is new: what it has ever signed in public is no order, whoever posts it. */
import t from 'tap'
import { normalizedAddress } from '../../src/proof/owner-address.js'
import { ed25519Signer, signItem } from '../../src/proof/sign.js'
import { headerOf } from '../signed-item.js'
import { run } from './running.js'
import { upstream } from './upstream.js'

const signer = ed25519Signer(Buffer.alloc(32, 63))
const itemOf = (fill: number): Uint8Array => signItem(signer, {}, Buffer.alloc(300_000, fill))

let status = 200
const network = await upstream(t, (_, __, response) => response.writeHead(status).end())
const [home, away] = ['192.0.2.1', '203.0.113.6']

for (const services of ['upload', 'upload,payment']) {
  t.test(`items of a free wallet, with ${services}`, async (t) => {
    const { urls } = await run(t, t.testdir(), {
      SERVICES: services,
      TRUSTED_PROXIES: '127.0.0.0/8',
      TRUSTED_GATEWAYS_URLS: JSON.stringify({ [network.url]: 1 }),
      UPLOAD_FREE_WALLETS: normalizedAddress(headerOf(itemOf(1)).owner),
    })
    const post = async (fill: number, address?: string): Promise<number> => {
      const headers = address === undefined ? {} : { 'x-forwarded-for': address }
      const body = itemOf(fill)
      const answer = await fetch(`${urls.upload}/v1/tx`, { method: 'POST', body, headers })
      await answer.arrayBuffer()
      return answer.status
    }
    status = 200
    t.equal(await post(1, away), 409, 'the network has it')
    t.ok(network.requested.includes(headerOf(itemOf(1)).id))
    status = 503
    t.equal(await post(2, away), 503, 'nobody states whether it has it')
    status = 404
    t.equal(await post(3, home), 200, 'it is new')
    status = 503
    t.equal(await post(4, home), 200, 'its owner does not depend on gateways of others')
    t.equal(await post(5, away), 503)
    status = 200
    t.equal(await post(6, home), 409)
    t.equal(await post(7), 200, 'whoever is on this machine is the operator')
  })
}
