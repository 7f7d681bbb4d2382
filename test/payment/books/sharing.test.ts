/** Credits that two wallets share, spend and take back in any order, against a plain model; and killed in between. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import t, { type Test } from 'tap'
import { type Clock, systemClock } from '../../../src/actor/clock.js'
import { isRefusal } from '../../../src/format/refusal.js'
import { EmbeddedLedger } from '../../../src/ledger/embedded.js'
import { balanceOf } from '../../../src/ledger/ledger-account.js'
import type { MoneyLedger } from '../../../src/ledger/ledger-port.js'
import { PostgresLedger } from '../../../src/ledger/postgres.js'
import { Accounts, type SharesPlace } from '../../../src/payment/books/accounts.js'
import { approvalFaults } from '../../../src/payment/books/approval-faults.js'
import { Approvals } from '../../../src/payment/books/approvals.js'
import { LedgerCredits } from '../../../src/payment/books/credits.js'
import { accountOf, Wallets } from '../../../src/payment/books/wallets.js'
import { type ApprovalView, isDenied } from '../../../src/payment/credits-port.js'
import { postgresFolder, startPostgres } from '../../engines/postgres-server.js'
import { below } from '../../property.js'
import { sharers } from './sharers.js'

const [payer = '', friend = ''] = sharers
const pick = <T>(list: readonly T[]): T | undefined => list[below(list.length)]
const given = 10n ** 9n
/** SHARING_STEPS and SHARING_KILLS ask for more. */
const steps = Number(process.env.SHARING_STEPS ?? 600)
const kills = Number(process.env.SHARING_KILLS ?? 2)

interface Shared {
  readonly id: string
  readonly winc: bigint
  readonly createdMs: number
  readonly untilMs: number
  left: bigint
  isEnded: boolean
}

/** What must be there, kept as simply as can be. */
class Model {
  readonly shared = new Map<string, Shared>()
  readonly items = new Map<string, readonly { readonly of: Shared; readonly winc: bigint }[]>()
  wallet = given

  open(nowMs: number): Shared[] {
    return [...this.shared.values()]
      .filter(({ left, isEnded, untilMs }) => left > 0n && !isEnded && untilMs > nowMs)
      .sort((one, other) =>
        one.untilMs !== other.untilMs
          ? one.untilMs - other.untilMs
          : one.createdMs - other.createdMs || (one.id < other.id ? -1 : 1),
      )
  }

  end(one: Shared): void {
    this.wallet += one.left
    one.left = 0n
    one.isEnded = true
  }

  /** Who pays so much: the first hundred, or the hundred largest; undefined: it is not enough. */
  plan(winc: bigint, nowMs: number): readonly { readonly of: Shared; readonly winc: bigint }[] | undefined {
    const sum = (list: readonly Shared[]): bigint => list.reduce((all, { left }) => all + left, 0n)
    const open = this.open(nowMs)
    const byAmount = [...open].sort((one, other) =>
      one.winc === other.winc ? 0 : one.winc > other.winc ? -1 : 1,
    )
    const first = open.slice(0, 100)
    const chosen = sum(first) >= winc || open.length <= 100 ? first : byAmount.slice(0, 100)
    if (sum(chosen) < winc) return undefined
    let missing = winc
    return chosen.flatMap((of) => {
      let part = of.left
      if (part > missing) part = missing
      missing -= part
      return part > 0n ? [{ of, winc: part }] : []
    })
  }
}

async function all(
  accounts: Accounts,
  address: string,
): Promise<{ given: ApprovalView[]; received: ApprovalView[] }> {
  const found = { given: [] as ApprovalView[], received: [] as ApprovalView[] }
  for (let from: SharesPlace | undefined = { given: '', received: '' }; from !== undefined; ) {
    const page = await accounts.approvalsOf(address, from, 7)
    found.given.push(...page.givenApprovals)
    found.received.push(...page.receivedApprovals)
    from = page.next
  }
  return found
}

