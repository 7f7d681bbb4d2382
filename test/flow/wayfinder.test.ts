/** A client that chooses among gateways and reads by chunks; nobody here wrote it. */
import { existsSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import t from 'tap'
import { clientOf, knownWallet, postedBy, postedOld } from '../devnet/posting.js'
import { run } from './running.js'

const library = fileURLToPath(
  new URL('../../../test/clients/node_modules/@ar.io/wayfinder-core/dist/index.js', import.meta.url),
)
const skip = existsSync(library) ? false : 'install test/clients to run it'

/** What of the library is used; it is too large to be a dependency for its types. */
interface Wayfinder {
  readonly TrustedPeersGatewaysProvider: new (given: {
    trustedGateway: string
  }) => { getGateways(): Promise<URL[]> }
  readonly ChunkDataRetrievalStrategy: new () => {
    getData(given: { gateway: URL; requestUrl: URL; headers: object }): Promise<Response>
  }
}

t.test(
  'wayfinder learns the gateways from its peers, and reads transactions by chunks',
  { skip },
  async (t) => {
    const { TrustedPeersGatewaysProvider, ChunkDataRetrievalStrategy } = (await import(library)) as Wayfinder
    const { urls } = await run(t, t.testdir(), {
      SERVICES: 'gateway',
      DEVNET_BLOCK_MS: '0',
      INTERFACE_VOCABULARY: 'ar-io',
      PEER_GATEWAYS_URLS: 'http://peer.example:3000,https://other.example/',
    })
    const { gateway = '', devnet = '' } = urls
    const listed = await new TrustedPeersGatewaysProvider({ trustedGateway: gateway }).getGateways()
    t.same(listed.map(String), ['http://peer.example:3000/', 'https://other.example/'])
    const peersPage = (await (await fetch(`${gateway}/ar-io/peers`)).json()) as Record<string, object>
    t.strictSame(peersPage, {
      gateways: {
        'peer.example:3000': { url: 'http://peer.example:3000', dataWeight: 50, chunkWeight: 0 },
        'other.example': { url: 'https://other.example', dataWeight: 50, chunkWeight: 0 },
      },
      arweaveNodes: { [new URL(devnet).host]: { url: devnet } },
    })

    const client = clientOf(devnet)
    const wallet = knownWallet()
    const address = await client.wallets.jwkToAddress(wallet)
    await fetch(`${devnet}/mint/${address}/1000000000000000`)
    const payer = { client, wallet, address }
    const data = Buffer.alloc(600_000, 'a transaction of several chunks ')
    const ids = [await postedBy(payer, data), await postedOld(payer, devnet, data)]
    await fetch(`${devnet}/mine/2`)
    for (const id of ids) {
      const given = { gateway: new URL(gateway), requestUrl: new URL(`${gateway}/raw/${id}`), headers: {} }
      const read = await new ChunkDataRetrievalStrategy().getData(given)
      t.ok(data.equals(Buffer.from(await read.arrayBuffer())), 'by chunks, with position headers of its own')
      const whole = await clientOf(gateway).chunks.downloadChunkedData(id)
      t.ok(data.equals(Buffer.from(whole)), 'arweave-js reads the chunks')
    }
  },
)
