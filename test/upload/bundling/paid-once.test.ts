/** Nodes that are away, behind or wrong for a while: no item is in two transactions that are paid for. */
import t, { type Test } from 'tap'
import { systemClock } from '../../../src/actor/clock.js'
import { silentLog } from '../../../src/actor/log.js'
import { agreedStatus } from '../../../src/chain/agreed-status.js'
import { parseBlockHash, type TransactionStatus } from '../../../src/chain/chain.js'
import { RemoteChain } from '../../../src/chain/remote-chain.js'
import { type Refusal, refuse } from '../../../src/format/refusal.js'
import { Height } from '../../../src/upload/intake/height.js'
import { nodeThat, patient } from '../../chain/hostile.js'
import { eventually } from '../../eventually.js'
import { rigOf, rules } from './bundler-rig.js'

const unknown = refuse('unknown', 'upstream', 'no node has it')
const away = refuse('upstream', 'upstream', 'away')
const block = parseBlockHash('B'.repeat(64))
if (block === undefined) throw new Error('no hash')
const minedAt = (height: number, tip: number): TransactionStatus => ({
  kind: 'mined',
  height,
  block,
  confirmations: tip - height + 1,
})
const hashOf = (height: number): string => Buffer.alloc(48, (height % 251) + 1).toString('base64url')
const slow = { ...rules, everyMs: 5000, lookMs: 60_000 }

t.test('one of two nodes that never knows a transaction has it paid for once', async (t) => {
  let height = 1000
  const taken = new Map<string, number>()
  const rig = await rigOf(
    t,
    undefined,
    100n,
    { height: () => height },
    {
      postTransaction: async ({ id }: { readonly id: string }) => {
        if (!taken.has(id)) taken.set(id, height + 1)
        return 'accepted'
      },
      agreedStatus: async (id: string) => {
        const at = taken.get(id) ?? Number.POSITIVE_INFINITY
        const pending: TransactionStatus | Refusal = taken.has(id) ? { kind: 'pending' } : unknown
        return agreedStatus([at > height ? pending : minedAt(at, height), unknown])
      },
    },
  )
  rig.accept('one')
  for (let hour = 0; hour < 60; hour += 1) {
    for (let time = 0; time < 4; time += 1) await rig.turn(hour + time === 0 ? 5000 : 2000)
    height += 30
  }
  t.equal(taken.size, 1)
})

t.test('what is packed after an outage has the height of its anchor', async (t) => {
  const node = { isUp: true, height: 1_500_000 }
  const taken = new Set<string>()
  const { url } = await nodeThat(t, async (request, response) => {
    const bodies: Buffer[] = []
    for await (const piece of request) bodies.push(piece as Buffer)
    const path = request.url ?? ''
    const status = /^\/tx\/([^/]+)\/status/.exec(path)?.[1]
    if (!node.isUp) response.writeHead(502).end()
    else if (path === '/height') response.end(String(node.height))
    else if (path === '/tx_anchor') response.end(hashOf(node.height))
    else if (path.startsWith('/price')) response.end('1000')
    else if (path.startsWith('/wallet')) response.end('1000000000000')
    else if (path === '/tx') {
      taken.add((JSON.parse(Buffer.concat(bodies).toString()) as { id: string }).id)
      response.end('OK')
    } else response.writeHead(taken.has(status ?? '') ? 202 : 404).end('Pending')
  })
  const chain = new RemoteChain({ ...patient, nodes: [url] }, systemClock)
  t.teardown(() => chain.close())
  const box: { known?: Height } = {}
  const rig = await rigOf(t, undefined, 100n, { height: () => box.known?.known, chain, rules: slow })
  const clock = { ...systemClock, every: () => ({ cancel: () => undefined }) }
  const { uploads } = rig
  const height = new Height(chain, uploads, clock, new AbortController().signal, silentLog)
  box.known = height
  await height.start(1)
  t.equal(height.known, node.height)
  node.isUp = false
  rig.accept('one')
  await rig.turn(5000)
  node.height += 90
  node.isUp = true
  rig.clock.jump(3 * 3_600_000)
  await eventually('it is packed', async () => {
    await rig.turn(5000)
    return rig.bundles.open().length > 0
  })
  t.match(rig.bundles.open(), [{ anchorHeight: node.height }])
  await height.start(1)
  for (let at = 0; at < 20; at += 1) await rig.turn(60_000)
  t.equal(taken.size, 1)
})

