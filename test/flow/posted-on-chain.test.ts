/** An item that the chain has already is neither charged nor counted as free when anybody posts it again. */
import t from 'tap'
import { encodeBundle } from '../../src/format/bundle.js'
import { nativeAddress } from '../../src/proof/owner-address.js'
import { ed25519Signer, signItem } from '../../src/proof/sign.js'
import { eventually } from '../eventually.js'
import { headerOf } from '../signed-item.js'
import { payerAt } from './payer.js'
import { run } from './running.js'

const always = '{"always":true}'
const signer = ed25519Signer(Buffer.alloc(32, 41))

function made(text: string) {
  const bytes = signItem(signer, {}, Buffer.from(text))
  const header = headerOf(bytes)
  const { id, signatureType, owner } = header
  return { id, bytes, address: nativeAddress(signatureType, owner) }
}

async function heightOf(gateway: string, id: string): Promise<number | undefined> {
  const query = `{ transaction(id: "${id}") { block { height } } }`
  const answer = await fetch(`${gateway}/graphql`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ query }),
  })
  const { data } = (await answer.json()) as {
    data?: { transaction?: { block?: { height: number } | null } | null }
  }
  return data?.transaction?.block?.height
}

t.test('an item in a bundle that somebody else has posted to the chain', async (t) => {
  const program = await run(t, t.testdir(), {
    DEVNET_SEED: 'false',
    SERVICES: 'gateway,upload',
    DEVNET_BLOCK_MS: '0',
    ANS104_UNBUNDLE_FILTER: always,
    ANS104_INDEX_FILTER: always,
  })
  const { gateway = '', upload = '', devnet = '' } = program.urls
  const [item, other] = [made('on the chain'), made('not there yet')]
  const payer = await payerAt(devnet)
  await payer.post(encodeBundle([item]), { 'Bundle-Format': 'binary', 'Bundle-Version': '2.0.0' })
  await eventually('the item is in a block', async () => (await heightOf(gateway, item.id)) !== undefined)
  const left = async (): Promise<unknown> =>
    (
      (await (await fetch(`${upload}/account/free?address=${item.address}`)).json()) as Record<
        string,
        unknown
      >
    ).bytesRemaining
  const before = await left()
  const again = await fetch(`${upload}/v1/tx`, { method: 'POST', body: item.bytes })
  t.equal(again.status, 409)
  t.match(await again.text(), /has this item already/)
  t.equal(await left(), before)
  t.equal((await fetch(`${upload}/v1/tx`, { method: 'POST', body: other.bytes })).status, 200)
  t.not(await left(), before)
  t.equal(
    (await fetch(`${upload}/v1/tx`, { method: 'POST', body: other.bytes })).status,
    202,
    'its own again',
  )
})
