/** What is found through memory must be what would be found through the tables, also after the process has begun anew. */
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { type Clock, systemClock } from '../../src/actor/clock.js'
import { EmbeddedLedger } from '../../src/ledger/embedded.js'
import { encodeAccount } from '../../src/ledger/ledger-account.js'
import { type CommitOrder, isRejected } from '../../src/ledger/ledger-port.js'
import { encodeTransfer, type Transfer, type TransferOrder } from '../../src/ledger/transfer.js'
import { openEnvironment } from '../../src/store/lmdb.js'
import { below, fc, pick } from '../property.js'

const wallets = ['wallet:a', 'wallet:a2', 'wallet:ä', 'wallet:\u{1f600}', 'approval:b']
const keys = ['a', 'a|1', 'a|2', 'b', 'ä', '\u{fb01}', '\u{1f600}']
const kinds = ['k', 'list']
const facts = { reason: 'test', reference: 'r' }

function someOrder(number: number, held: string[]): CommitOrder {
  const wallet = pick(wallets)
  const transfers: TransferOrder[] = []
  for (let at = below(4); at > 0; at -= 1) {
    const id = `${number}-${at}`
    const move = { id, debit: wallet, credit: 'revenue', amount: BigInt(1 + below(50)), ...facts }
    if (below(3) === 0)
      transfers.push({ ...move, kind: 'posted', debit: 'source:t', credit: wallet, amount: 10n ** 30n })
    else if (below(2) === 0 || held.length === 0) {
      const timeout = below(2) === 0 ? {} : { timeoutMs: below(60) }
      transfers.push({ ...move, kind: 'pending', ...timeout })
      held.push(id)
    } else {
      const [pending = ''] = held.splice(below(held.length), 1)
      transfers.push({ id, kind: below(2) === 0 ? 'post' : 'void', pending, ...facts })
    }
  }
  const records = Array.from({ length: below(3) }, (_, at) => ({
    kind: pick(kinds),
    key: pick(keys),
    value: below(3) === 0 ? undefined : JSON.stringify(`${number}-${at}`),
  }))
  return { transfers, records }
}

/** The answers to all queries. */
async function contentsOf(ledger: EmbeddedLedger, ids: readonly string[]): Promise<unknown> {
  const small = ({ sequence, amount, ...rest }: Transfer) => ({ sequence, amount: String(amount), ...rest })
  const histories: unknown[] = []
  for (const name of [...wallets, 'revenue', 'source:t']) {
    const pages: Transfer[] = []
    for (let before = Number.MAX_SAFE_INTEGER; ; before = pages.at(-1)?.sequence ?? 0) {
      const page = await ledger.history(name, before, 7)
      pages.push(...page)
      if (page.length < 7) break
    }
    const account = await ledger.account(name)
    histories.push([name, account && encodeAccount(account), pages.map(small)])
  }
  const lists: unknown[] = []
  for (const kind of kinds) {
    for (const start of ['', 'a', 'a|']) {
      for (let after = ''; ; ) {
        const page = await ledger.records(kind, start, after, 2)
        lists.push(page)
        if (page.length < 2) break
        after = page.at(-1)?.key ?? ''
      }
    }
    for (const key of keys) lists.push((await ledger.record(kind, key)) ?? null)
  }
  const ends = await Promise.all(ids.map(async (id) => (await ledger.ending(id))?.id))
  const transfers = await Promise.all(ids.map(async (id) => (await ledger.transfer(id))?.sequence))
  const first = await ledger.accounts('', '', 3)
  const rest = await ledger.accounts('wallet:', first.at(-1)?.name ?? '', 3)
  const accounts = [...first, ...rest].map((account) => [account.name, encodeAccount(account)])
  return { histories, lists, ends, transfers, accounts }
}

