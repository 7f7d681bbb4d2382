/** Two whole upload services on one PostgreSQL: the free bytes of a wallet count once. */
import t from 'tap'
import { normalizedAddress } from '../../src/proof/owner-address.js'
import { ed25519Signer, signItem } from '../../src/proof/sign.js'
import { postgresFolder, startPostgres } from '../engines/postgres-server.js'
import { eventually } from '../eventually.js'
import { headerOf } from '../signed-item.js'
import { type Running, run } from './running.js'

const signer = ed25519Signer(Buffer.alloc(32, 22))
const itemOf = (number: number): Uint8Array => signItem(signer, {}, Buffer.alloc(2000, number))

function ownWallet(): string {
  const header = headerOf(itemOf(0))
  return normalizedAddress(header.owner)
}

async function sent({ urls }: Running, number: number): Promise<number> {
  return eventually('an answer other than 503', async () => {
    const answer = await fetch(`${urls.upload}/v1/tx`, { method: 'POST', body: itemOf(number) })
    await answer.arrayBuffer()
    return answer.status === 503 ? undefined : answer.status
  })
}

async function left(url: string | undefined): Promise<number> {
  const answer = await fetch(`${url}/v1/account/free?address=${ownWallet()}`)
  return Number(((await answer.json()) as { bytesRemaining: number }).bytesRemaining)
}

t.test(
  'two upload services on one database',
  { skip: postgresFolder === undefined ? 'no PostgreSQL here' : false },
  async (t) => {
    const server = await startPostgres()
    t.teardown(() => server.stop())
    const folders = t.testdir({ one: {}, two: {} })
    const settings = (name: string): Record<string, string> => ({
      DEVNET_SEED: 'false',
      UPLOAD_FREE_ITEM_BYTES: '5000',
      UPLOAD_FREE_WALLET_BYTES: '10000',
      SERVICES: 'upload,payment',
      CLUSTER_DATABASE_URL: server.url,
      CLUSTER_NODE: name,
    })
    const [one, two] = await Promise.all([
      run(t, `${folders}/one`, settings('one')),
      run(t, `${folders}/two`, settings('two')),
    ])
    const sizeBytes = itemOf(0).length
    t.equal(await sent(one, 1), 200)
    t.equal(await left(two.urls.upload), 10_000 - sizeBytes, 'known at the other upload service')
    t.equal(await left(two.urls.payment), 10_000 - sizeBytes, 'and at its payment service')
    t.equal(await sent(two, 2), 200)
    t.equal(await sent(one, 3), 200)
    const odd = await fetch(`${two.urls.upload}/v1/account/free?address=%00`)
    t.equal(odd.status, 200, 'what no database takes as a text')
    t.notOk(JSON.stringify(two.log).includes('the free bytes of other machines are not known'))
    t.equal(await sent(two, 4), 200)
    t.equal(await left(one.urls.upload), 10_000 - 4 * sizeBytes)
    t.equal(await sent(one, 5), 402)
    t.equal(await sent(two, 5), 402)
    t.equal(await one.stop(), 0)
    t.equal(await two.stop(), 0)
  },
)
