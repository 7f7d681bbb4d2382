import { join } from 'node:path'
import t from 'tap'
import { type Clock, systemClock } from '../../../src/actor/clock.js'
import { localAddress } from '../../../src/actor/mailbox-address.js'
import { isRefusal } from '../../../src/format/refusal.js'
import { EmbeddedLedger } from '../../../src/ledger/embedded.js'
import { isRejected } from '../../../src/ledger/ledger-port.js'
import { Accounts } from '../../../src/payment/books/accounts.js'
import { approvalFaults } from '../../../src/payment/books/approval-faults.js'
import { Approvals } from '../../../src/payment/books/approvals.js'
import { LedgerCredits } from '../../../src/payment/books/credits.js'
import { Wallets } from '../../../src/payment/books/wallets.js'
import { type ApprovalView, type CreditsPort, isDenied } from '../../../src/payment/credits-port.js'
import {
  answersCredits,
  type CreditsReply,
  type CreditsRequest,
  creditsByMessages,
} from '../../../src/payment/links/credits-messages.js'
import { below } from '../../property.js'

const name = (at: number): string => Buffer.alloc(32, at).toString('base64url')
const [alice, bob, carol, dave] = [name(1), name(2), name(3), name(4)] as [string, string, string, string]

interface Rig {
  readonly ledger: EmbeddedLedger
  readonly accounts: Accounts
  readonly credits: CreditsPort
  turn(ms: number): void
  give(address: string, winc: bigint): Promise<void>
  has(address: string): Promise<readonly string[]>
  share(id: string, from: string, to: string, winc: string, seconds?: number): Promise<ApprovalView>
}

/** One byte costs one winc. `other`: the credits of another payment service with the same ledger. */
function rig(
  folder: string,
  price: (bytes: number) => Promise<bigint> = async (bytes) => BigInt(bytes),
): Rig & { readonly other: CreditsPort } {
  let nowMs = 1_000_000
  const clock: Clock = { ...systemClock, now: () => nowMs, monotonic: () => nowMs }
  const ledger = new EmbeddedLedger({ path: folder, clock })
  const wallets = new Wallets(ledger)
  const approvals = new Approvals(ledger, wallets, clock.now, clock.now)
  const accounts = new Accounts(ledger, wallets, approvals, clock.now)
  const own = new LedgerCredits({ ledger, wallets, approvals, price })
  // Through messages, as the upload service has it.
  const credits = creditsByMessages(
    localAddress<CreditsRequest, CreditsReply>(answersCredits(own, undefined)),
  )
  let given = 0
  return {
    ledger,
    accounts,
    credits,
    other: new LedgerCredits({ ledger, wallets, approvals, price: async (bytes) => BigInt(bytes) }),
    turn: (ms) => {
      nowMs += ms
    },
    async give(address, winc) {
      given += 1
      const facts = { reason: 'payment', reference: `r${given}`, about: {} }
      await accounts.credit({ id: `give:${given}`, address, winc, source: 'source:test', ...facts })
    },
    async has(address) {
      const balance = await accounts.balance(address)
      return balance === undefined ? [] : [balance.winc, balance.controlledWinc, balance.effectiveBalance]
    },
    async share(itemId, payingAddress, approvedAddress, winc, seconds) {
      const expires = seconds === undefined ? {} : { expiresInSeconds: seconds }
      const made = await credits.approve({ itemId, payingAddress, approvedAddress, winc, ...expires })
      if (isRefusal(made) || isDenied(made)) throw new Error(JSON.stringify(made))
      return made
    },
  }
}

const by = (address: string, ...paidBy: string[]) => ({ address, signatureType: 1, paidBy })

