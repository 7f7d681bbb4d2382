import t from 'tap'
import { hearsBlockNews } from '../../src/actor/block-news.js'
import { startThread } from '../../src/actor/thread.js'
import { eventually } from '../eventually.js'
import { folderOf, jsonOf } from './posting.js'

t.test('the node runs on a thread of its own and ends on request', async (t) => {
  const dataPath = folderOf(t)
  const options = { host: '127.0.0.1', port: 0, blockMs: 0, dataPath }
  const thread = await startThread('devnet', 'devnet', { options })
  const { url } = thread.reported as { url: string }
  t.match(await jsonOf(`${url}/mine/2`), { height: 2 })
  await thread.stop(60_000)
  t.equal(await thread.gone, 0, 'by itself, before its deadline')
  await t.rejects(fetch(url))
  const again = await startThread('devnet', 'devnet', { options })
  t.match(await jsonOf((again.reported as { url: string }).url), { height: 2 })
  await again.stop(60_000)
})

t.test('a thread that cannot have its port ends the start', async (t) => {
  const options = { host: '203.0.113.1', port: 0, blockMs: 0, dataPath: folderOf(t) }
  await t.rejects(startThread('devnet', 'devnet', { options }))
})

t.test('all threads hear of its blocks', async (t) => {
  let heard = 0
  const news = hearsBlockNews(() => {
    heard += 1
  })
  t.teardown(() => news.close())
  const options = { host: '127.0.0.1', port: 0, blockMs: 0, dataPath: folderOf(t) }
  const thread = await startThread('devnet', 'devnet', { options })
  const { url } = thread.reported as { url: string }
  await jsonOf(url)
  t.equal(heard, 0)
  await jsonOf(`${url}/mine/3`)
  await eventually('news of the blocks', () => heard === 1)
  await jsonOf(`${url}/devnet/fork/1`, { method: 'POST' })
  await eventually('news of the fork', () => heard === 2)
  await thread.stop(60_000)
})