/** A bundler over three nodes, the third of which is gone. */
async function pairRig(t: Test, stuck: { height: number; anchorHeight: number }, tip = 1_500_000) {
  const takers: Set<string>[] = []
  const nodeAt = async (stated: { height: number; anchorHeight: number }): Promise<string> => {
    const taken = new Set<string>()
    takers.push(taken)
    const isRecent = (anchor: string): boolean =>
      Array.from({ length: 51 }, (_, at) => hashOf(stated.anchorHeight - at)).includes(anchor)
    const { url } = await nodeThat(t, async (request, response) => {
      const bodies: Buffer[] = []
      for await (const piece of request) bodies.push(piece as Buffer)
      const path = request.url ?? ''
      if (path === '/height') response.end(String(stated.height))
      else if (path === '/tx_anchor') response.end(hashOf(stated.anchorHeight))
      else if (path.startsWith('/price')) response.end('1000')
      else if (path.startsWith('/wallet')) response.end('1000000000000')
      else if (path === '/tx') {
        const tx = JSON.parse(Buffer.concat(bodies).toString()) as { id: string; last_tx: string }
        if (isRecent(tx.last_tx)) taken.add(tx.id)
        response.writeHead(isRecent(tx.last_tx) ? 200 : 400).end('Invalid anchor')
      } else response.writeHead(404).end()
    })
    return url
  }
  const nodes = [await nodeAt({ height: tip, anchorHeight: tip }), await nodeAt(stuck), 'http://127.0.0.1:9']
  const chain = new RemoteChain({ ...patient, nodes }, systemClock)
  t.teardown(() => chain.close())
  const rig = await rigOf(t, undefined, 100n, { height: () => tip, chain, rules: slow })
  rig.accept('one')
  await eventually('it is posted', async () => {
    await rig.turn(5000)
    return rig.bundles.open().some(({ state }) => state !== 'packed')
  })
  return { rig, takers, tip }
}

t.test('one of two nodes that stands still keeps nothing from the chain', async (t) => {
  const { rig, takers, tip } = await pairRig(t, { height: 1_499_940, anchorHeight: 1_499_940 })
  t.equal(takers[0]?.size, 1, 'the node that is well has it')
  t.match(rig.bundles.open(), [{ anchorHeight: tip }])
})

t.test('a node that states a low height for a moment has nothing paid twice', async (t) => {
  const { rig, takers, tip } = await pairRig(t, { height: 5, anchorHeight: 1_500_000 })
  t.match(rig.bundles.open(), [{ anchorHeight: tip }])
  for (let at = 0; at < 12; at += 1) await rig.turn(60_000)
  t.equal(takers[0]?.size, 1)
})

t.test('a node that answers for its transactions later than for its height', async (t) => {
  const node = { state: 'first' as 'first' | 'away' | 'late' | 'well' }
  const paid: string[] = []
  let height = 1000
  const rig = await rigOf(
    t,
    undefined,
    100n,
    { onMined: () => undefined, height: () => height, rules: slow },
    {
      postTransaction: async ({ id }: { readonly id: string }) => {
        if (node.state === 'away') return away
        if (!paid.includes(id)) paid.push(id)
        if (node.state !== 'first') return 'accepted'
        node.state = 'away'
        return away
      },
      agreedStatus: async (id: string) => {
        if (node.state === 'away') return away
        return node.state === 'well' && paid.includes(id) ? minedAt(1002, height) : unknown
      },
    },
  )
  rig.accept('one')
  await rig.round()
  for (let at = 0; at < 22; at += 1) await rig.turn(301_000)
  height += 45
  node.state = 'late'
  await rig.turn(301_000)
  node.state = 'well'
  for (let at = 0; at < 4; at += 1) await rig.turn(61_000)
  t.equal(paid.length, 1)
  t.match(rig.bundles.open(), [{ height: 1002 }])
})
