import { readFileSync } from 'node:fs'
import t from 'tap'
import { layOut } from '../../src/devnet/weave.js'
import { isRefusal } from '../../src/format/refusal.js'
import { parseTransaction } from '../../src/format/transaction.js'

const folder = new URL('../../../test/fixture/replay/', import.meta.url)

function load(path: string): Record<string, unknown> {
  return JSON.parse(readFileSync(new URL(path, folder), 'utf8')) as Record<string, unknown>
}

t.test('the transactions of a real block lay out to its real root and size', async (t) => {
  const hash = load('blocks-by-height.json')['982575']
  const block = load(`blocks/${String(hash)}.json`)
  const transactions = (block.txs as string[]).map((id) => {
    const transaction = parseTransaction(load(`transactions/${id}.json`))
    if (isRefusal(transaction)) throw new Error(transaction.message)
    return transaction
  })
  const { txRoot, sizeBytes, placed } = layOut(transactions)
  t.equal(Buffer.from(txRoot).toString('base64url'), block.tx_root)
  t.equal(String(sizeBytes), block.block_size)
  t.equal(placed.length, 3)
})

t.test('a block without transactions has no root and no size', async (t) => {
  t.same(layOut([]), { txRoot: new Uint8Array(), sizeBytes: 0, placed: [] })
})