t.test('reserve, settle and refund, each at most once', async (t) => {
  const { credits, give, has, ledger } = rig(join(t.testdir(), 'l'))
  t.match(await credits.reserve({ itemId: 'i0', bytes: 1, ...by(alice) }), {
    paid: false,
    isUnknownWallet: true,
  })
  t.strictSame(await has(alice), [])
  await give(alice, 100n)
  t.match(await credits.check({ bytes: 100, ...by(alice) }), { isEnough: true, winc: '100', balance: '100' })
  t.match(await credits.check({ bytes: 101, ...by(alice) }), { isEnough: false, winc: '101' })
  t.match(await credits.reserve({ itemId: 'i1', bytes: 101, ...by(alice) }), {
    paid: false,
    isUnknownWallet: false,
  })
  for (let again = 0; again < 3; again += 1) {
    t.strictSame(await credits.reserve({ itemId: 'i1', bytes: 60, ...by(alice) }), { paid: true, winc: '60' })
    t.strictSame(await has(alice), ['40', '40', '40'])
  }
  t.match(await credits.reserve({ itemId: 'i2', bytes: 41, ...by(alice) }), { paid: false })
  for (let again = 0; again < 3; again += 1) t.strictSame(await credits.settle('i1'), { winc: '60' })
  t.strictSame(
    await credits.reserve({ itemId: 'i1', bytes: 60, ...by(alice) }),
    { paid: true, winc: '60' },
    'paid already',
  )
  t.strictSame(await has(alice), ['40', '40', '40'])
  t.strictSame(await credits.refund('i1'), { winc: '60' }, 'also what was spent')
  t.strictSame(await credits.refund('i1'), { winc: '60' }, 'said again, not done again')
  t.strictSame(await credits.settle('i1'), { winc: '0' })
  t.strictSame(await has(alice), ['100', '100', '100'])
  t.strictSame(
    await credits.reserve({ itemId: 'i1', bytes: 70, ...by(alice) }),
    { paid: true, winc: '70' },
    'and comes again',
  )
  t.strictSame(await credits.refund('i1'), { winc: '70' })
  t.strictSame(await credits.settle('i1'), { winc: '0' })
  t.strictSame(await credits.settle('never seen'), { winc: '0' })
  t.strictSame(await credits.refund('never seen'), { winc: '0' })
  t.strictSame(await has(alice), ['100', '100', '100'])
  t.strictSame((await ledger.check(approvalFaults)).faults, [])
  await ledger.close()
})

t.test('a hundred at once for one item and for many: each is charged once', async (t) => {
  const { credits, give, has, ledger } = rig(join(t.testdir(), 'l'))
  await give(alice, 1000n)
  const one = Array.from({ length: 100 }, () => credits.reserve({ itemId: 'same', bytes: 7, ...by(alice) }))
  for (const reserved of await Promise.all(one)) t.strictSame(reserved, { paid: true, winc: '7' })
  t.strictSame(await has(alice), ['993', '993', '993'])
  const many = Array.from({ length: 100 }, (_, at) =>
    credits.reserve({ itemId: `i${at}`, bytes: 20, ...by(alice) }),
  )
  const paid = (await Promise.all(many)).filter((one) => 'paid' in one && one.paid)
  t.equal(paid.length, 49)
  t.strictSame(await has(alice), ['13', '13', '13'])
  const refunds = Array.from({ length: 10 }, () => credits.refund('same'))
  for (const back of await Promise.all(refunds)) t.strictSame(back, { winc: '7' })
  t.strictSame(await has(alice), ['20', '20', '20'])
  t.strictSame((await ledger.check(approvalFaults)).faults, [])
  await ledger.close()
})