t.test('memory and tables say the same', async (t) => {
  const root = t.testdir()
  let nowMs = 1_000_000
  const clock: Clock = { ...systemClock, now: () => nowMs, monotonic: () => nowMs }
  const limits = [1, 37, 100_000]
  const open = (): EmbeddedLedger[] =>
    limits.map(
      (deferredMax) => new EmbeddedLedger({ path: join(root, `${deferredMax}`), clock, deferredMax }),
    )
  let ledgers = open()
  const held: string[] = []
  const ids: string[] = []
  for (let round = 0; round < 12; round += 1) {
    const orders = Array.from({ length: 30 }, (_, at) => someOrder(round * 100 + at, held))
    ids.push(...orders.flatMap(({ transfers }) => transfers.map(({ id }) => id)))
    const outcomes = await Promise.all(
      ledgers.map((ledger) => Promise.all(orders.map((order) => ledger.commit(order)))),
    )
    const words = outcomes.map((ones) => ones.map((one) => (isRejected(one) ? one.rejected : 'done')))
    t.strictSame(words[1], words[0])
    t.strictSame(words[2], words[0])
    t.ok(words[0]?.includes('done'))
    nowMs += below(50)
    const expired = await Promise.all(ledgers.map((ledger) => ledger.expire(nowMs)))
    t.strictSame(expired, [expired[0], expired[0], expired[0]])
    await compare(t, ledgers, ids)
    if (below(3) > 0) continue
    await Promise.all(ledgers.map((ledger) => ledger.close()))
    ledgers = open()
    await compare(t, ledgers, ids)
  }
  await Promise.all(ledgers.map((ledger) => ledger.close()))
})

async function compare(t: Test, ledgers: readonly EmbeddedLedger[], ids: readonly string[]): Promise<void> {
  const [first, ...others] = await Promise.all(ledgers.map((ledger) => contentsOf(ledger, ids)))
  for (const other of others) t.strictSame(other, first)
  const reports = await Promise.all(ledgers.map((ledger) => ledger.check()))
  for (const report of reports) t.strictSame(report, { ...reports[0], faults: [] })
}

t.test('a transfer is written as JSON.stringify does', (t) => {
  const text = fc.oneof(fc.string({ unit: 'binary' }), fc.string())
  const transfer = fc.record({
    id: text,
    debit: text,
    credit: text,
    reason: text,
    reference: text,
    pending: text,
    kind: fc.constantFrom<Transfer['kind']>('posted', 'pending', 'post', 'void'),
    amount: fc.bigInt({ min: 1n }),
    timeMs: fc.maxSafeNat(),
    untilMs: fc.maxSafeNat(),
    about: fc.dictionary(text, text),
  })
  const isSame = (one: Omit<Transfer, 'sequence'>): boolean => {
    const { id, kind, debit, credit, amount, reason, reference, timeMs, untilMs, pending, about } = one
    const before = [id, kind, debit, credit, String(amount), reason, reference]
    const written = JSON.stringify([...before, timeMs, untilMs, pending, about])
    return encodeTransfer({ sequence: 1, ...one }) === written
  }
  fc.assert(fc.property(transfer, isSame))
  t.end()
})

t.test(
  'two programs write one ledger: each credit is spent once, and nothing acknowledged is lost',
  async (t) => {
    const path = join(t.testdir(), 'ledger')
    let nowMs = 1_000_000
    const clock: Clock = { ...systemClock, now: () => nowMs, monotonic: () => nowMs }
    const open = (number: number): EmbeddedLedger =>
      // The clock of the second one is behind.
      new EmbeddedLedger({
        path,
        deferredMax: 7 + 30 * number,
        clock: { ...clock, now: () => nowMs - 1000 * number },
      })
    const ledgers = [open(0), open(1)]
    const give = { id: 'top', kind: 'posted', debit: 'source:t', credit: 'wallet:a', amount: 100n } as const
    await ledgers[0]?.commit({ transfers: [{ ...give, ...facts }] })
    const spent: string[] = []
    const written: string[] = []
    for (let at = 0; at < 200; at += 1) {
      const ledger = ledgers[below(2)] as EmbeddedLedger
      nowMs += below(3)
      const order = {
        id: `s${at}`,
        kind: 'posted',
        debit: 'wallet:a',
        credit: 'revenue',
        amount: 1n,
      } as const
      const record = { kind: 'k', key: `${at}`, value: '1', expected: 0 }
      const outcome = await ledger.commit({ transfers: [{ ...order, ...facts }], records: [record] })
      if (!isRejected(outcome)) spent.push(order.id)
      else t.equal(outcome.rejected, 'insufficient')
      const other = { kind: 'alone', key: `${at}`, value: '1', expected: 0 }
      if (!isRejected(await ledger.commit({ transfers: [], records: [other] }))) written.push(other.key)
      if (below(20) > 0) continue
      const number = below(2)
      await ledgers[number]?.close()
      ledgers[number] = open(number)
    }
    t.equal(spent.length, 100)
    for (const ledger of ledgers) {
      const { faults, transfers } = await ledger.check()
      t.strictSame([faults, transfers], [[], 101])
      for (const id of spent) t.ok(await ledger.transfer(id), id)
      t.equal(written.length, 200)
      for (const key of written) t.ok(await ledger.record('alone', key), key)
    }
    await Promise.all(ledgers.map((ledger) => ledger.close()))
  },
)

