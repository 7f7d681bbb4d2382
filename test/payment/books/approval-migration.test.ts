/** Lists of shared credits as earlier versions have kept them: what these lists have hidden is found at the start. */
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { type Clock, systemClock } from '../../../src/actor/clock.js'
import { EmbeddedLedger } from '../../../src/ledger/embedded.js'
import {
  type CommitOrder,
  isRejected,
  type MoneyLedger,
  type RecordChange,
} from '../../../src/ledger/ledger-port.js'
import { PostgresLedger } from '../../../src/ledger/postgres.js'
import { Accounts } from '../../../src/payment/books/accounts.js'
import { approvalFaults } from '../../../src/payment/books/approval-faults.js'
import type { Approval } from '../../../src/payment/books/approval-index.js'
import { moveApprovals } from '../../../src/payment/books/approval-migration.js'
import { Approvals } from '../../../src/payment/books/approvals.js'
import { LedgerCredits } from '../../../src/payment/books/credits.js'
import { accountOf, Wallets } from '../../../src/payment/books/wallets.js'
import { postgresFolder, startPostgres } from '../../engines/postgres-server.js'

const [alice, bob, carol] = [1, 2, 3].map((at) => Buffer.alloc(32, at).toString('base64url')) as [
  string,
  string,
  string,
]
const start = 1_000_000_000
const clock: Clock = { ...systemClock, now: () => start }
const silent = { info: () => undefined }
const used = Number(process.env.OLD_APPROVALS ?? 210)

const move = (
  id: string,
  debit: string,
  credit: string,
  amount: bigint,
): CommitOrder['transfers'][number] => ({
  id,
  kind: 'posted',
  debit,
  credit,
  amount,
  reason: 'test',
  reference: id,
})

/** As an approval was opened. `spent`: so much of it. */
function opened(approval: Approval, spent: bigint): CommitOrder {
  const { id, payer, approved, winc, expiresMs, ended } = approval
  const lists: RecordChange[] = [
    { kind: 'approval-given', key: `${payer}|${approved}|${id}`, value: '1' },
    { kind: 'approval-received', key: `${approved}|${payer}|${id}`, value: '1' },
    ...(expiresMs === 0
      ? []
      : [{ kind: 'approval-due', key: `${String(expiresMs).padStart(16, '0')}|${id}`, value: '1' }]),
  ]
  const account = `approval:${id}`
  const left = BigInt(winc) - spent
  return {
    transfers: [
      move(account, accountOf(payer), account, BigInt(winc)),
      ...(spent === 0n ? [] : [move(`spent:${id}`, account, 'revenue', spent)]),
      ...(ended === undefined || left === 0n ? [] : [move(`end:${id}`, account, accountOf(payer), left)]),
    ],
    records: [
      { kind: 'approval', key: id, value: JSON.stringify(approval) },
      ...(ended === undefined ? lists : []),
    ],
  }
}

const name = (what: string, at: number): string => `${what}-${String(at).padStart(5, '0')}`

/** Two wallets after `count` used approvals, and ten new ones that sort behind them; a revocation that has missed some. */
async function written(ledger: MoneyLedger, count: number): Promise<void> {
  await ledger.commit({ transfers: [move('top', 'source:test', accountOf(alice), 10n ** 12n)] })
  const pair = { payer: alice, approved: bob, createdMs: start - 7_200_000, expiresMs: 0 }
  const orders: CommitOrder[] = []
  for (let at = 0; at < count; at += 1) orders.push(opened({ ...pair, id: name('a', at), winc: '1' }, 1n))
  for (let at = 0; at < 10; at += 1)
    orders.push(opened({ ...pair, id: name('new', at), winc: '20000000' }, at === 0 ? 5n : 0n))
  orders.push(opened({ ...pair, id: 'over', winc: '7', expiresMs: start - 1000 }, 0n))
  const other = { ...pair, approved: carol, winc: '100' }
  const ended = { why: 'revoked', atMs: start - 60_000, used: '0', by: 'revoking' } as const
  orders.push(opened({ ...other, id: 'seen', ended }, 0n))
  orders.push(opened({ ...other, id: 'missed', createdMs: start - 3_600_000 }, 40n))
  orders.push(opened({ ...other, id: 'younger', createdMs: start - 1000 }, 0n))
  for (const outcome of await Promise.all(orders.map((order) => ledger.commit(order))))
    if (isRejected(outcome)) throw new Error(JSON.stringify(outcome))
}