t.test('approvals pay in the order of the list, the earliest to end first, then the signer', async (t) => {
  const { credits, give, has, share, ledger, accounts } = rig(join(t.testdir(), 'l'))
  await Promise.all([give(alice, 100n), give(bob, 100n), give(carol, 50n)])
  await share('a-ever', alice, carol, '10')
  await share('a-late', alice, carol, '10', 100)
  await share('a-soon', alice, carol, '10', 50)
  await share('b', bob, carol, '20')
  t.strictSame(await has(alice), ['70', '100', '70'])
  t.strictSame(await has(carol), ['50', '50', '100'])
  const { receivedApprovals } = await accounts.approvalsOf(carol)
  t.strictSame(
    receivedApprovals.map((one) => one.approvalDataItemId),
    ['b', 'a-soon', 'a-late', 'a-ever'],
    'the largest first, of equal ones the earliest to end',
  )
  const order = { itemId: 'i1', bytes: 45, ...by(carol, bob, alice) }
  t.strictSame(await credits.reserve(order), { paid: true, winc: '45' })
  const used = async (): Promise<Record<string, string>> => {
    const ids = ['b', 'a-soon', 'a-late', 'a-ever']
    const found = await Promise.all(ids.map((id) => accounts.approvals.find(id)))
    const views = await Promise.all(
      found.map((one) => (one === undefined ? undefined : accounts.approvals.view(one))),
    )
    return Object.fromEntries(views.map((one) => [one?.approvalDataItemId ?? '', one?.usedWincAmount ?? '']))
  }
  t.strictSame(await used(), { b: '20', 'a-soon': '10', 'a-late': '10', 'a-ever': '5' })
  t.strictSame(await has(carol), ['50', '50', '55'])
  t.match(await credits.reserve({ itemId: 'i2', bytes: 56, ...by(carol, bob, alice) }), { paid: false })
  const listOnly = { itemId: 'i2', bytes: 6, ...by(carol, alice), directive: 'list-only' } as const
  t.match(await credits.reserve(listOnly), { paid: false, winc: '6' })
  t.strictSame(await credits.reserve({ itemId: 'i2', bytes: 55, ...by(carol, alice) }), {
    paid: true,
    winc: '55',
  })
  t.strictSame(await has(carol), ['0', '0', '0'])
  t.strictSame(await credits.refund('i1'), { winc: '45' })
  t.strictSame(
    await used(),
    { b: '0', 'a-soon': '0', 'a-late': '0', 'a-ever': '5' },
    'back where it came from',
  )
  t.strictSame(await has(carol), ['0', '0', '45'])
  t.strictSame((await ledger.check(approvalFaults)).faults, [])
  await ledger.close()
})

t.test('what a wallet has shared is not spent while the wallet owes', async (t) => {
  const { credits, ledger, give, share } = rig(t.testdir())
  t.teardown(() => ledger.close())
  await give(alice, 1000n)
  await share('a1', alice, bob, '1000')
  const takenBack = {
    id: 'dispute',
    kind: 'posted',
    debit: `wallet:${alice}`,
    credit: 'source:test',
  } as const
  const facts = { reason: 'payment-reversed', reference: 'r', about: {} }
  const commit = { transfers: [{ ...takenBack, amount: 1000n, ...facts, mayOverdraw: true as const }] }
  t.equal(isRejected(await ledger.commit(commit)), false)
  const order = { address: bob, signatureType: 1, paidBy: [alice], bytes: 10 }
  t.match(await credits.check(order), { isEnough: false })
  t.match(await credits.reserve({ ...order, itemId: 'i1' }), { paid: false })
  await give(alice, 1000n)
  t.match(await credits.reserve({ ...order, itemId: 'i1' }), { paid: true })
})

t.test('many small approvals keep no large one from paying', async (t) => {
  const { credits, give, share, has, ledger } = rig(join(t.testdir(), 'l'))
  await give(alice, 2000n)
  await give(bob, 2000n)
  for (let at = 0; at < 120; at += 1) await share(`small-${at}`, alice, carol, '1', 1000 + at)
  await share('large', alice, carol, '1000')
  await share('of bob', bob, carol, '50')
  const order = { ...by(carol, alice), directive: 'list-only' } as const
  t.match(
    await credits.reserve({ itemId: 'i1', bytes: 100, ...order }),
    { paid: true },
    'a hundred small ones',
  )
  t.match(await credits.reserve({ itemId: 'i2', bytes: 900, ...order }), { paid: true }, 'the large one')
  t.match(await credits.check({ bytes: 120, ...order }), { isEnough: true, balance: '120' })
  // Of two wallets that are named, the second has its share of the hundred.
  const both = { ...order, paidBy: [alice, bob] }
  t.match(await credits.reserve({ itemId: 'i3', bytes: 170, ...both }), { paid: true })
  t.strictSame(await has(carol), [])
  t.strictSame((await ledger.check(approvalFaults)).faults, [])
  await ledger.close()
})

