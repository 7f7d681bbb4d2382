/** The index as users meet it: what is posted to the chain is served by id, without a word about where it lies. */
import { randomBytes } from 'node:crypto'
import t, { type Test } from 'tap'
import { pause } from '../../src/actor/clock.js'
import { encodeBundle } from '../../src/format/bundle.js'
import { eventually } from '../eventually.js'
import { payerAt } from '../flow/payer.js'
import { run } from '../flow/running.js'
import { bundleItem, bundleTags, item } from '../source/weave.js'

const still = { SERVICES: 'gateway', DEVNET_BLOCK_MS: '0' }

async function stage(t: Test, environment: Record<string, string> = {}) {
  const dataPath = t.testdir()
  const running = await run(t, dataPath, { ...still, ...environment })
  const { gateway = '', devnet: node = '' } = running.urls
  const { post } = await payerAt(node)
  return { running, dataPath, gateway, node, post }
}

type Stage = Awaited<ReturnType<typeof stage>>

/** Asks until the answer is as wanted. */
async function until(url: string, wanted: (answer: Response) => boolean, method = 'GET'): Promise<Response> {
  return eventually('the wanted answer', async () => {
    const answer = await fetch(url, { method })
    if (wanted(answer)) return answer
    await answer.arrayBuffer()
    await pause(50)
    return undefined
  })
}
const ok = (answer: Response): boolean => answer.status === 200

async function nestedItems(t: Test, { gateway, post }: Stage): Promise<void> {
  const deep = [item(randomBytes(100), { 'Content-Type': 'text/x-deep' }), item(randomBytes(400_000))]
  const inner = bundleItem(deep)
  const middle = bundleItem([item(Buffer.from('beside')), inner])
  const bad = Buffer.from(item(randomBytes(50)).bytes)
  bad[bad.length - 1]! ^= 1
  const shallow = item(Buffer.from('shallow'), { 'Content-Type': 'text/plain' })
  const forged = { id: item(Buffer.from('')).id, bytes: bad }
  const first = item(randomBytes(10))
  const { parseItemHeader } = await import('../../src/format/item.js')
  const header = parseItemHeader(bad)
  const badId = typeof header === 'object' && 'id' in header ? header.id : forged.id
  const bytes = Buffer.from(
    encodeBundle([
      { id: first.id, bytes: first.bytes },
      { id: badId, bytes: bad },
      { id: middle.id, bytes: middle.bytes },
      { id: shallow.id, bytes: shallow.bytes },
    ]),
  )
  const root = await post(bytes, bundleTags)

  // The last of the root's items: all before it were told.
  await until(`${gateway}/raw/${shallow.id}`, ok, 'HEAD')
  for (const [wanted, parent] of [
    [first, bytes],
    [shallow, bytes],
    [middle, bytes],
    [inner, middle.payload],
    [deep[0]!, inner.payload],
    [deep[1]!, inner.payload],
  ] as const) {
    const head = await fetch(`${gateway}/raw/${wanted.id}`, { method: 'HEAD' })
    t.equal(head.status, 200)
    t.equal(Number(head.headers.get('content-length')), wanted.payload.length, 'the size is known before')
    const answer = await fetch(`${gateway}/raw/${wanted.id}`)
    const stated = (name: string): string | null => answer.headers.get(`x-gateway-${name}`)
    t.ok(Buffer.from(await answer.arrayBuffer()).equals(wanted.payload))
    t.equal(answer.headers.get('x-cache'), 'HIT', 'its bundle was kept: it is served out of it')
    t.equal(stated('verified'), 'true')
    t.equal(stated('root-transaction-id'), root)
    t.equal(stated('root-data-item-offset'), String(bytes.indexOf(wanted.bytes)), 'where it lies in the root')
    t.equal(stated('data-item-size'), String(wanted.bytes.length))
    t.equal(
      stated('data-item-offset'),
      String(Buffer.from(parent).indexOf(wanted.bytes)),
      'and in its parent',
    )
  }
  const typed = await fetch(`${gateway}/raw/${deep[0]?.id}`, { method: 'HEAD' })
  t.equal(typed.headers.get('content-type'), 'text/x-deep')
  t.equal((await fetch(`${gateway}/raw/${badId}`)).status, 404, 'the forged item is not there')
  // They are counted when the last of them was told.
  await eventually('the metrics of the bundle', async () => {
    const metrics = await (await fetch(`${gateway}/gateway/__gateway_metrics`)).text()
    return /\ndata_items_bad_total\S* 1\n/.test(metrics) && /\ndata_items_indexed_total\S* 7\n/.test(metrics)
  })
}