async function modelled(t: Test, steps: number, open: (clock: Clock) => Promise<MoneyLedger>): Promise<void> {
  let nowMs = 1_000_000
  const ledger = await open({ ...systemClock, now: () => nowMs })
  const wallets = new Wallets(ledger)
  const approvals = new Approvals(
    ledger,
    wallets,
    () => nowMs,
    () => nowMs,
  )
  const accounts = new Accounts(ledger, wallets, approvals, () => nowMs)
  const credits = new LedgerCredits({ ledger, wallets, approvals, price: async (bytes) => BigInt(bytes) })
  const model = new Model()
  const about = { source: 'source:t', reason: 'payment', reference: 'r', about: {} }
  await accounts.credit({ id: 'give', address: payer, winc: given, ...about })
  const pair = { payingAddress: payer, approvedAddress: friend }

  const share = async (id: string): Promise<void> => {
    const winc = BigInt(1 + below(40))
    const seconds = below(3) === 0 ? 1 + below(50) : undefined
    const expires = seconds === undefined ? {} : { expiresInSeconds: seconds }
    await credits.approve({ itemId: id, ...pair, winc: String(winc), ...expires })
    const untilMs = seconds === undefined ? Number.POSITIVE_INFINITY : nowMs + seconds * 1000
    model.shared.set(id, { id, winc, createdMs: nowMs, untilMs, left: winc, isEnded: false })
    model.wallet -= winc
  }
  const spend = async (id: string): Promise<void> => {
    const bytes = below(6) === 0 ? 1 + below(3000) : 1 + below(90)
    const order = {
      itemId: id,
      address: friend,
      signatureType: 1,
      paidBy: [payer],
      directive: 'list-only',
    } as const
    const plan = model.plan(BigInt(bytes), nowMs)
    const reserved = await credits.reserve({ ...order, bytes })
    t.match(reserved, { paid: plan !== undefined }, `item ${id} of ${bytes}`)
    for (const { of, winc } of plan ?? []) of.left -= winc
    if (plan !== undefined) model.items.set(id, plan)
  }
  const refund = async (id: string): Promise<void> => {
    await credits.refund(id)
    for (const { of, winc } of model.items.get(id) ?? []) {
      if (of.isEnded) model.wallet += winc
      else of.left += winc
    }
    model.items.delete(id)
  }
  const revoke = async (id: string): Promise<void> => {
    const open = model.open(nowMs)
    const revoked = await credits.revoke({ itemId: id, ...pair })
    if (isRefusal(revoked)) throw new Error(revoked.message)
    t.equal(isDenied(revoked) ? 0 : revoked.length, open.length, 'all of the pair')
    for (const one of open) model.end(one)
  }
  for (let step = 0; step < steps; step += 1) {
    const item = pick([...model.items.keys()])
    const chance = below(100)
    // Many at first, so that more than one item may use are open.
    if (step < 150 || chance < 55) await share(`a${step}`)
    else if (chance < 80) await spend(`i${step}`)
    else if (chance < 88 && item !== undefined) await refund(item)
    else if (chance < 95 && item !== undefined) await credits.settle(item)
    else if (chance < 99) nowMs += below(4000)
    else if (below(4) === 0) await revoke(`r${step}`)
    await approvals.expire()
    // Also what comes back to an approval that is over by now.
    for (const one of model.shared.values())
      if (one.untilMs <= nowMs && one.left > 0n && !one.isEnded) model.end(one)
    if (step % 50 !== 0 && step !== steps - 1) continue
    const left = model.open(nowMs)
    const sum = String(left.reduce((all, one) => all + one.left, 0n))
    t.strictSame((await ledger.check(approvalFaults)).faults, [])
    const ids = (list: readonly { readonly id: string }[]): string[] => list.map(({ id }) => id).sort()
    const views = { payer: await all(accounts, payer), friend: await all(accounts, friend) }
    t.strictSame(views.payer.given.map((one) => one.approvalDataItemId).sort(), ids(left), 'given')
    t.strictSame(views.friend.received.map((one) => one.approvalDataItemId).sort(), ids(left), 'received')
    t.match(await accounts.balance(payer), {
      winc: String(model.wallet),
      controlledWinc: String(model.wallet + BigInt(sum)),
    })
    t.equal((await accounts.balance(friend))?.effectiveBalance ?? '0', sum)
    t.equal(String(await approvals.pairSum(payer, friend)), sum)
  }
  await ledger.close()
}

const child = fileURLToPath(new URL('sharing-child.js', import.meta.url))

/** `place`: where the child finds its ledger; `open` opens the same here. */
async function killed(
  t: Test,
  kills: number,
  place: string,
  open: () => Promise<MoneyLedger>,
): Promise<void> {
  const first = await open()
  const gifts = sharers.map((address, at) => ({
    id: `give:${at}`,
    kind: 'posted' as const,
    debit: 'source:t',
    credit: accountOf(address),
    amount: given,
    reason: 'payment',
    reference: 'r',
  }))
  await first.commit({ transfers: gifts })
  await first.close()
  for (let round = 0; round < kills; round += 1) {
    const enough = 1 + below(200)
    const running = spawn(process.execPath, [...process.execArgv, child, place, String(round)], {
      stdio: ['ignore', 'pipe', 'inherit'],
    })
    const gone = once(running, 'close')
    let rounds = 0
    running.stdout.on('data', (bytes: Buffer) => {
      rounds += bytes.toString().split('\n').length - 1
      if (rounds >= enough) running.kill('SIGKILL')
    })
    const [code, signal] = (await gone) as [number | null, string | null]
    t.equal(signal, 'SIGKILL', `it ran until it was killed (${code})`)
    const ledger = await open()
    t.strictSame((await ledger.check(approvalFaults)).faults, [], `after ${rounds} rounds`)
    let sum = 0n
    for (const start of ['wallet:', 'approval:', 'revenue'])
      for (const account of await ledger.accounts(start, '', 1_000_000)) sum += balanceOf(account)
    t.equal(sum, given * BigInt(sharers.length), 'nothing is lost, nothing is made')
    await ledger.close()
  }
}

t.test('in LMDB, against a model', (t) => {
  const path = join(t.testdir(), 'ledger')
  return modelled(t, steps, async (clock) => new EmbeddedLedger({ path, clock, deferredMax: 300 }))
})

t.test(`in LMDB, killed ${kills} times`, (t) => {
  const path = join(t.testdir(), 'ledger')
  return killed(t, kills, path, async () => new EmbeddedLedger({ path, clock: systemClock }))
})

const skip = postgresFolder === undefined ? 'no PostgreSQL here' : false

t.test('both in PostgreSQL', { skip }, async (t) => {
  const server = await startPostgres(true)
  t.teardown(() => server.stop())
  const url = await server.database('sharing')
  await modelled(t, Math.ceil(steps / 6), (clock) => PostgresLedger.open({ url, clock }))
  const other = await server.database('killed')
  await killed(t, Math.ceil(kills / 2), other, () => PostgresLedger.open({ url: other, clock: systemClock }))
})