t.test(
  'an approval ends at its second, and gives back what is left, also what is refunded later',
  async (t) => {
    const { credits, give, has, share, ledger, turn } = rig(join(t.testdir(), 'l'))
    await give(alice, 100n)
    const made = await share('a', alice, bob, '80', 60)
    t.equal(made.expirationDate, new Date(1_060_000).toISOString())
    t.strictSame(await credits.reserve({ itemId: 'i1', bytes: 30, ...by(bob, alice) }), {
      paid: true,
      winc: '30',
    })
    t.strictSame(await credits.reserve({ itemId: 'i2', bytes: 10, ...by(bob, alice) }), {
      paid: true,
      winc: '10',
    })
    await credits.settle('i2')
    turn(59_999)
    t.strictSame(await has(bob), ['0', '0', '40'])
    turn(1)
    t.match(await credits.reserve({ itemId: 'i3', bytes: 1, ...by(bob, alice) }), { paid: false })
    t.strictSame(await has(bob), [])
    t.strictSame(await has(alice), ['60', '60', '60'])
    t.strictSame(await credits.refund('i1'), { winc: '30' })
    t.strictSame(await credits.refund('i2'), { winc: '10' })
    t.strictSame(await has(alice), ['100', '100', '100'])
    t.strictSame((await ledger.check(approvalFaults)).faults, [])
    await ledger.close()
  },
)

t.test('sharing and revoking: the words that clients read', async (t) => {
  const { credits, give, has, share, ledger } = rig(join(t.testdir(), 'l'))
  await give(alice, 100n)
  const order = { itemId: 'a', payingAddress: alice, approvedAddress: bob, winc: '60' }
  const text = async (change: object): Promise<string> => {
    const outcome = await credits.approve({ ...order, ...change })
    return isDenied(outcome) ? `${outcome.status} ${outcome.text}` : ''
  }
  t.equal(await text({ approvedAddress: 'nobody' }), `400 Invalid approved address`)
  t.equal(await text({ approvedAddress: alice }), `400 Invalid approved address`)
  for (const winc of ['0', '-1', '1.5', 'x', '']) t.equal(await text({ winc }), `400 Invalid winc amount`)
  t.equal(await text({ winc: '101' }), `402 Insufficient balance for '${alice}'`)
  t.match(await share('a', alice, bob, '60'), {
    approvedWincAmount: '60',
    usedWincAmount: '0',
    payingAddress: alice,
  })
  t.match(await share('a', alice, bob, '60'), { approvedWincAmount: '60' }, 'the same item again')
  t.strictSame(await has(alice), ['40', '100', '40'])
  t.equal(
    await text({ itemId: 'b', payingAddress: bob, approvedAddress: carol, winc: '1' }),
    `402 Insufficient balance for '${bob}'`,
    'what was shared cannot be shared on',
  )
  const revoke = { itemId: 'r', payingAddress: alice, approvedAddress: bob }
  t.match(await credits.revoke(revoke), [
    { approvalDataItemId: 'a', inactiveReason: 'revoked', revokeDataItemId: 'r', usedWincAmount: '0' },
  ])
  t.match(await credits.revoke(revoke), [{ approvalDataItemId: 'a' }], 'the same item again')
  t.strictSame(await has(alice), ['100', '100', '100'])
  const none = await credits.revoke({ ...revoke, itemId: 'r2', approvedAddress: dave })
  t.equal(
    isDenied(none) ? none.text : '',
    `No valid approvals found for approved address '${dave}' and paying address '${alice}'`,
  )
  t.strictSame((await ledger.check(approvalFaults)).faults, [])
  await ledger.close()
})

