import { createHash, randomBytes } from 'node:crypto'
import t from 'tap'
import type { Devnet } from '../../src/devnet/devnet.js'
import { transactionJson } from '../../src/format/transaction.js'
import { dataTree } from '../../src/proof/data-root.js'
import { signTransaction } from '../../src/proof/sign.js'
import { fc } from '../property.js'
import { checkChain } from './check-chain.js'
import { devnetOf, knownWallet } from './posting.js'

const wallet = { ...knownWallet() }
const address = createHash('sha256')
  .update(Buffer.from(wallet.n ?? '', 'base64url'))
  .digest('base64url')
const none = new Uint8Array()

/** Posts `sizeBytes` of data in one transaction; the node may find the anchor too old. */
async function post(devnet: Devnet, sizeBytes: number): Promise<void> {
  const anchor = await (await fetch(`${devnet.url}/tx_anchor`)).text()
  const reward = BigInt(await (await fetch(`${devnet.url}/price/${sizeBytes}`)).text())
  const data = randomBytes(sizeBytes)
  const fields = { format: 2, tags: [], target: none, quantity: 0n, denomination: 0, reward, data } as const
  const lastTx = Buffer.from(anchor, 'base64url')
  const root = { dataSize: sizeBytes, dataRoot: dataTree(data).root }
  devnet.submit(transactionJson(signTransaction({ ...fields, ...root, lastTx }, wallet)))
}

t.test('any history of posts, blocks and forks gives a valid chain', async (t) => {
  const act = fc.oneof(
    { weight: 5, arbitrary: fc.record({ post: fc.integer({ min: 1, max: 600_000 }) }) },
    { weight: 4, arbitrary: fc.record({ mine: fc.integer({ min: 1, max: 9 }) }) },
    { weight: 2, arbitrary: fc.record({ fork: fc.constantFrom(1, 5, 17), lost: fc.boolean() }) },
  )
  await fc.assert(
    fc.asyncProperty(fc.array(act, { minLength: 5, maxLength: 15 }), async (acts) => {
      const devnet = await devnetOf(t)
      devnet.mint(address, 10n ** 18n)
      for (const it of acts) {
        if ('post' in it) await post(devnet, it.post)
        else if ('mine' in it) devnet.mine(it.mine)
        else {
          const tip = Number(devnet.mine().height)
          devnet.fork(Math.min(it.fork, tip), { transactions: it.lost ? 'lost' : 'again' })
        }
      }
      devnet.mine()
      await checkChain(t, devnet.url, address, 10n ** 18n)
      await devnet.stop()
      return t.passing()
    }),
    { numRuns: 8 },
  )
})
