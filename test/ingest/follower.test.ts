import { randomBytes } from 'node:crypto'
import t from 'tap'
import { pause, systemClock } from '../../src/actor/clock.js'
import { silentLog } from '../../src/actor/log.js'
import { Generations } from '../../src/catalog/generations.js'
import { Devnet } from '../../src/devnet/devnet.js'
import { type Id, idBytes } from '../../src/format/id.js'
import { eventually } from '../eventually.js'
import { folder, house, orders } from './house.js'
import { gatekeeper, rebuilt, settled, town } from './town.js'

t.test('500 blocks with forks of depth 1, 5 and 17 leave the index of the final chain', async (t) => {
  const { devnet, post, bundle, fork } = await town(t)
  const on = house(t, devnet.url)
  const ids: Id[] = []
  const grow = async (blocks: number): Promise<void> => {
    ids.push(await post(randomBytes(1000), { App: 'plain' }))
    devnet.mine(blocks >> 1)
    const { root, items } = await bundle(6)
    ids.push(root, ...items)
    devnet.mine(blocks - (blocks >> 1))
  }
  await grow(20)
  await settled(on, devnet)
  fork(1)
  await settled(on, devnet)
  await grow(10)
  // Blocks may be half imported and bundles half indexed when the branch goes.
  fork(5, { blocks: 5 })
  await grow(20)
  await settled(on, devnet)
  fork(17)
  await settled(on, devnet)
  await grow(24)
  await settled(on, devnet)
  fork(5, { transactions: 'lost', blocks: 9 })
  for (const blocks of [120, 140, 160]) await grow(blocks)
  fork(17, { blocks: 18 })
  await settled(on, devnet)

  t.ok(on.following.height >= 500)
  t.same(on.check().problems, [])
  t.same(on.dump(), await rebuilt(t, devnet), 'every key and record')
  const plain = ids[0] ?? ('' as Id)
  const { offset } = (await (await fetch(`${devnet.url}/tx/${plain}/offset`)).json()) as { offset: string }
  t.equal(on.index.row(idBytes(plain))?.transfer?.weaveEnd, Number(offset), 'proven from the block alone')
  for (const id of ids) {
    const row = on.index.row(idBytes(id))
    t.equal(on.catalog.attributes(id)?.height, row?.height, 'serving by id agrees with the index')
  }
  t.equal(on.tip.height, on.following.height)
  t.ok(on.meters.total('forks_total') >= 3)
})

t.test('a fork that is too deep halts the import, says so, and is followed when it is allowed', async (t) => {
  const { devnet, bundle, fork } = await town(t)
  const path = folder(t)
  const on = house(t, devnet.url, {}, { path })
  const { root } = await bundle(4)
  devnet.mine(30)
  await settled(on, devnet)
  const before = on.dump()
  fork(19)
  await eventually('the follower has halted', () => on.following.state === 'halted')
  t.equal(on.following.state, 'halted')
  t.equal(on.meters.total('chain_import_halted'), 1)
  devnet.mine(3)
  t.ok(await eventually('the tip has moved', () => on.tip.height === 34), 'the tip moves on')
  await pause(100)
  t.same(on.dump(), before, 'what was indexed stays')
  t.ok(on.catalog.attributes(root))
  await on.stop()
  const given = {
    follow: { start: { height: 0 }, stopHeight: 1e9, forkDepthMax: 30, pollMs: 20, haltedMs: 100 },
  }
  const again = house(t, devnet.url, given, { path })
  await settled(again, devnet)
  t.same(again.check().problems, [])
  t.same(again.dump(), await rebuilt(t, devnet))
})

t.test('transactions that a node does not give are had later; their block is there at once', async (t) => {
  const { devnet, bundle } = await town(t)
  const { root, items } = await bundle(4)
  devnet.mine(3)
  let closed = true
  const node = await gatekeeper(t, devnet.url, (path) => closed && path === `/tx/${root}`)
  const path = folder(t)
  const first = house(t, node, {}, { path })
  await eventually('three blocks are followed', () => first.following.height >= 3)
  t.equal(first.following.height, 3)
  first.index.refresh()
  t.equal(first.index.row(idBytes(root)), undefined)
  await first.stop()
  closed = false
  const on = house(t, node, {}, { path })
  await eventually('the root is in the index', () => {
    on.index.refresh()
    return on.index.row(idBytes(root)) !== undefined
  })
  await settled(on, devnet)
  t.ok(on.index.row(idBytes(root)), 'remembered over a restart')
  t.equal(items.filter((id) => on.index.row(idBytes(id)) !== undefined).length, items.length)
  t.same(on.dump(), await rebuilt(t, devnet))
})

