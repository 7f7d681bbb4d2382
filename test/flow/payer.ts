import { clientOf, knownWallet, postedBy, type Payer as Wallet } from '../devnet/posting.js'

/** Somebody with a wallet and winston, who posts by the public client library. */
export interface Payer extends Wallet {
  /** Posts data as a transaction, in chunks, and mines a block; resolves with its id. */
  post(data: Uint8Array, tags: Readonly<Record<string, string>>): Promise<string>
}

/** The known wallet as a payer on the embedded node at `node`. */
export async function payerAt(node: string): Promise<Payer> {
  const client = clientOf(node)
  const wallet = knownWallet()
  const address = await client.wallets.jwkToAddress(wallet)
  await fetch(`${node}/mint/${address}/1000000000000000`)
  return {
    client,
    wallet,
    address,
    async post(data, tags) {
      const id = await postedBy({ client, wallet, address }, data, tags)
      await fetch(`${node}/mine`)
      return id
    },
  }
}
