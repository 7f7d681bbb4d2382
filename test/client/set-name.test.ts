import t from 'tap'
import { setName } from '../../src/client/set-name.js'
import { signerOfEthereum } from '../../src/client/signer.js'
import { codeOf, type ServedAnswer, serving } from './rig.js'

const wanted = { name: 'docs', id: 'A'.repeat(43), ttlSeconds: 60 }

t.test(
  'an order whose answer is lost is sent again as it was, and counts where it was carried out',
  async (t) => {
    const signer = await signerOfEthereum('01'.repeat(32))
    const orders: string[] = []
    let meaning: string | undefined
    const { url } = await serving(t, ({ method, path, headers, body }): ServedAnswer | undefined => {
      if (method !== 'PUT') return meaning === undefined ? undefined : { json: { txId: meaning } }
      if (!path.startsWith('/ar-io/')) return undefined
      orders.push(`${headers['x-signature']} ${body}`)
      if (orders.length > 1) return { status: 409, text: 'changed since' }
      meaning = wanted.id
      return { cut: true }
    })
    t.equal(await setName(url, signer, wanted), `${url.replace('127.0.0.1', 'docs.localhost')}/`)
    t.equal(orders.length, 2)
    t.equal(new Set(orders).size, 1)
    meaning = `${'B'.repeat(42)}A`
    t.equal(await codeOf(setName(url, signer, wanted)), 'rejected', 'somebody else has changed it since')
  },
)

t.test('a gateway that takes an order and means something else is not believed', async (t) => {
  const signer = await signerOfEthereum('01'.repeat(32))
  const { url } = await serving(t, ({ method, path }) => {
    if (method === 'PUT') return path.startsWith('/gateway/') ? { json: {} } : undefined
    return { json: { txId: `${'B'.repeat(42)}A` } }
  })
  t.equal(await codeOf(setName(url, signer, wanted, (place, init) => fetch(place, init), 300)), 'rejected')
  const none = await serving(t, () => undefined)
  t.equal(await codeOf(setName(none.url, signer, wanted)), 'rejected')
})
