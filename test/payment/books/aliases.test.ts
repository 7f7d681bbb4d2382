/**
 * One wallet, several addresses of its key: whatever lies at any of them is found, spent and taken back, in whatever order they
 * are seen. A question about a wallet writes nothing, because what it says of its payer may be invented.
 */
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { type Clock, systemClock } from '../../../src/actor/clock.js'
import { isRefusal } from '../../../src/format/refusal.js'
import { EmbeddedLedger } from '../../../src/ledger/embedded.js'
import type { CommitOrder, MoneyLedger } from '../../../src/ledger/ledger-port.js'
import { PostgresLedger } from '../../../src/ledger/postgres.js'
import { Accounts } from '../../../src/payment/books/accounts.js'
import { moveAliases } from '../../../src/payment/books/alias-migration.js'
import { approvalFaults } from '../../../src/payment/books/approval-faults.js'
import { Approvals } from '../../../src/payment/books/approvals.js'
import { LedgerCredits } from '../../../src/payment/books/credits.js'
import { Wallets } from '../../../src/payment/books/wallets.js'
import { type CheckOrder, isDenied } from '../../../src/payment/credits-port.js'
import { postgresFolder, startPostgres } from '../../engines/postgres-server.js'
import { pick } from '../../property.js'

const hash = (at: number): string => {
  const bytes = Buffer.alloc(32, 9)
  bytes.writeUInt32BE(at)
  return bytes.toString('base64url')
}
const giver = hash(0)
const wallet = '0xFCAd0B19bB29D4674531d6f115237E16AfCE377c'
const aliases = [hash(1), hash(2), hash(3)]
const clock: Clock = { ...systemClock, now: () => 1_000_000_000 }
const facts = { source: 'source:test', reason: 'payment', reference: 'r', about: {} }

interface Books {
  readonly wallets: Wallets
  readonly approvals: Approvals
  readonly accounts: Accounts
  readonly credits: LedgerCredits
}

function booksOf(ledger: MoneyLedger): Books {
  const wallets = new Wallets(ledger)
  const approvals = new Approvals(ledger, wallets, clock.now, clock.now)
  const accounts = new Accounts(ledger, wallets, approvals, clock.now)
  const price = async (bytes: number): Promise<bigint> => BigInt(bytes)
  return { wallets, approvals, accounts, credits: new LedgerCredits({ ledger, wallets, approvals, price }) }
}

const payer = (alias?: string) => ({
  address: wallet,
  signatureType: 3,
  paidBy: [giver],
  ...(alias === undefined ? {} : { alias }),
})

/** Shares ten with each of these addresses, and pays each five. */
async function filled({ accounts, credits }: Books, addresses: readonly string[]): Promise<void> {
  await accounts.credit({ id: 'giver', address: giver, winc: 1000n, ...facts })
  for (const [at, address] of addresses.entries()) {
    await accounts.credit({ id: `own${at}`, address, winc: 5n, ...facts })
    const order = { itemId: `a${at}`, payingAddress: giver, approvedAddress: address, winc: '10' }
    const made = await credits.approve(order)
    if (isRefusal(made) || isDenied(made)) throw new Error(JSON.stringify(made))
  }
}

/** A ledger that counts its commits. */
function counted(ledger: MoneyLedger): { readonly ledger: MoneyLedger; readonly commits: () => number } {
  let count = 0
  const proxy = new Proxy(ledger, {
    get(of, key: keyof MoneyLedger) {
      const method = (of[key] as (...given: unknown[]) => unknown).bind(of)
      return (...given: unknown[]) => {
        if (key === 'commit') count += 1
        return method(...given)
      }
    },
  })
  return { ledger: proxy, commits: () => count }
}

