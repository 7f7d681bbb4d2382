import type { Test } from 'tap'
import { jsonOf } from './posting.js'

interface BlockJson {
  indep_hash: string
  previous_block: string
  height: number
  txs: string[]
  weave_size: string
  block_size: string
  reward_pool: string
}

/** Asserts all that must hold of any chain; the ids of its transactions. */
export async function checkChain(t: Test, url: string, address: string, minted: bigint): Promise<string[]> {
  const tip = Number(await (await fetch(`${url}/height`)).text())
  const ids: string[] = []
  let before: BlockJson | undefined
  let spent = 0n
  for (let height = 0; height <= tip; height += 1) {
    const block = await jsonOf<BlockJson>(`${url}/block/height/${height}`)
    const same = await jsonOf<BlockJson>(`${url}/block/hash/${block.indep_hash}`)
    if (same.height !== height) t.fail(`block ${height} is not the one its hash names`)
    if (before !== undefined) {
      if (block.previous_block !== before.indep_hash) t.fail(`block ${height} does not follow ${height - 1}`)
      const grown = Number(before.weave_size) + Number(block.block_size)
      if (Number(block.weave_size) !== grown) t.fail(`the weave does not add up at ${height}`)
    }
    for (const id of block.txs) {
      const status = await jsonOf<{ block_indep_hash: string }>(`${url}/tx/${id}/status`)
      if (status.block_indep_hash !== block.indep_hash) t.fail(`${id} is not in the block that lists it`)
      spent += BigInt((await jsonOf<{ reward: string }>(`${url}/tx/${id}`)).reward)
    }
    await checkPlaces(t, url, block)
    ids.push(...block.txs)
    before = block
  }
  t.equal(new Set(ids).size, ids.length, 'no transaction is mined twice')
  t.equal(before?.reward_pool, spent.toString(), 'every reward went into the pool')
  const balance = await (await fetch(`${url}/wallet/${address}/balance`)).text()
  t.equal(balance, (minted - spent).toString(), 'the wallet paid exactly the rewards')
  return ids
}

/** Data lies inside its block, in the order of ids, on boundaries of 256 KiB. */
async function checkPlaces(t: Test, url: string, block: BlockJson): Promise<void> {
  const end = Number(block.weave_size)
  let at = end - Number(block.block_size)
  const inOrder = [...block.txs].sort((a, b) =>
    Buffer.from(a, 'base64url').compare(Buffer.from(b, 'base64url')),
  )
  for (const id of inOrder) {
    const { size, offset } = await jsonOf<{ size: string; offset: string }>(`${url}/tx/${id}/offset`)
    if (Number(offset) !== at + Number(size)) t.fail(`${id} does not lie where its block says`)
    const { status } = await fetch(`${url}/chunk/${offset}`)
    if (status !== 200) t.fail(`the last byte of ${id} is not found`)
    at += Math.ceil(Number(size) / 262_144) * 262_144
  }
  if (at !== end) t.fail(`block ${block.height} is not as large as its data`)
}