t.test('one key has one wallet, whatever address it was paid by', async (t) => {
  const { credits, give, has, ledger } = rig(join(t.testdir(), 'l'))
  const wallet = '0xFCAd0B19bB29D4674531d6f115237E16AfCE377c'
  await give(wallet.toLowerCase(), 5n)
  t.strictSame(await has(wallet), ['5', '5', '5'], 'letter case is no other wallet')
  await give(dave, 7n)
  const order = { itemId: 'i', bytes: 12, address: wallet, alias: dave, signatureType: 3, paidBy: [] }
  t.strictSame(await credits.reserve(order), { paid: true, winc: '12' })
  await give(dave, 3n)
  t.strictSame(await has(wallet), ['3', '3', '3'])
  t.strictSame(await has(dave), ['3', '3', '3'])
  t.strictSame((await ledger.check(approvalFaults)).faults, [])
  await ledger.close()
})

t.test(
  'an order that was withdrawn holds nothing back, by whichever service and however late it comes',
  async (t) => {
    let go: () => void = () => undefined
    const slow = new Promise<void>((resolve) => {
      go = resolve
    })
    const price = async (bytes: number): Promise<bigint> => slow.then(() => BigInt(bytes))
    const { credits, other, give, has, ledger, share } = rig(t.testdir(), price)
    t.teardown(() => ledger.close())
    await give(alice, 100n)
    await share('a1', alice, bob, '10')
    const order = { itemId: 'i1', bytes: 30, ...by(bob, alice), ticket: 'first' }
    await give(bob, 50n)
    const late = credits.reserve(order)
    t.strictSame(await other.withdraw({ itemId: 'i1', ticket: 'first' }), { winc: '0' })
    go()
    t.match(await late, { refused: 'late' })
    t.match(await other.reserve(order), { refused: 'late' }, 'nor does it when it is delivered once more')
    t.strictSame(await has(bob), ['50', '50', '60'])
    const second = { ...order, ticket: 'second' }
    t.strictSame(await other.reserve(second), { paid: true, winc: '30' })
    t.match(await credits.reserve(order), { refused: 'late' })
    t.strictSame(await credits.withdraw({ itemId: 'i1', ticket: 'third' }), { winc: '0' }, 'another order')
    t.strictSame(await has(bob), ['30', '30', '30'], 'what it holds back stays')
    for (const one of [credits, other])
      t.strictSame(await one.withdraw({ itemId: 'i1', ticket: 'second' }), { winc: '30' })
    t.strictSame(await has(bob), ['50', '50', '60'])
    t.match(await credits.reserve(second), { refused: 'late' })
    t.strictSame(await credits.reserve({ ...order, ticket: 'fourth' }), { paid: true, winc: '30' })
    t.strictSame(await credits.settle('i1'), { winc: '30' })
    t.strictSame((await ledger.check(approvalFaults)).faults, [])
  },
)

t.test('an order takes back what nobody by name holds back, and nothing that was spent', async (t) => {
  const { credits, give, has, ledger } = rig(t.testdir())
  t.teardown(() => ledger.close())
  await give(alice, 100n)
  for (const itemId of ['held', 'spent'])
    t.match(await credits.reserve({ itemId, bytes: 20, ...by(alice) }), { paid: true })
  await credits.settle('spent')
  for (const itemId of ['held', 'spent']) {
    const order = { itemId, bytes: 20, ...by(alice), ticket: 'other' }
    t.strictSame(await credits.reserve(order), { paid: true, winc: '20' }, 'paid for already')
    t.strictSame(await credits.withdraw(order), { winc: itemId === 'held' ? '20' : '0' })
  }
  t.strictSame(await has(alice), ['80', '80', '80'])
  t.equal((await ledger.account('revenue'))?.creditsPosted, 20n)
})

