import type { Test } from 'tap'
import { availableOf } from '../../src/ledger/ledger-account.js'
import {
  type CommitOrder,
  type CommitOutcome,
  isRejected,
  type MoneyLedger,
} from '../../src/ledger/ledger-port.js'
import type { MoveOrder, TransferOrder } from '../../src/ledger/transfer.js'

/** Opens the ledger of one place again and again; each place is its own. `setTime` turns the clock of all of them. */
export interface LedgerPlaces {
  open(place: string): Promise<MoneyLedger>
  setTime(ms: number): void
}

const facts = { reason: 'test', reference: 'r' }

export function topUp(id: string, wallet: string, amount: bigint): TransferOrder {
  return { id, kind: 'posted', debit: 'source:test', credit: wallet, amount, ...facts }
}

export function hold(id: string, wallet: string, amount: bigint, timeoutMs?: number): TransferOrder {
  const timeout = timeoutMs === undefined ? {} : { timeoutMs }
  return { id, kind: 'pending', debit: wallet, credit: 'revenue', amount, ...facts, ...timeout }
}

export function end(id: string, kind: 'post' | 'void', pending: string, amount?: bigint): TransferOrder {
  return { id, kind, pending, ...facts, ...(amount === undefined ? {} : { amount }) }
}

function word(outcome: CommitOutcome): string {
  if (isRejected(outcome)) return outcome.rejected
  return outcome.existed ? 'existed' : 'done'
}

async function available(ledger: MoneyLedger, name: string): Promise<bigint | undefined> {
  const account = await ledger.account(name)
  return account === undefined ? undefined : availableOf(account)
}