/** What everybody may see and do with what was shared with these addresses. */
async function whole(t: Test, ledger: MoneyLedger, addresses: readonly string[]): Promise<void> {
  const { accounts, credits } = booksOf(ledger)
  const count = BigInt(addresses.length)
  for (const address of [wallet, wallet.toLowerCase(), ...addresses]) {
    const balance = await accounts.balance(address)
    t.match(balance, { winc: String(5n * count), effectiveBalance: String(15n * count) }, address)
    t.equal(balance?.receivedApprovals.length, addresses.length)
    t.equal((await accounts.payments(address, undefined, 50)).page.length, addresses.length)
  }
  t.match(await credits.check({ ...payer(), bytes: addresses.length * 15 }), { isEnough: true })
  const held = await credits.reserve({
    ...payer(),
    itemId: 'all',
    bytes: addresses.length * 10,
    directive: 'list-only',
  })
  t.match(held, { paid: true }, 'all of it can be spent')
  await credits.refund('all')
  const revoked = await credits.revoke({
    itemId: 'r',
    payingAddress: giver,
    approvedAddress: pick([wallet, ...addresses]),
  })
  t.equal(isRefusal(revoked) || isDenied(revoked) ? 0 : revoked.length, addresses.length)
  t.match(await accounts.balance(giver), { winc: '1000' }, 'the giver has it back')
  t.strictSame((await ledger.check(approvalFaults)).faults, [])
}

async function everywhere(t: Test, open: (place: string) => Promise<MoneyLedger>): Promise<void> {
  await t.test('a question writes nothing, and sees what lies at an alias', async (t) => {
    const { ledger, commits } = counted(await open('question'))
    const books = booksOf(ledger)
    await filled(books, aliases)
    const before = commits()
    const checked = (order: Partial<CheckOrder>): Promise<unknown> =>
      books.credits.check({ ...payer(), bytes: 1, ...order })
    for (const alias of aliases) {
      t.match(await checked({ alias }), { isEnough: true, isUnknownWallet: false, balance: '15' })
      t.match(await checked({ alias, paidBy: [] }), { balance: '5' })
      t.match(await checked({ alias, directive: 'list-only' }), { balance: '10' })
    }
    t.match(await checked({}), { isEnough: false, isUnknownWallet: true })
    for (let at = 0; at < 50; at += 1) await checked({ alias: hash(100 + at), bytes: 1 + at })
    t.equal(commits(), before, 'no commit')
    const [first = ''] = aliases
    const order = { ...payer(first), itemId: 'i', bytes: 15 }
    t.match(await books.credits.reserve(order), { paid: true }, 'whoever has signed spends what was seen')
    await books.credits.refund('i')
    const learnt = commits()
    for (let at = 0; at < 50; at += 1) await checked({ alias: hash(200 + at) })
    t.equal(commits(), learnt, 'nor does a wallet with credits')
    await ledger.close()
  })

  await t.test('all aliases of a wallet are kept, in whatever order they are seen', async (t) => {
    for (const way of ['in a row', 'at once', 'by two processes'] as const) {
      const ledger = await open(`kept-${way.replaceAll(' ', '-')}`)
      const books = booksOf(ledger)
      await filled(books, aliases)
      const see = (alias: string, { wallets }: Books): Promise<void> => wallets.takeOverAlias(wallet, alias)
      if (way === 'in a row') for (const alias of [...aliases].reverse()) await see(alias, books)
      else {
        const other = way === 'at once' ? books : booksOf(ledger)
        await Promise.all(aliases.flatMap((alias) => [see(alias, books), see(alias, other)]))
      }
      await whole(t, ledger, aliases)
      await ledger.close()
    }
  })

  await t.test('an approval takes over what lies at the alias of its giver', async (t) => {
    const ledger = await open('giver')
    const { accounts, credits } = booksOf(ledger)
    const [payingAlias = ''] = aliases
    await accounts.credit({ id: 'one', address: payingAlias, winc: 7n, ...facts })
    const pair = { payingAddress: wallet, payingAlias, approvedAddress: giver }
    t.match(await credits.approve({ ...pair, itemId: 'a', winc: '7' }), { approvedWincAmount: '7' })
    t.match(await credits.revoke({ ...pair, itemId: 'r' }), [{ payingAddress: wallet }])
    await ledger.close()
  })

  await t.test('a wallet has a few aliases, and one address one wallet', async (t) => {
    const ledger = await open('few')
    const { wallets, accounts } = booksOf(ledger)
    await accounts.credit({ id: 'own', address: wallet, winc: 1n, ...facts })
    for (let at = 0; at < 40; at += 1) await wallets.takeOverAlias(wallet, hash(100 + at))
    t.equal((await wallets.addressesOf(wallet)).length, 17)
    t.equal((await ledger.records('alias', '', '', 1000)).length, 16)
    await accounts.credit({ id: 'left', address: hash(139), winc: 3n, ...facts })
    t.match(await accounts.balance(hash(139)), { winc: '3' }, 'one that was not taken has its own')
    await wallets.takeOverAlias(giver, hash(100))
    t.equal(await wallets.resolve(hash(100)), wallet, 'an alias does not change hands')
    await ledger.close()
  })

  await t.test('a check of the ledger says what a wallet does not find', async (t) => {
    const ledger = await open('missing')
    const books = booksOf(ledger)
    await filled(books, aliases)
    for (const alias of aliases) await books.wallets.takeOverAlias(wallet, alias)
    t.strictSame((await ledger.check(approvalFaults)).faults, [])
    const list = { kind: 'wallet-aliases', key: wallet, value: JSON.stringify(aliases.slice(1)) }
    await ledger.commit({ transfers: [], records: [list] })
    t.strictSame((await ledger.check(approvalFaults)).faults, [
      `what is shared with ${aliases[0]} is not found`,
    ])
    await ledger.close()
  })

  await t.test('what an earlier version has lost is found at the start', async (t) => {
    for (const way of ['once', 'twice at once', 'killed'] as const) {
      const ledger = await open(`lost-${way.replaceAll(' ', '-')}`)
      await filled(booksOf(ledger), aliases)
      await lost(ledger)
      const start = (on: MoneyLedger): Promise<number> => moveAliases(on, new Wallets(on), silent)
      if (way === 'killed')
        for (let most = 0; most < 2; most += 1) await t.rejects(start(dying(ledger, most)))
      const moved = await Promise.all(
        way === 'twice at once' ? [start(ledger), start(ledger)] : [start(ledger)],
      )
      t.ok(moved.includes(aliases.length), `${moved}`)
      t.strictSame(await ledger.records('alias-of', '', '', 1), [])
      t.equal(await start(ledger), 0, 'and no more after that')
      t.equal(
        (await booksOf(ledger).wallets.addressesOf(wallet)).length,
        1 + aliases.length,
        'none that has nothing',
      )
      for (const alias of aliases) await booksOf(ledger).wallets.takeOverAlias(wallet, alias)
      await whole(t, ledger, aliases)
      await ledger.close()
    }
  })
}