t.test('STOP_HEIGHT and START_HEIGHT bound what is indexed', async (t) => {
  const { devnet } = await town(t)
  devnet.mine(20)
  const rules = { forkDepthMax: 18, pollMs: 20, haltedMs: 100 }
  const on = house(t, devnet.url, { follow: { ...rules, start: { height: 5 }, stopHeight: 9 } })
  await eventually('the follower has finished', () => on.following.state === 'finished')
  on.index.refresh()
  t.same(
    on.index.blocks(0, 100, false, 100).map(({ height }) => height),
    [5, 6, 7, 8, 9],
  )
  t.equal(on.tip.height, 20, 'the tip is known all the same')
})

t.test('what waits for a block is known where it is wanted, and moves into its block', async (t) => {
  const { devnet, post } = await town(t)
  const on = house(t, devnet.url, { mempool: { everyMs: 50, atOnceMax: 10 } })
  const id = await post(randomBytes(10))
  await eventually('the item is in the index', () => {
    on.index.refresh()
    return on.index.row(idBytes(id)) !== undefined
  })
  t.equal(on.index.row(idBytes(id))?.height, undefined)
  t.equal(on.index.counts().pending, 1)
  t.equal(on.catalog.attributes(id)?.size, 10)
  devnet.mine(2)
  await settled(on, devnet)
  t.equal(on.index.row(idBytes(id))?.height, 1)
  t.equal(on.index.counts().pending, 0)
  t.same(on.check().problems, [])
})

t.test('a lower first height on a later start fills the index below, with its bundles', async (t) => {
  const { devnet, post, bundle } = await town(t)
  const low = await post(randomBytes(1000), { App: 'plain' })
  const { items } = await bundle(3)
  devnet.mine(60)
  const path = folder(t)
  const follow = orders(path, devnet.url, new Generations().memory).follow
  const at = (height: number) => ({ follow: { ...follow, start: { height } } })
  const first = house(t, devnet.url, at(50), { path })
  await settled(first, devnet)
  t.equal(first.index.block(49), undefined)
  t.equal(first.index.row(idBytes(low)), undefined)
  await first.stop()

  // Killed and started again with another wish each time: the gap is seen in the index alone.
  const second = house(t, devnet.url, at(30), { path })
  await eventually('block 30 is in the index', () => second.index.block(30) !== undefined)
  await second.stop()
  const third = house(t, devnet.url, at(0), { path })
  await eventually('the first block is in the index', () => third.index.block(0) !== undefined)
  await settled(third, devnet)
  t.same(third.check().problems, [])
  t.same(third.dump(), await rebuilt(t, devnet), 'as if it had begun there')
  t.ok(items.every((id) => third.index.row(idBytes(id)) !== undefined))
})

t.test('a node that sends news of its blocks is followed without polling', async (t) => {
  let heard = (): void => undefined
  const devnet = await Devnet.start(
    { host: '127.0.0.1', port: 0, blockMs: 0, dataPath: folder(t) },
    systemClock,
    silentLog,
    () => heard(),
  )
  t.teardown(() => devnet.stop())
  let isClosed = false
  const on = house(t, devnet.url, {
    follow: { start: { height: 0 }, stopHeight: 1e9, forkDepthMax: 18, pollMs: 3_600_000, haltedMs: 100 },
    blockNews: (act) => {
      heard = act
      return {
        close: () => {
          isClosed = true
        },
      }
    },
  })
  await settled(on, devnet)
  for (const blocks of [1, 2, 3, 20]) {
    devnet.mine(blocks)
    await settled(on, devnet)
  }
  devnet.fork(5)
  await settled(on, devnet)
  // News come while what was heard of before is under way.
  for (let n = 0; n < 50; n += 1) {
    devnet.mine(1)
    await new Promise((resolve) => setImmediate(resolve))
  }
  await settled(on, devnet)
  t.equal(on.following.height, 77)
  await on.stop()
  t.ok(isClosed)
})
