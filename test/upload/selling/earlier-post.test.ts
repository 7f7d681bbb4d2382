/** Whether items were posted before: strangers who post a wallet's public items keep nobody out but themselves. */
import t from 'tap'
import { systemClock } from '../../../src/actor/clock.js'
import { type Id, idOfBytes } from '../../../src/format/id.js'
import { parseItemHeader } from '../../../src/format/item.js'
import { isRefusal, refuse } from '../../../src/format/refusal.js'
import { tagOf } from '../../../src/format/tag.js'
import { normalizedAddress } from '../../../src/proof/owner-address.js'
import { ed25519Signer, signItem } from '../../../src/proof/sign.js'
import type { GatewayLine } from '../../../src/source/upstream/gateway-line.js'
import { EarlierPost, type PostedItem } from '../../../src/upload/selling/earlier-post.js'
import { Sharing } from '../../../src/upload/selling/sharing.js'
import { HandClock } from '../../http/hand-clock.js'

const idOf = (number: number): Id => {
  const bytes = Buffer.alloc(32)
  bytes.writeUInt32BE(number)
  return idOfBytes(bytes)
}

/** A gateway that has items below 1000. */
function earlierPost(clock: HandClock): EarlierPost {
  const line: Pick<GatewayLine, 'ask'> = {
    ask: async (_, { path }) => {
      const number = Buffer.from(path.slice('/raw/'.length), 'base64url').readUInt32BE()
      return { statusCode: number < 1000 ? 200 : 404, headers: {}, drop: () => undefined } as never
    },
  }
  return new EarlierPost(['http://gateway'], line, clock, 1000)
}

const stranger = '198.51.100.7'
const ask = (earlier: EarlierPost, number: number, more: Partial<PostedItem> = {}) =>
  earlier.isKnown({
    id: idOf(number),
    wallet: 'owner',
    client: stranger,
    isAtHome: false,
    isTakenUnasked: false,
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
      range,
      paidBy: [],
      token: undefined,
    })
  t.match(await actFrom('203.0.113.5', false), { done: { revokedApprovals: [] } }, 'from a new network')
  t.match(await actFrom(stranger, true), { done: { revokedApprovals: [] } }, 'and where a stranger is, too')
  t.match(await actFrom(stranger, false), { status: 503 })
})
