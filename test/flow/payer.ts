import Arweave from 'arweave'
import { fixtureJson } from '../fixture-file.js'

export type Client = ReturnType<typeof Arweave.init>

/** The public client library, talking to this node or gateway. */
export function clientOf(url: string): Client {
  const { hostname: host, port } = new URL(url)
  return Arweave.init({ host, port, protocol: 'http' })
}

/** Somebody with a wallet and winston, who posts by the public client library. */
export interface Payer {
  readonly arweave: Client
  readonly wallet: Awaited<ReturnType<Client['wallets']['generate']>>
  readonly address: string
  /** Posts data as a transaction, in chunks, and mines a block; resolves with its id. */
  post(data: Uint8Array, tags: Readonly<Record<string, string>>): Promise<string>
}

/** A payer on the embedded node at `node`, always with the same key: making one takes seconds. */
export async function payerAt(node: string): Promise<Payer> {
  const arweave = clientOf(node)
  const wallet = fixtureJson<Payer['wallet']>('rsa-4096.jwk.json')
  const address = await arweave.wallets.jwkToAddress(wallet)
  await fetch(`${node}/mint/${address}/1000000000000000`)
  return {
    arweave,
    wallet,
    address,
    async post(data, tags) {
      const tx = await arweave.createTransaction({ data }, wallet)
      for (const [name, value] of Object.entries(tags)) tx.addTag(name, value)
      await arweave.transactions.sign(tx, wallet)
      const uploader = await arweave.transactions.getUploader(tx)
      while (!uploader.isComplete) await uploader.uploadChunk()
      await fetch(`${node}/mine`)
      return tx.id
    },
  }
}