const silent = { info: () => undefined, warn: () => undefined }

/** As an earlier version has left it: strangers have had a hundred aliases recorded, and the last one is known. */
async function lost(ledger: MoneyLedger): Promise<void> {
  const strange = Array.from({ length: 300 }, (_, at) => hash(1000 + at))
  const value = JSON.stringify(wallet)
  const records = [...aliases, ...strange].map((key) => ({ kind: 'alias', key, value }))
  const name = { kind: 'alias-of', key: wallet, value: JSON.stringify(strange.at(-1)) }
  await ledger.commit({ transfers: [], records: [...records, name] })
}

/** A ledger that is gone after so many commits. */
function dying(ledger: MoneyLedger, most: number): MoneyLedger {
  let count = 0
  return new Proxy(ledger, {
    get(of, key: keyof MoneyLedger) {
      if (key !== 'commit') return (of[key] as (...given: unknown[]) => unknown).bind(of)
      return async (order: CommitOrder) => {
        count += 1
        if (count > most) throw new Error('killed')
        return of.commit(order)
      }
    },
  })
}

t.test('in LMDB', async (t) => {
  const root = t.testdir()
  await everywhere(t, async (place) => new EmbeddedLedger({ path: join(root, place), clock }))
})

const skip = postgresFolder === undefined ? 'no PostgreSQL here' : false

t.test('in PostgreSQL', { skip }, async (t) => {
  const server = await startPostgres()
  t.teardown(() => server.stop())
  await everywhere(t, async (place) =>
    PostgresLedger.open({ url: await server.database(place.replaceAll('-', '_')), clock }),
  )
})
