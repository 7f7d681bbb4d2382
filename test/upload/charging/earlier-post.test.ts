/** Whether items were posted before: strangers who post a wallet's public items keep nobody out but themselves. */
import t from 'tap'
import { systemClock } from '../../../src/actor/clock.js'
import { silentLog } from '../../../src/actor/log.js'
import { type Id, idOfBytes } from '../../../src/format/id.js'
import { parseItemHeader } from '../../../src/format/item.js'
import { isRefusal, refuse } from '../../../src/format/refusal.js'
import { tagOf } from '../../../src/format/tag.js'
import { normalizedAddress } from '../../../src/proof/owner-address.js'
import { ed25519Signer, signItem } from '../../../src/proof/sign.js'
import type { UpstreamClient } from '../../../src/source/upstream/upstream-client.js'
import { NetworkPosts, type PostedItem } from '../../../src/upload/charging/network-posts.js'
import { Sharing } from '../../../src/upload/charging/sharing.js'
import { UncheckedItems } from '../../../src/upload/charging/unchecked-items.js'
import { HandClock } from '../../http/hand-clock.js'

const idOf = (number: number): Id => {
  const bytes = Buffer.alloc(32)
  bytes.writeUInt32BE(number)
  return idOfBytes(bytes)
}

/** What a gateway answers about an item. */
type Gateway = (number: number) => number | undefined

/** The first gateway has items below 1000. */
function earlierPost(clock: HandClock, ...others: readonly Gateway[]): NetworkPosts {
  const gateways = [(number: number) => (number < 1000 ? 200 : 404), ...others]
  return earlierPostBy(clock, gateways)
}

function earlierPostBy(clock: HandClock, gateways: readonly Gateway[]): NetworkPosts {
  const client: Pick<UpstreamClient, 'request'> = {
    request: async (url, { path }) => {
      const number = Buffer.from(path.slice('/raw/'.length), 'base64url').readUInt32BE()
      const statusCode = gateways[Number(url.slice('http://'.length))]?.(number)
      if (statusCode === undefined) return refuse('late', 'upstream', 'silent')
      return { statusCode, headers: {}, drop: () => undefined } as never
    },
  }
  const urls = gateways.map((_, at) => `http://${at}`)
  return new NetworkPosts(urls, client, clock, 1000, silentLog)
}

const stranger = '198.51.100.7'
const ask = (earlier: NetworkPosts, number: number, more: Partial<PostedItem> = {}) =>
  earlier.wasPosted({
    id: idOf(number),
    wallet: 'owner',
    client: stranger,
    isAtHome: false,
    bytes: 1000,
    mayGoUnchecked: true,
    ...more,
  })

t.test('who posts public items of a wallet is refused, and the wallet is not', async (t) => {
  const earlier = earlierPost(new HandClock())
  for (let number = 0; number < 20; number += 1) t.equal(await ask(earlier, number), true)
  const refused = await ask(earlier, 2000)
  t.ok(isRefusal(refused) && refused.refused === 'busy', 'the network of the stranger is')
  t.ok(isRefusal(await ask(earlier, 2000, { client: '198.51.100.99' })), 'and all of it')
  t.equal(await ask(earlier, 2000, { client: '203.0.113.5' }), false, 'a new network of the owner is not')
  t.equal(await ask(earlier, 2000, { isAtHome: true }), false, 'nor is his home, though strangers are there')
  t.equal(await ask(earlier, 2000, { wallet: 'another' }), false, 'nor are other wallets')
})

