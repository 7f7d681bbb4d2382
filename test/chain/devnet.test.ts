import { randomBytes } from 'node:crypto'
import { readFileSync } from 'node:fs'
import t from 'tap'
import { systemClock } from '../../src/actor/clock.js'
import { RemoteChain } from '../../src/chain/remote-chain.js'
import { encodeBase64url } from '../../src/format/base64url.js'
import { parseId } from '../../src/format/id.js'
import { isRefusal, type Refusal } from '../../src/format/refusal.js'
import { validateTxPath } from '../../src/proof/block-tree.js'
import { proveChunk, rulesetAt } from '../../src/proof/path.js'
import { devnetOf, payerOf, signed } from '../devnet/posting.js'
import { nodeWith, patient } from './hostile.js'

/** The value that a call was meant to bring. */
async function must<T>(call: Promise<T | Refusal>): Promise<T> {
  const value = await call
  if (isRefusal(value)) throw new Error(value.message)
  return value
}

t.test(
  'a transaction posted through the client comes back whole, each chunk proved up to the block',
  async (t) => {
    const devnet = await devnetOf(t)
    const payer = await payerOf(devnet)
    const chain = new RemoteChain({ ...patient, nodes: [devnet.url] }, systemClock)
    t.teardown(() => chain.close())
    const data = randomBytes(1_000_000)
    const posted = await signed(payer, { data })
    const id = parseId(posted.id)!

    t.ok((await must(chain.price(data.length))) <= BigInt(posted.reward))
    t.equal(await must(chain.balance(payer.address)), 10n ** 18n)
    t.match(await chain.transactionStatus(id), { refused: 'unknown' })
    t.equal(await chain.postTransaction({ ...posted.toJSON(), data: '' }), 'accepted')
    t.equal(await chain.postTransaction({ ...posted.toJSON(), data: '' }), 'known')
    t.same(await chain.transactionStatus(id), { kind: 'pending' })
    t.match(await chain.transaction(id), { refused: 'unknown' }, 'pending ones are not given')
    for (let index = 0; index < (posted.chunks?.chunks.length ?? 0); index += 1) {
      t.equal(await chain.postChunk(posted.getChunk(index, data)), 'accepted')
    }
    devnet.mine()
    t.match(await chain.transactionStatus(id), { kind: 'mined', height: 1, confirmations: 1 })
    const transaction = await must(chain.transaction(id))
    t.equal(transaction.dataSize, data.length)

    const block = await must(chain.blockByHeight(1))
    const { start, end, size } = await must(chain.transactionOffset(id))
    for (let at = start; at <= end; ) {
      const { chunk, dataPath, txPath } = await must(chain.chunk(at))
      const proof = { chunk, dataPath, dataRoot: transaction.dataRoot, dataSize: size, offset: at - start }
      const proven = proveChunk({ ...proof, ruleset: rulesetAt(at) })
      t.same(proven, { start: at - start, end: at - start + chunk.length })
      const blockStart = block.weaveSize - block.blockSize
      const { txRoot = new Uint8Array(), blockSize } = block
      const offset = at - blockStart - 1
      const inBlock = validateTxPath({ txRoot, offset, blockSize, path: txPath ?? new Uint8Array() })
      t.match(inBlock, { dataHash: Buffer.from(transaction.dataRoot) })
      t.ok(
        data
          .subarray(at - start)
          .subarray(0, chunk.length)
          .equals(chunk),
      )
      at += chunk.length
    }
    const pieces: Uint8Array[] = []
    for await (const piece of (await must(chain.transactionData(id, size))).bytes) {
      if (!isRefusal(piece)) pieces.push(piece)
    }
    t.ok(Buffer.concat(pieces).equals(data))
    t.equal(chain.underWay, 0)
  },
)

const fixture = new URL('../../../test/fixture/replay/transactions/', import.meta.url)
const name = '----LT69qUmuIeC4qb0MZHlxVp7UxLu_14rEkA_9n6w'
const real = JSON.parse(readFileSync(new URL(`${name}.json`, fixture), 'utf8')) as Record<string, string>

t.test('a false answer about a transaction is detected', async (t) => {
  const id = parseId(name)!
  const ask = async (record: unknown, signed = true) => {
    const node = await nodeWith(t, { [`/tx/${id}`]: JSON.stringify(record) })
    const chain = new RemoteChain({ ...patient, nodes: [node.url] }, systemClock)
    t.teardown(() => chain.close())
    return chain.transaction(id, { signed })
  }
  t.match(await ask(real), { id, dataSize: 256_000 })
  const other = encodeBase64url(randomBytes(32))
  t.match(await ask({ ...real, id: other }, false), { refused: 'forged' }, 'another id')
  const signature = encodeBase64url(randomBytes(512))
  t.match(await ask({ ...real, signature }), { refused: 'forged' }, 'a signature that is not the id')
  t.match(
    await ask({ ...real, signature }, false),
    { refused: 'forged' },
    'also where signatures are not verified',
  )
  t.match(await ask({ ...real, data_root: other }), { refused: 'forged' }, 'another data root than signed')
  t.match(await ask({ ...real, data_root: other }, false), { id }, 'which only the signature tells')
  for (const wrong of [
    null,
    [],
    {},
    { ...real, owner: 7 },
    { ...real, quantity: '-1' },
    { ...real, tags: 'x' },
  ]) {
    t.match(await ask(wrong), { refused: 'upstream' }, JSON.stringify(wrong)?.slice(0, 40))
  }
})