/** What must be there, however often the start was tried. */
async function right(t: Test, ledger: MoneyLedger): Promise<void> {
  t.strictSame((await ledger.check(approvalFaults)).faults, [])
  for (const kind of ['approval-given', 'approval-received', 'approval-due'])
    t.strictSame(await ledger.records(kind, '', '', 1), [], `nothing is left of ${kind}`)
  const wallets = new Wallets(ledger)
  const approvals = new Approvals(ledger, wallets, clock.now, clock.now)
  const accounts = new Accounts(ledger, wallets, approvals, clock.now)
  const missed = await approvals.find('missed')
  t.match(missed?.ended, { why: 'revoked', by: 'revoking', used: '40' })
  const given = 10n * 20_000_000n - 5n
  t.match(await accounts.balance(bob), { effectiveBalance: String(given) })
  const { winc = '', controlledWinc = '' } = (await accounts.balance(alice)) ?? {}
  t.equal(BigInt(controlledWinc) - BigInt(winc), given + 100n, 'what is over and what was meant is back')
  const { receivedApprovals } = await accounts.approvalsOf(bob)
  t.strictSame(
    receivedApprovals.map((one) => one.approvalDataItemId).sort(),
    Array.from({ length: 10 }, (_, at) => name('new', at)),
  )
}

async function migrated(t: Test, open: (place: string) => Promise<MoneyLedger>): Promise<void> {
  await t.test(`behind ${used} used approvals ten are found`, async (t) => {
    const ledger = await open('many')
    await written(ledger, used)
    t.strictSame((await ledger.check(approvalFaults)).faults, [], 'nothing is compared before it is moved')
    const wallets = new Wallets(ledger)
    // Two that start at once.
    const both = await Promise.all([1, 2].map(() => moveApprovals(ledger, wallets, silent)))
    t.equal(
      both.reduce((sum, { moved }) => sum + moved, 0),
      12,
    )
    t.equal(
      both.reduce((sum, { givenBack }) => sum + givenBack, 0),
      1,
    )
    await right(t, ledger)
    t.strictSame(await moveApprovals(ledger, wallets, silent), { moved: 0, givenBack: 0 }, 'once')
    const approvals = new Approvals(ledger, wallets, clock.now, clock.now)
    const credits = new LedgerCredits({ ledger, wallets, approvals, price: async (bytes) => BigInt(bytes) })
    const order = {
      itemId: 'i',
      address: bob,
      signatureType: 1,
      paidBy: [alice],
      directive: 'list-only',
    } as const
    t.match(await credits.reserve({ ...order, bytes: 10 * 20_000_000 - 5 }), { paid: true })
    t.match(await credits.reserve({ ...order, itemId: 'j', bytes: 1 }), { paid: false })
    t.strictSame((await ledger.check(approvalFaults)).faults, [])
    await ledger.close()
  })

  await t.test('a start that ends after any of its commits', async (t) => {
    const ledger = await open('killed')
    await written(ledger, 3)
    let starts = 0
    for (let isOver = false; !isOver; starts += 1) {
      if (starts > 500) throw new Error('it never ends: each start is refused before its first commit')
      const most = 1 + (starts % 3)
      const begun: Promise<unknown>[] = []
      const dying: MoneyLedger = Object.assign(Object.create(ledger) as MoneyLedger, {
        commit: async (order: CommitOrder) => {
          if (begun.length === most) {
            await Promise.all(begun)
            throw new Error('killed')
          }
          const outcome = ledger.commit(order)
          begun.push(outcome)
          return outcome
        },
        record: ledger.record.bind(ledger),
        records: ledger.records.bind(ledger),
        account: ledger.account.bind(ledger),
      })
      isOver = await moveApprovals(dying, new Wallets(dying), silent).then(
        () => true,
        () => false,
      )
    }
    t.ok(starts > 5, `${starts} starts`)
    await right(t, ledger)
    await ledger.close()
  })
}

t.test('in LMDB', async (t) => {
  const root = t.testdir()
  await migrated(t, async (place) => new EmbeddedLedger({ path: join(root, place), clock }))
})

const skip = postgresFolder === undefined ? 'no PostgreSQL here' : false

t.test('in PostgreSQL', { skip }, async (t) => {
  const server = await startPostgres()
  t.teardown(() => server.stop())
  await migrated(t, async (place) => PostgresLedger.open({ url: await server.database(place), clock }))
})