t.test('credits are shared and taken back while strangers post public items of the wallet', async (t) => {
  const clock = new HandClock()
  const earlier = earlierPost(clock)
  const tags = [tagOf('x-delete-payment-approval', 'B'.repeat(43))]
  const item = signItem(ed25519Signer(Buffer.alloc(32, 7)), { tags }, Buffer.from('back'))
  const header = parseItemHeader(item)
  if (header === 'more' || isRefusal(header)) throw new Error('the item of this test is none')
  const wallet = normalizedAddress(header.owner)
  for (let number = 0; number < 20; number += 1) await ask(earlier, number, { wallet })
  const credits = {
    check: async () => ({ isEnough: true, isUnknownWallet: false, winc: '0', balance: '9' }),
    approve: async () => refuse('upstream', 'upstream', 'not in this test'),
    revoke: async () => [],
  }
  const actFrom = (range: string, isHome: boolean) =>
    new Sharing(credits, earlier, { isHome: () => isHome }, systemClock).act(header, {
      address: range,
      paidBy: [],
      token: undefined,
    })
  t.match(
    await actFrom('203.0.113.5', false),
    { answerFields: { revokedApprovals: [] } },
    'from a new network',
  )
  t.match(
    await actFrom(stranger, true),
    { answerFields: { revokedApprovals: [] } },
    'and where a stranger is, too',
  )
  t.match(await actFrom(stranger, false), { status: 503 })
})

t.test('an item is new only where all gateways that are not away say so', async (t) => {
  const clock = new HandClock()
  let limited: number | undefined = 200
  const earlier = earlierPostBy(clock, [(number) => limited ?? (number < 1000 ? 200 : 404), () => 404])
  limited = undefined
  t.equal(await ask(earlier, 2000), false)
  for (const status of [429, 500, 302]) {
    limited = status
    t.match(await ask(earlier, 5), { refused: 'upstream' }, `a gateway that answers ${status} may have it`)
  }
  limited = undefined
  t.equal(await ask(earlier, 5), true)
  for (const status of [403, 429, 500, 503]) {
    limited = status
    clock.jump(3_600_001)
    t.match(await ask(earlier, 6), { refused: 'upstream' }, `and so is one that answers ${status} for hours`)
  }
  const other = earlierPostBy(clock, [() => undefined, () => 404])
  t.match(
    await ask(other, 2000),
    { refused: 'upstream' },
    'one that was not heard of since the start may have it',
  )
  clock.jump(3_600_001)
  t.match(await ask(other, 2001), { refused: 'upstream' }, 'two questions say little')
  for (let turn = 0; turn < 10; turn += 1) {
    clock.jump(300_000)
    await ask(other, 2001)
  }
  t.equal(await ask(other, 2001), false, 'one that no question has reached for an hour is away')
  t.match(await ask(earlierPostBy(clock, [() => 429, () => 404]), 1), { refused: 'upstream' })
})

t.test('a gateway that another one was faster than is not away', async (t) => {
  const clock = new HandClock()
  let isThere = true
  const client: Pick<UpstreamClient, 'request'> = {
    request: async (url, _, signal) => {
      if (url === 'http://fast')
        return { statusCode: isThere ? 200 : 404, headers: {}, drop: () => undefined } as never
      if (isThere && !signal.aborted)
        await new Promise<void>((resolve) => signal.addEventListener('abort', () => resolve()))
      return refuse('late', 'upstream', 'silent')
    },
  }
  const earlier = new NetworkPosts(['http://fast', 'http://slow'], client, clock, 1000, silentLog)
  for (let number = 0; number < 15; number += 1) {
    t.equal(await ask(earlier, number), true)
    clock.jump(300_000)
  }
  isThere = false
  t.match(await ask(earlier, 2000), { refused: 'upstream' })
})

t.test('where nobody states anything little is taken, and from the home of its owner alone', async (t) => {
  const clock = new HandClock()
  let status = 500
  const earlier = earlierPostBy(clock, [() => status])
  const home = { isAtHome: true, bytes: 2 ** 20 * 100 }
  t.match(await ask(earlier, 1), { refused: 'upstream' })
  t.equal(await ask(earlier, 1, home), false)
  t.equal(await ask(earlier, 2, home), false)
  t.match(await ask(earlier, 3, home), { refused: 'upstream' }, 'not for ever')
  t.match(await ask(earlier, 3, { ...home, bytes: 1, mayGoUnchecked: false }), { refused: 'upstream' })
  t.equal(await ask(earlier, 3, { ...home, client: '203.0.113.5' }), false, 'another home')
  clock.jump(3_600_000)
  t.equal(await ask(earlier, 4, home), false, 'an hour later')
  status = 200
  for (let number = 5; number < 15; number += 1) t.equal(await ask(earlier, number, home), true)
  status = 500
  t.match(await ask(earlier, 20, { ...home, bytes: 1 }), { refused: 'upstream' }, 'old ones come from there')
})