t.test('a check sees what bytes on the disk make of a history, and what cannot be read', async (t) => {
  const change: Record<string, (environment: ReturnType<typeof openEnvironment>) => void> = {
    history: (environment) => {
      const table = environment.table('history')
      const [first] = table.from(undefined, 1)
      if (first !== undefined) table.remove(first.key)
    },
    'be read': (environment) => {
      const table = environment.table('blocks')
      const [first] = table.from(undefined, 1)
      if (first !== undefined) table.put(first.key, Buffer.from(first.value).fill(0x7b, 5))
    },
  }
  for (const [word, act] of Object.entries(change)) {
    const path = join(t.testdir(), word.replace(' ', '-'))
    const before = new EmbeddedLedger({ path, clock: systemClock, deferredMax: 1 })
    const top = { id: 'top', kind: 'posted', debit: 'source:t', credit: 'wallet:a', amount: 1n } as const
    await before.commit({ transfers: [{ ...top, ...facts }] })
    await before.commit({ transfers: [{ ...top, id: 'top2', ...facts }] })
    t.strictSame((await before.check()).faults, [])
    await before.close()
    const environment = openEnvironment(path)
    environment.write(() => act(environment))
    await environment.close()
    const ledger = new EmbeddedLedger({ path, clock: systemClock })
    const { faults } = await ledger.check()
    t.ok(
      faults.some((fault) => fault.includes(word)),
      `${word}: ${faults}`,
    )
    await ledger.close()
  }
})

t.test(
  'records that an older version has changed are taken in when the tables are next brought up to date',
  async (t) => {
    const path = join(t.testdir(), 'ledger')
    const change = async (value: string): Promise<readonly string[]> => {
      const ledger = new EmbeddedLedger({ path, clock: systemClock, deferredMax: 2 })
      for (const key of ['a', 'b', 'c'])
        await ledger.commit({ transfers: [], records: [{ kind: 'k', key, value }] })
      const { faults } = await ledger.check()
      await ledger.close()
      return faults
    }
    const spoil = async (act: (environment: ReturnType<typeof openEnvironment>) => void): Promise<void> => {
      const environment = openEnvironment(path)
      environment.write(() => act(environment))
      await environment.close()
    }
    t.strictSame(await change('1'), [])
    await spoil((environment) => {
      const [state] = environment.table('meta').from(Buffer.from('state'), 1)
      const { records, changes, ...older } = JSON.parse(`${state?.value}`)
      t.ok(records !== undefined && changes !== undefined)
      environment.table('meta').put(Buffer.from('state'), Buffer.from(JSON.stringify(older)))
      environment.table('records').put(Buffer.from('k\0z'), Buffer.from('00000000000000013232', 'hex'))
    })
    t.strictSame(await change('2'), [])
    await spoil((environment) => environment.table('records').remove(Buffer.from('k\0z')))
    t.match(await change('3'), [/records are not those/])
  },
)

t.test('another process looks at a ledger that is being written', async (t) => {
  const path = join(t.testdir(), 'ledger')
  const writer = new EmbeddedLedger({ path, clock: systemClock, deferredMax: 5 })
  const give = (id: string): CommitOrder => ({
    transfers: [{ id, kind: 'posted', debit: 'source:t', credit: `wallet:${id}`, amount: 1n, ...facts }],
  })
  await writer.commit(give('a'))
  const reader = new EmbeddedLedger({ path, clock: systemClock })
  for (let at = 0; at < 23; at += 1) {
    await writer.commit(give(`b${at}`))
    const { faults, transfers } = await reader.check()
    t.strictSame([faults, transfers], [[], at + 2])
  }
  await reader.close()
  await writer.close()
})