async function throughForkAndKill(t: Test, { running, dataPath, gateway, node, post }: Stage): Promise<void> {
  const one = item(Buffer.from('one'))
  const rootOne = await post(encodeBundle([one]), bundleTags)
  const early = await until(`${gateway}/raw/${one.id}`, ok, 'HEAD')
  t.equal(early.headers.get('x-gateway-stable'), 'false')
  await fetch(`${node}/devnet/fork/1`, { method: 'POST' })
  await fetch(`${node}/mine/30`)
  const { height: top } = (await (await fetch(`${node}/info`)).json()) as { height: number }
  await until(`${gateway}/raw/${one.id}`, (head) => head.headers.get('x-gateway-stable') === 'true', 'HEAD')
  await until(`${gateway}/raw/${rootOne}`, ok, 'HEAD')
  const isThere = async (): Promise<boolean> => {
    const about = (await (await fetch(`${gateway}/gateway/info`)).json()) as {
      index: Record<string, unknown>
    }
    const { state, height, lag, bundlesWaiting, missingTransactions } = about.index
    return (
      state === 'following' &&
      height === top &&
      lag === 0 &&
      bundlesWaiting === 0 &&
      missingTransactions === 0
    )
  }
  t.ok(await eventually('the bundle is in the index', isThere), 'all is in the index')
  // The text of the metrics is made once a second.
  await eventually('the metrics of the fork', async () => {
    const metrics = await (await fetch(`${gateway}/gateway/__gateway_metrics`)).text()
    return /\nforks_total\S* 1\n/.test(metrics)
  })
  await eventually('the gateway is healthy', async () => {
    const health = (await (await fetch(`${gateway}/gateway/healthcheck`)).json()) as { status: string }
    return health.status === 'ok'
  })

  await running.kill()
  const again = await run(t, dataPath, still)
  t.equal((await fetch(`${again.urls.gateway}/raw/${one.id}`)).status, 200)
  t.equal(await again.stop(), 0)
}

t.test('the index of one program', async (t) => {
  const here = await stage(t)
  await t.test('every item of a bundle in a bundle in a bundle is served by its id alone', (t) =>
    nestedItems(t, here),
  )
  await t.test('it reports its progress, follows a fork, and goes on after a kill', (t) =>
    throughForkAndKill(t, here),
  )
})

t.test('only what the filters want is opened and indexed', async (t) => {
  const { gateway, post } = await stage(t, {
    ANS104_UNBUNDLE_FILTER: '{"tags":[{"name":"App","valueStartsWith":"m"}]}',
    ANS104_INDEX_FILTER: '{"not":{"tags":[{"name":"Secret"}]}}',
  })
  const [a, b, c] = [item(randomBytes(10)), item(randomBytes(10), { Secret: 'x' }), item(randomBytes(10))]
  await post(encodeBundle([c]), { ...bundleTags, App: 'other' })
  await post(encodeBundle([a, b]), { ...bundleTags, App: 'mine' })
  await until(`${gateway}/raw/${a.id}`, ok)
  t.equal((await fetch(`${gateway}/raw/${b.id}`)).status, 404)
  t.equal((await fetch(`${gateway}/raw/${c.id}`)).status, 404)
})
