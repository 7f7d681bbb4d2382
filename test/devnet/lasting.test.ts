import { type ChildProcess, spawn } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import t, { type Test } from 'tap'
import { pause } from '../../src/actor/clock.js'
import type { Devnet } from '../../src/devnet/devnet.js'
import { clientOf, devnetOf, folderOf, jsonOf, type Payer, payerOf, signed } from './posting.js'

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
async function checkChain(t: Test, url: string, payer: Payer, minted: bigint): Promise<string[]> {
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
    ids.push(...block.txs)
    before = block
  }
  t.equal(new Set(ids).size, ids.length, 'no transaction is mined twice')
  t.equal(before?.reward_pool, spent.toString(), 'every reward went into the pool')
  const balance = await (await fetch(`${url}/wallet/${payer.address}/balance`)).text()
  t.equal(balance, (minted - spent).toString(), 'the wallet paid exactly the rewards')
  return ids
}

async function offsetsOf(devnet: Devnet, ids: string[]) {
  return Promise.all(ids.map((id) => jsonOf(`${devnet.url}/tx/${id}/offset`)))
}

t.test('a chain goes on after a restart where it was', async (t) => {
  const dataPath = folderOf(t)
  const first = await devnetOf(t, { dataPath })
  const payer = await payerOf(first)
  const data = randomBytes(300_000)
  const transaction = await signed(payer, { data })
  t.match(first.submit({ ...transaction.toJSON(), data: Buffer.from(data).toString('base64url') }), {
    status: 200,
  })
  first.mine(3)
  const waiting = await signed(payer, { data: 'waits' })
  t.match(first.submit(waiting.toJSON()), { status: 200 })
  const tip = await jsonOf(`${first.url}/block/current`)
  const offsets = await offsetsOf(first, [transaction.id])
  await first.stop()

  const second = await devnetOf(t, { dataPath })
  t.same(await jsonOf(`${second.url}/block/current`), tip)
  t.same(await offsetsOf(second, [transaction.id]), offsets)
  t.same(await jsonOf(`${second.url}/tx/pending`), [waiting.id])
  const body = await (await fetch(`${second.url}/tx/${transaction.id}/data`)).text()
  t.equal(body, data.toString('base64url'))
  t.match(second.submit(waiting.toJSON()), { status: 208 })
  second.mine()
  t.match(await jsonOf(`${second.url}/tx/${waiting.id}/status`), { block_height: 4 })
  await checkChain(t, second.url, payer, 10n ** 18n)
})

async function busyNode(dataPath: string): Promise<{ child: ChildProcess; url: string }> {
  const file = fileURLToPath(new URL('./busy-node.js', import.meta.url))
  const child = spawn(process.execPath, [file, dataPath], { stdio: ['ignore', 'pipe', 'inherit'] })
  const [line] = (await once(child.stdout!, 'data')) as [Buffer]
  return { child, url: line.toString().trim() }
}

t.test('a node killed while it mines and forks leaves a sound chain each time', async (t) => {
  const dataPath = folderOf(t)
  const opening = await devnetOf(t, { dataPath })
  const payer = await payerOf(opening)
  let devnet = opening
  const posted: string[] = []
  for (let round = 0; round < 4; round += 1) {
    const transactions = await Promise.all(
      [1_000, 30_000, 262_144, 500_000].map(async (size) => {
        const data = randomBytes(size)
        const payerNow = { ...payer, client: clientOf(devnet.url) }
        return { ...(await signed(payerNow, { data })).toJSON(), data: data.toString('base64url') }
      }),
    )
    await devnet.stop()
    const { child, url } = await busyNode(dataPath)
    const posts = transactions.map(async (transaction) => {
      const response = await fetch(`${url}/tx`, { method: 'POST', body: JSON.stringify(transaction) })
      if (response.status === 200) posted.push(transaction.id)
    })
    await Promise.race([Promise.allSettled(posts), pause(100)])
    await pause(Math.random() * 150)
    child.kill('SIGKILL')
    await once(child, 'exit')
    await Promise.allSettled(posts)

    devnet = await devnetOf(t, { dataPath })
    const ids = new Set([
      ...(await checkChain(t, devnet.url, payer, 10n ** 18n)),
      ...(await jsonOf<string[]>(`${devnet.url}/tx/pending`)),
    ])
    t.same(
      posted.filter((id) => !ids.has(id)),
      [],
      'what was answered with 200 is still there',
    )
  }
  t.ok(posted.length > 0, 'something was posted at all')
})
