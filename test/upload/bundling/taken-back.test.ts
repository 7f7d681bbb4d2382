/** Blocks that a reorganization takes back, and wrong prices: accepted items are packed again soon, and none is given up. */
import t, { type Test } from 'tap'
import type { Id } from '../../../src/format/id.js'
import { refuse } from '../../../src/format/refusal.js'
import type { BundlerParts } from '../../../src/upload/bundling/bundler-parts.js'
import { rigOf, rules } from './bundler-rig.js'

const wrong = refuse('malformed', 'client', 'a node refuses: Invalid anchor (last_tx).')
const unknown = refuse('unknown', 'upstream', 'no node has it')
const bundlesMax = 8

/** A bundler of one item each, and what its chain does now. */
async function chainRig(t: Test, parts: Partial<BundlerParts> = {}) {
  const chain: { status: object; post: object; price: bigint; height: number; posts: string[] } = {
    status: { kind: 'pending' },
    post: {},
    price: 10n,
    height: 1,
    posts: [],
  }
  const more: Partial<BundlerParts> = {
    rules: { ...rules, itemsMax: 1 },
    height: () => chain.height,
    onMined: () => undefined,
    ...parts,
  }
  const rig = await rigOf(t, undefined, 1000n, more, {
    agreedStatus: async () => chain.status,
    price: async () => chain.price,
    postTransaction: async ({ id }: { readonly id: string }) => {
      chain.posts.push(id)
      return chain.post
    },
  })
  const ids: Id[] = []
  /** Rounds until it is so: one may still go on when a turn is over. */
  const until = async (isSo: () => boolean, ms = 500, turnsMax = 40): Promise<boolean> => {
    for (let at = 0; at < turnsMax && !isSo(); at += 1) await rig.turn(ms)
    return isSo()
  }
  const count = (state: string): number => rig.bundles.recent.filter((one) => one.state === state).length
  const accept = (count: number): void => {
    for (let at = 0; at < count; at += 1) ids.push(rig.accept(`item ${ids.length}`))
  }
  const carriers = (): (Id | undefined)[] => ids.map((id) => rig.uploads.find(id)?.bundle)
  return { ...rig, chain, ids, until, count, accept, carriers }
}

/** A bundler's clock of dates is that of the machine: what is due later is looked at with the next round. */
function makeDue({ bundles, clock }: Awaited<ReturnType<typeof chainRig>>): void {
  for (const { id } of bundles.open()) bundles.delay(id, clock.now())
}

t.test('bundles that are lost together make no pause', async (t) => {
  const rig = await chainRig(t)
  const { chain, until, count, accept, carriers } = rig
  accept(bundlesMax)
  t.ok(await until(() => count('seeded') === bundlesMax))
  const before = carriers()
  chain.status = unknown
  let nowMs = Date.now()
  rig.clock.now = () => nowMs
  const isPostedAgain = (): boolean => {
    nowMs += 60_000
    return chain.posts.length > 8 * bundlesMax
  }
  t.ok(await until(isPostedAgain, 60_000, 60))
  chain.height = 100
  makeDue(rig)
  t.notOk(await until(() => count('dropped') > 0, 1, 2), 'one look decides nothing')
  const isDropped = (): boolean => {
    nowMs += 1000
    return count('dropped') === bundlesMax
  }
  t.ok(await until(isDropped, 1000, 20), 'no pause has grown meanwhile')
  chain.status = { kind: 'pending' }
  const isAgain = (bundle: Id | undefined, at: number): boolean =>
    bundle !== undefined && bundle !== before[at]
  t.ok(await until(() => carriers().every(isAgain)), 'all are in bundles again within seconds')
})

t.test(
  'what one node alone has is packed again when no block can take it; later, where it has it in one',
  async (t) => {
    const rig = await chainRig(t)
    const { chain, until, count, accept } = rig
    accept(1)
    t.ok(await until(() => count('seeded') === 1))
    const areDropped = (number: number) => (): boolean => {
      makeDue(rig)
      return count('dropped') === number
    }
    const [alone, inBlock] = [
      { kind: 'pending', isUnknownToMost: true },
      { kind: 'pending', isUnknownToMost: true, isContested: true },
    ]
    chain.status = inBlock
    chain.height = 100
    t.notOk(await until(areDropped(1), 1000, 10))
    chain.status = alone
    t.ok(await until(areDropped(1), 1000))
    t.ok(await until(() => count('seeded') === 1))
    chain.status = inBlock
    chain.height = 1000
    t.ok(await until(areDropped(2), 1000))
  },
)