t.test('who uploads more than gateways answer from home has one of some items looked up', async (t) => {
  const clock = new HandClock()
  let status = 500
  const earlier = earlierPostBy(clock, [() => status])
  for (let number = 0; number < 256; number += 1) await ask(earlier, number, { isAtHome: true })
  t.match(await ask(earlier, 1000, { isAtHome: true }), { refused: 'upstream' })
  status = 404
  t.equal(await ask(earlier, 1001, { isAtHome: true }), false)
  status = 500
  for (let number = 0; number < 4; number += 1) t.equal(await ask(earlier, number, { isAtHome: true }), false)
  t.match(await ask(earlier, 1000, { isAtHome: true }), { refused: 'upstream' })
})

t.test('orders that come to nothing ask no gateway, or soon none any more', async (t) => {
  let questions = 0
  let balance = '9'
  const clock = new HandClock()
  const earlier = earlierPostBy(clock, [
    () => {
      questions += 1
      return 404
    },
  ])
  const credits = {
    check: async () => ({ isEnough: true, isUnknownWallet: false, winc: '0', balance }),
    approve: async () => ({ denied: true as const, status: 402 as const, text: 'Insufficient balance' }),
    revoke: async () => ({ denied: true as const, status: 400 as const, text: 'No valid approvals found' }),
  }
  const sharing = new Sharing(credits, earlier, { isHome: () => false }, systemClock)
  const act = async (number: number, ...tags: [string, string][]) => {
    const all = tags.map(([name, value]) => tagOf(name, value))
    const item = signItem(ed25519Signer(Buffer.alloc(32, 7)), { tags: all }, Buffer.from(`${number}`))
    const header = parseItemHeader(item)
    if (header === 'more' || isRefusal(header)) throw new Error('the item of this test is none')
    return sharing.act(header, { address: stranger, paidBy: [], token: undefined })
  }
  const other = 'B'.repeat(43)
  for (const [number, tags] of [
    [['x-approve-payment', 'nobody'] as [string, string], ['x-amount', '1'] as [string, string]],
    [['x-approve-payment', other] as [string, string], ['x-amount', '0'] as [string, string]],
    [['x-approve-payment', other] as [string, string]],
    [['x-approve-payment', other] as [string, string], ['x-amount', '10'] as [string, string]],
    [['x-delete-payment-approval', 'nobody'] as [string, string]],
  ].entries())
    t.match(await act(number, ...tags), { status: 400 })
  balance = '0'
  t.match(await act(9, ['x-delete-payment-approval', other]), { status: 400 }, 'nothing is shared')
  t.equal(questions, 0)
  balance = '9'
  const statuses = []
  for (let number = 0; number < 30; number += 1) {
    const answer = await act(number, ['x-delete-payment-approval', other])
    statuses.push(answer !== undefined && 'status' in answer ? answer.status : 0)
  }
  t.equal(questions, 20)
  t.strictSame(new Set(statuses), new Set([400, 503]))
})

t.test('where strangers fill the line, an owner at home has what his own new items earn', async (t) => {
  const unchecked = new UncheckedItems(new HandClock())
  t.notOk(unchecked.take('home', 1, true))
  unchecked.noteNew('home')
  for (let item = 0; item < 4; item += 1) t.ok(unchecked.take('home', 1, true))
  t.notOk(unchecked.take('home', 1, true))
  t.ok(unchecked.take('home', 2 ** 20 * 256, false), 'more is for the time when gateways are away')
  t.notOk(unchecked.take('home', 1, false))
})