/** What every ledger must do. */
export function ledgerConformance(t: Test, places: LedgerPlaces): void {
  t.test('orders in order of precedence, each with its result', async (t) => {
    const ledger = await places.open('table')
    const rows: [order: CommitOrder, result: string, wallet: bigint | undefined][] = [
      [{ transfers: [topUp('', 'wallet:a', 5n)] }, 'invalid', undefined],
      [{ transfers: [topUp('x'.repeat(201), 'wallet:a', 5n)] }, 'invalid', undefined],
      [{ transfers: [topUp('t1', 'wallet:a', 0n)] }, 'invalid', undefined],
      [{ transfers: [topUp('t1', 'wallet:a', -5n)] }, 'invalid', undefined],
      [{ transfers: [topUp('t1', 'source:test', 5n)] }, 'invalid', undefined],
      [{ transfers: [topUp('t1', 'wallet:a', 5n), topUp('t1', 'wallet:a', 5n)] }, 'invalid', undefined],
      [{ transfers: [hold('h0', 'wallet:a', 1n)] }, 'insufficient', undefined],
      [{ transfers: [topUp('t1', 'wallet:a', 100n)] }, 'done', 100n],
      [{ transfers: [topUp('t1', 'wallet:a', 100n)] }, 'existed', 100n],
      [{ transfers: [topUp('t1', 'wallet:a', 101n)] }, 'differs', 100n],
      [{ transfers: [topUp('t1', 'wallet:a', 100n), topUp('t2', 'wallet:a', 1n)] }, 'differs', 100n],
      [{ transfers: [hold('h1', 'wallet:a', 101n)] }, 'insufficient', 100n],
      [{ transfers: [hold('h1', 'wallet:a', 60n)] }, 'done', 40n],
      [{ transfers: [hold('h2', 'wallet:a', 41n)] }, 'insufficient', 40n],
      [{ transfers: [end('e0', 'post', 'h9')] }, 'unknown', 40n],
      [{ transfers: [end('e0', 'post', 't1')] }, 'unknown', 40n],
      [{ transfers: [end('e0', 'post', 'h1', 61n)] }, 'invalid', 40n],
      [{ transfers: [end('e1', 'post', 'h1', 50n)] }, 'done', 50n],
      [{ transfers: [end('e1', 'post', 'h1', 50n)] }, 'existed', 50n],
      [{ transfers: [end('e2', 'void', 'h1')] }, 'ended', 50n],
      [{ transfers: [hold('h3', 'wallet:a', 50n)] }, 'done', 0n],
      [{ transfers: [end('e3', 'void', 'h3')] }, 'done', 50n],
      [{ transfers: [end('e4', 'post', 'h3')] }, 'ended', 50n],
      // All or nothing: the second of two is more than is left.
      [{ transfers: [hold('h4', 'wallet:a', 30n), hold('h5', 'wallet:a', 30n)] }, 'insufficient', 50n],
      [{ transfers: [hold('h4', 'wallet:a', 30n), hold('h5', 'wallet:a', 20n)] }, 'done', 0n],
    ]
    for (const [order, result, wallet] of rows) {
      const name = `${JSON.stringify(order, (_, value) => (typeof value === 'bigint' ? String(value) : value))}`
      t.equal(word(await ledger.commit(order)), result, name)
      t.equal(await available(ledger, 'wallet:a'), wallet, 'what is left')
    }
    t.equal(await available(ledger, 'revenue'), 50n)
    t.equal(await available(ledger, 'source:test'), -100n)
    t.strictSame((await ledger.check()).faults, [])
    await ledger.close()
  })

  t.test('what can be no key is refused alone, and not those that are written with it', async (t) => {
    const ledger = await places.open('keys')
    const long = 'x'.repeat(401)
    const bad: CommitOrder[] = [
      ...['a\0b', '\ud800', '\ud801a', `${'é'.repeat(200)}xé`].map((id) => ({
        transfers: [topUp(id, 'wallet:a', 1n)],
      })),
      ...[`wallet:${long}`, 'wallet:\0', 'wallet:\udfff'].map((name, at) => ({
        transfers: [topUp(`b${at}`, name, 1n)],
      })),
      ...['\0', '\ud800'].map((key) => ({ transfers: [], records: [{ kind: 'k', key, value: '1' }] })),
    ]
    const good = bad.map((_, at) => ({ transfers: [topUp(`g${at}`, 'wallet:a', 1n)] }))
    const ends = ['\0', '\ud800', long].map((pending, at) => ({
      transfers: [end(`e${at}`, 'void', pending)],
    }))
    const outcomes = await Promise.all(
      [...bad, ...ends]
        .flatMap((order, at) => [order, good[at] ?? { transfers: [] }])
        .map((order) => ledger.commit(order)),
    )
    t.strictSame(outcomes.map(word), [
      ...bad.flatMap(() => ['invalid', 'done']),
      ...ends.flatMap(() => ['unknown', 'done']),
    ])
    for (const odd of ['\0', '\ud800', long]) {
      t.equal(await ledger.account(odd), undefined)
      t.equal(await ledger.record('k', odd), undefined)
      t.equal(await ledger.transfer(odd), undefined)
      t.equal(await ledger.ending(odd), undefined)
      t.strictSame(await ledger.history(odd, 100, 10), [])
      t.strictSame(await ledger.accounts(odd, '', 10), [])
      t.strictSame(await ledger.accounts('', odd, 10), [])
    }
    t.equal(await available(ledger, 'wallet:a'), BigInt(bad.length))
    t.strictSame((await ledger.check()).faults, [])
    await ledger.close()
  })

  t.test('only what says so may go below zero', async (t) => {
    const ledger = await places.open('overdraft')
    const chargeback: MoveOrder = {
      id: 'c1',
      debit: 'wallet:b',
      credit: 'source:card',
      amount: 7n,
      ...facts,
      kind: 'posted',
    }
    t.equal(word(await ledger.commit({ transfers: [chargeback] })), 'insufficient')
    t.equal(word(await ledger.commit({ transfers: [{ ...chargeback, mayOverdraw: true }] })), 'done')
    t.equal(await available(ledger, 'wallet:b'), -7n)
    t.equal(word(await ledger.commit({ transfers: [hold('h', 'wallet:b', 1n)] })), 'insufficient')
    t.equal(
      word(await ledger.commit({ transfers: [topUp('t', 'wallet:b', 3n)] })),
      'done',
      'it may be paid back in parts',
    )
    await ledger.close()
  })

  t.test('amounts of any length', async (t) => {
    const ledger = await places.open('long')
    const much = 10n ** 70n + 1n
    await ledger.commit({ transfers: [topUp('t', 'wallet:c', much)] })
    await ledger.commit({ transfers: [hold('h', 'wallet:c', much - 1n)] })
    t.equal(await available(ledger, 'wallet:c'), 1n)
    t.equal((await ledger.transfer('t'))?.amount, much)
    t.strictSame((await ledger.check()).faults, [])
    await ledger.close()
  })

  t.test('records change with transfers, or not at all', async (t) => {
    const ledger = await places.open('records')
    const put = (value: string | undefined, expected?: number): CommitOrder => {
      const change = { kind: 'k', key: 'one', value, ...(expected === undefined ? {} : { expected }) }
      return { transfers: [], records: [change] }
    }
    t.equal(word(await ledger.commit(put('1', 7))), 'conflict')
    t.equal(word(await ledger.commit(put('1', 0))), 'done')
    t.equal(word(await ledger.commit(put('2', 0))), 'conflict')
    const first = await ledger.record('k', 'one')
    t.equal(first?.value, '1')
    t.equal(word(await ledger.commit(put('2', first?.version ?? -1))), 'done')
    t.equal(word(await ledger.commit(put('3', first?.version ?? -1))), 'conflict', 'somebody was faster')
    const poor = {
      transfers: [hold('h', 'wallet:nobody', 1n)],
      records: [{ kind: 'k', key: 'two', value: '1' }],
    }
    t.equal(word(await ledger.commit(poor)), 'insufficient')
    t.equal(await ledger.record('k', 'two'), undefined)
    t.equal(word(await ledger.commit(put(undefined))), 'done')
    t.equal(await ledger.record('k', 'one'), undefined)
    const keys = ['a|1', 'a|2', 'a|3', 'b|1']
    await ledger.commit({ transfers: [], records: keys.map((key) => ({ kind: 'list', key, value: '"v"' })) })
    const found = async (start: string, after: string, limit: number): Promise<string[]> =>
      (await ledger.records('list', start, after, limit)).map(({ key }) => key)
    t.strictSame(await found('', '', 10), keys)
    t.strictSame(await found('a|', '', 2), ['a|1', 'a|2'])
    t.strictSame(await found('a|', 'a|2', 2), ['a|3'])
    t.strictSame(await found('c', '', 2), [])
    await ledger.close()
  })

  t.test('many at once by name: what is there, and nothing else', async (t) => {
    const ledger = await places.open('named')
    const keys = ['a|', 'a|1', 'a|2', 'a|3', 'a|\u{10ffff}', 'a}', 'b|1', 'b|2']
    await ledger.commit({
      transfers: [topUp('t1', 'wallet:a', 10n), topUp('t2', 'wallet:b', 5n)],
      records: keys.map((key) => ({ kind: 'k', key, value: JSON.stringify(key) })),
    })
    await ledger.commit({ transfers: [hold('h1', 'wallet:a', 1n), hold('h2', 'wallet:a', 2n)] })
    await ledger.commit({
      transfers: [end('e1', 'post', 'h1')],
      records: [{ kind: 'other', key: 'a|1', value: '1' }],
    })
    const odd = ['\0', '\ud800', 'x'.repeat(401), 'none']
    const sorted = (names: readonly string[]): string[] => [...names].sort()
    const accounts = await ledger.accountsNamed(['wallet:a', 'wallet:b', 'wallet:a', ...odd])
    t.strictSame(sorted(accounts.map(({ name }) => name)), ['wallet:a', 'wallet:b'])
    t.strictSame(
      accounts.find(({ name }) => name === 'wallet:a'),
      await ledger.account('wallet:a'),
    )
    const transfers = await ledger.transfersNamed(['t2', 'h1', 't2', ...odd])
    t.strictSame(sorted(transfers.map(({ id }) => id)), ['h1', 't2'])
    t.strictSame(
      transfers.find(({ id }) => id === 't2'),
      await ledger.transfer('t2'),
    )
    t.strictSame(await ledger.endingsOf(['h1', 'h2', 't1', ...odd]), [await ledger.ending('h1')])
    const records = await ledger.recordsNamed('k', ['b|2', 'a|1', 'a|1', ...odd])
    t.strictSame(sorted(records.map(({ key }) => key)), ['a|1', 'b|2'])
    t.strictSame(
      records.find(({ key }) => key === 'a|1'),
      await ledger.record('k', 'a|1'),
    )
    const spans = [
      { start: 'b|', after: '' },
      { start: 'a|', after: 'a|1' },
      ...odd.map((start) => ({ start, after: '' })),
      { start: 'a|', after: '' },
      { start: 'a|', after: '\0' },
      { start: '', after: 'a|3' },
    ]
    for (const limit of [1, 2, 100]) {
      const found = await ledger.recordSpans('k', spans, limit)
      for (const [at, { start, after }] of spans.entries())
        t.strictSame(found[at], await ledger.records('k', start, after, limit), `${start} ${after} ${limit}`)
    }
    const all = (await ledger.records('k', 'a|', '', 100)).map(({ key }) => key)
    t.strictSame(all, ['a|', 'a|1', 'a|2', 'a|3', 'a|\u{10ffff}'])
    for (const none of [[], odd]) {
      t.strictSame(await ledger.accountsNamed(none), [])
      t.strictSame(await ledger.transfersNamed(none), [])
      t.strictSame(await ledger.endingsOf(none), [])
      t.strictSame(await ledger.recordsNamed('k', none), [])
    }
    t.strictSame(await ledger.recordSpans('k', [], 10), [])
    await ledger.close()
  })

  t.test('records follow an account, and sums are added up, whoever else writes at once', async (t) => {
    const ledger = await places.open('following')
    const listed = { kind: 'list', key: 'a', value: '"v"', whileHas: 'wallet:a' }
    const sum = (added: bigint) => ({ kind: 'sum', key: 'of a', value: undefined, added })
    const order = (transfer: TransferOrder, added: bigint): CommitOrder => ({
      transfers: [transfer],
      records: [sum(added), listed, sum(1n), sum(-1n)],
    })
    const kept = async (): Promise<readonly (string | undefined)[]> => {
      const found = [await ledger.record('list', 'a'), await ledger.record('sum', 'of a')]
      return found.map((record) => record?.value)
    }
    await ledger.commit(order(topUp('t1', 'wallet:a', 10n), 10n))
    t.strictSame(await kept(), ['"v"', '10'])
    const version = (await ledger.record('list', 'a'))?.version
    // Each of them alone leaves something, and none of them knows of the others.
    const holds = Array.from({ length: 12 }, (_, at) =>
      ledger.commit(order(hold(`h${at}`, 'wallet:a', 1n), -1n)),
    )
    t.equal((await Promise.all(holds)).filter((one) => word(one) === 'done').length, 10)
    t.strictSame(await kept(), [undefined, undefined], 'what is empty leaves the list in the same commit')
    await ledger.commit(order(end('e1', 'void', 'h0'), 1n))
    t.strictSame(await kept(), ['"v"', '1'], 'and comes back')
    const again = await ledger.record('list', 'a')
    t.not(again?.version, version)
    await ledger.commit(order(end('e1', 'void', 'h0'), 1n))
    t.strictSame(await kept(), ['"v"', '1'], 'an order that was carried out adds nothing')
    await ledger.commit(order(topUp('t2', 'wallet:a', 10n ** 30n), 10n ** 30n))
    t.strictSame(await kept(), ['"v"', String(10n ** 30n + 1n)], 'of any length')
    t.equal((await ledger.record('list', 'a'))?.version, again?.version, 'what stays is not written')
    await ledger.close()
    const opened = await places.open('following')
    t.equal((await opened.record('sum', 'of a'))?.value, String(10n ** 30n + 1n))
    t.strictSame((await opened.check(async () => ['a fault'])).faults, ['a fault'])
    await opened.close()
  })

  t.test('what is held back comes free when its time is over', async (t) => {
    const ledger = await places.open('timeout')
    places.setTime(1_000_000)
    await ledger.commit({ transfers: [topUp('t', 'wallet:d', 10n)] })
    await ledger.commit({ transfers: [hold('short', 'wallet:d', 4n, 5000), hold('ever', 'wallet:d', 3n)] })
    t.equal(await ledger.expire(1_000_000), 0)
    places.setTime(1_004_999)
    t.equal(await ledger.expire(1_004_999), 0)
    t.equal(await ledger.expire(Number.NEGATIVE_INFINITY), 0, 'no time is confirmed yet')
    places.setTime(1_005_000)
    t.equal(
      word(await ledger.commit({ transfers: [end('late', 'post', 'short')] })),
      'ended',
      'at its millisecond',
    )
    t.equal(await ledger.expire(1_005_000), 1)
    t.equal(await available(ledger, 'wallet:d'), 7n)
    t.equal((await ledger.ending('short'))?.kind, 'void')
    t.equal(await ledger.expire(1_005_000), 0)
    t.strictSame((await ledger.check()).faults, [])
    await ledger.close()
  })

  t.test('a history is read in pages, and everything is there after opening again', async (t) => {
    const first = await places.open('history')
    for (let at = 1; at <= 7; at += 1)
      await first.commit({ transfers: [topUp(`t${at}`, 'wallet:e', BigInt(at))] })
    await first.commit({ transfers: [topUp('other', 'wallet:e2', 1n)] })
    const signed = await first.signHead()
    await first.close()
    const ledger = await places.open('history')
    const page = await ledger.history('wallet:e', Number.MAX_SAFE_INTEGER, 4)
    t.strictSame(
      page.map(({ id }) => id),
      ['t7', 't6', 't5', 't4'],
    )
    const next = await ledger.history('wallet:e', page.at(-1)?.sequence ?? 0, 4)
    t.strictSame(
      next.map(({ id }) => id),
      ['t3', 't2', 't1'],
    )
    t.equal(await available(ledger, 'wallet:e'), 28n)
    const accounts = await ledger.accounts('wallet:', '', 10)
    t.strictSame(
      accounts.map(({ name }) => name),
      ['wallet:e', 'wallet:e2'],
    )
    const report = await ledger.check()
    t.strictSame(report.faults, [])
    t.equal(report.head, signed?.head, 'the chain ends where it was signed')
    t.equal(report.signedHeads, 1)
    t.equal(await ledger.signHead(), undefined, 'nothing new to sign')
    t.equal(word(await ledger.commit({ transfers: [topUp('t3', 'wallet:e', 3n)] })), 'existed')
    await ledger.close()
  })

  t.test('many at once: no account is overdrawn, nothing is done twice', async (t) => {
    const ledger = await places.open('race')
    await ledger.commit({ transfers: [topUp('t', 'wallet:f', 100n)] })
    const tries = Array.from({ length: 200 }, (_, at) =>
      ledger.commit({ transfers: [hold(`h${at % 100}`, 'wallet:f', 3n)] }),
    )
    const words = (await Promise.all(tries)).map(word)
    t.equal(words.filter((one) => one === 'done').length, 33)
    t.equal(await available(ledger, 'wallet:f'), 1n)
    t.strictSame((await ledger.check()).faults, [])
    await ledger.close()
  })
}