t.test(
  'what several orders count on is given back with the last of them, and never once it is spent',
  async (t) => {
    const { credits, other, give, has, ledger } = rig(t.testdir())
    t.teardown(() => ledger.close())
    await give(alice, 100n)
    const order = (itemId: string, ticket: string) => ({ itemId, bytes: 20, ...by(alice), ticket })
    const paid = { paid: true, winc: '20' }
    const [nothing, all] = [{ winc: '0' }, { winc: '20' }]
    for (const itemId of ['given up', 'kept before', 'kept after', 'back'])
      for (const [service, ticket] of [
        [credits, 'first'],
        [other, 'second'],
      ] as const)
        t.strictSame(await service.reserve(order(itemId, ticket)), paid)
    t.strictSame(await credits.withdraw(order('given up', 'first')), nothing)
    t.strictSame(await credits.withdraw(order('given up', 'first')), nothing, 'said again')
    t.strictSame(await other.withdraw(order('given up', 'second')), all)
    t.strictSame(await other.withdraw(order('given up', 'second')), all, 'said again')
    t.strictSame(await other.settle('kept before'), all)
    t.strictSame(await credits.withdraw(order('kept before', 'first')), nothing)
    t.strictSame(await credits.withdraw(order('kept before', 'first')), nothing, 'said again')
    t.strictSame(await credits.withdraw(order('kept after', 'first')), nothing)
    t.strictSame(await other.settle('kept after'), all)
    t.strictSame(await other.withdraw(order('back', 'second')), nothing)
    t.strictSame(await credits.withdraw(order('back', 'first')), all)
    t.strictSame(await has(alice), ['60', '60', '60'])
    t.equal((await ledger.account('revenue'))?.creditsPosted, 40n)
    t.strictSame((await ledger.check(approvalFaults)).faults, [])
  },
)

t.test('whatever comes first of an order and its withdrawal, nothing stays held back', async (t) => {
  const { credits, other, give, has, ledger } = rig(t.testdir())
  t.teardown(() => ledger.close())
  await give(alice, 1000n)
  const services = [credits, other]
  for (let round = 0; round < 100; round += 1) {
    const itemId = `i${below(5)}`
    const ticket = `t${round}`
    const order = { itemId, bytes: 1 + below(40), ...by(alice), ticket }
    const one = (): CreditsPort => services[below(2)] ?? credits
    const calls: (() => Promise<unknown>)[] = [() => one().reserve(order), () => one().reserve(order)]
    calls.splice(below(3), 0, () => one().withdraw({ itemId, ticket }))
    await Promise.all(calls.map((call) => call()))
    t.equal((await has(alice))[0], '1000')
  }
  t.strictSame((await ledger.check(approvalFaults)).faults, [])
})

t.test('an item that revoked once ends no younger approvals, wherever it is posted again', async (t) => {
  const { credits, other, give, has, ledger, share, turn } = rig(t.testdir())
  t.teardown(() => ledger.close())
  await give(alice, 100n)
  await share('a1', alice, bob, '10')
  const order = { itemId: 'r1', payingAddress: alice, approvedAddress: bob }
  turn(1000)
  t.match(await credits.revoke(order), [{ approvalDataItemId: 'a1' }])
  turn(1000)
  await share('a2', alice, bob, '20')
  t.match(await other.revoke(order), [{ approvalDataItemId: 'a1' }], 'the answer of the first time')
  t.strictSame(await has(bob), ['0', '0', '20'])
  t.match(await credits.revoke({ ...order, itemId: 'r2' }), [{ approvalDataItemId: 'a2' }])
  t.strictSame((await ledger.check(approvalFaults)).faults, [])
})
