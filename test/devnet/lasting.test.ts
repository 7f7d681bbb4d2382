import { type ChildProcess, spawn } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import t from 'tap'
import { pause } from '../../src/actor/clock.js'
import type { Devnet } from '../../src/devnet/devnet.js'
import { random } from '../property.js'
import { checkChain } from './check-chain.js'
import { clientOf, devnetOf, folderOf, jsonOf, payerOf, signed } from './posting.js'

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
  await checkChain(t, second.url, payer.address, 10n ** 18n)
})

async function busyNode(dataPath: string): Promise<{ child: ChildProcess; url: string }> {
  const file = fileURLToPath(new URL('./busy-node.js', import.meta.url))
  const child = spawn(process.execPath, [file, dataPath], { stdio: ['ignore', 'pipe', 'inherit'] })
  const [line] = (await once(child.stdout!, 'data')) as [Buffer]
  return { child, url: line.toString().trim() }
}

t.test('a node killed while it mines and forks leaves a valid chain each time', async (t) => {
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
    const ended = once(child, 'exit')
    const posts = transactions.map(async (transaction) => {
      const response = await fetch(`${url}/tx`, { method: 'POST', body: JSON.stringify(transaction) })
      if (response.status === 200) posted.push(transaction.id)
    })
    // However slow the machine is, something is posted once.
    if (round === 0) await posts[0]
    await Promise.race([Promise.allSettled(posts), pause(100)])
    await pause(random() * 150)
    child.kill('SIGKILL')
    await ended
    await Promise.allSettled(posts)

    devnet = await devnetOf(t, { dataPath })
    const ids = new Set([
      ...(await checkChain(t, devnet.url, payer.address, 10n ** 18n)),
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