t.test('what most nodes have, or one of two has in a block, is not packed again soon', async (t) => {
  const rig = await chainRig(t)
  const { chain, until, count, accept, bundles } = rig
  accept(1)
  t.ok(await until(() => count('seeded') === 1))
  chain.height = 10_000
  chain.status = { kind: 'pending', isContested: true }
  const isDropped = (): boolean => {
    makeDue(rig)
    return count('dropped') > 0
  }
  t.notOk(await until(isDropped, 60_000, 40), 'one of two nodes that denies it decides nothing')
  t.match(bundles.open(), [{ reason: /contradict/ }])
  chain.status = { kind: 'pending' }
  t.notOk(await until(isDropped, 1000, 40), 'a height may be wrong')
  t.ok(await until(isDropped, 10_000, 40), 'hours later no block takes it')
})

t.test(
  'a posted bundle that nodes do not take the chunks of is paid for: it is looked for, and not packed again',
  async (t) => {
    const broadcast = {
      chunk: async () => ({ enough: false, results: [] }),
    } as unknown as BundlerParts['broadcast']
    const rig = await chainRig(t, { broadcast })
    const { until, count, accept, chain } = rig
    accept(1)
    const isSeeded = (): boolean => {
      makeDue(rig)
      return count('seeded') === 1
    }
    t.ok(await until(isSeeded, 1000, 60))
    t.equal(chain.posts.length, 1)
    t.equal(count('dropped'), 0)
  },
)

t.test('bundles that a reorganization makes wrong make one pause', async (t) => {
  const rig = await chainRig(t)
  const { chain, until, count, accept, carriers, bundles, clock } = rig
  chain.post = refuse('busy', 'upstream', 'a node is behind')
  chain.status = unknown
  accept(bundlesMax)
  t.ok(await until(() => count('packed') === bundlesMax))
  chain.post = wrong
  const [early, late] = [bundles.open().slice(0, 4), bundles.open().slice(4)]
  for (const some of [early, late]) {
    const isDropped = (): boolean => {
      for (const { id } of some) bundles.delay(id, clock.now())
      return some.every(({ id }) => bundles.find(id)?.state === 'dropped')
    }
    t.notOk(await until(isDropped, 1, 3), 'one refusal decides nothing')
    t.ok(await until(isDropped, 1000))
  }
  chain.post = {}
  chain.status = { kind: 'pending' }
  t.ok(
    await until(() => carriers().every((bundle) => bundle !== undefined)),
    'all are packed again within seconds',
  )
})

t.test('what no node knows is posted again while its anchor holds', async (t) => {
  const rig = await chainRig(t)
  const { chain, until, count, accept, carriers, bundles } = rig
  accept(1)
  t.ok(await until(() => count('seeded') === 1))
  const [bundle] = carriers() as [Id]
  chain.status = { kind: 'mined', height: 3, confirmations: 2 }
  makeDue(rig)
  t.ok(await until(() => bundles.find(bundle)?.height === 3))
  chain.status = unknown
  makeDue(rig)
  t.ok(await until(() => chain.posts.length === 2))
  t.strictSame(chain.posts, [bundle, bundle])
  t.ok(await until(() => bundles.find(bundle)?.height === undefined))
  t.strictSame(carriers(), [bundle], 'and its items are packed once')
})

t.test('a price that was too low is no failure of the items', async (t) => {
  const rig = await chainRig(t)
  const { chain, until, count, accept, carriers, ids, uploads, bundles } = rig
  const hourMs = 3_600_000
  chain.status = unknown
  for (let times = 1; times <= 32; times += 1) {
    chain.price = 1n
    chain.post = refuse('busy', 'upstream', 'a node is behind')
    if (times === 1) accept(1)
    t.ok(await until(() => count('packed') === 1, hourMs))
    chain.price = 10n
    chain.post = wrong
    const isDropped = (): boolean => {
      makeDue(rig)
      return count('dropped') === times
    }
    t.ok(await until(isDropped, 2000))
  }
  t.match(bundles.recent[0], { state: 'dropped', reason: /below the price/ })
  t.equal(uploads.find(ids[0] as Id)?.failures ?? 0, 0)
  chain.post = {}
  chain.status = { kind: 'pending' }
  t.ok(await until(() => carriers()[0] !== undefined, hourMs))
})
