/** A ledger of the first format, where each transfer was a row of its own. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { statSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import t from 'tap'
import { systemClock } from '../../src/actor/clock.js'
import { EmbeddedLedger } from '../../src/ledger/embedded.js'
import { availableOf } from '../../src/ledger/ledger-account.js'
import { numberKey, utf8Of } from '../../src/ledger/lmdb-tables.js'
import { encodeTransfer, firstHead, nextHead, type Transfer } from '../../src/ledger/transfer.js'
import { openEnvironment, present } from '../../src/store/lmdb.js'
import { random } from '../property.js'

const child = fileURLToPath(new URL('damaged-child.js', import.meta.url))
/** LEDGER_KILLS asks for more. */
const kills = Number(process.env.LEDGER_KILLS ?? 3)

const common = { reason: 'test', reference: 'r', untilMs: 0, pending: '', about: {} }

/** Tops up, holds back, posts every second one; so many times. */
function transfersOf(pairs: number): Transfer[] {
  const made: Transfer[] = []
  const add = (id: string, amount: bigint, facts: Pick<Transfer, 'kind'> & Partial<Transfer>): void => {
    const sequence = made.length + 1
    const accounts = { debit: 'wallet:a', credit: 'revenue' }
    made.push({ ...common, ...accounts, sequence, id, amount, timeMs: 1000 + sequence, ...facts })
  }
  add('top', 10n ** 20n, { kind: 'posted', debit: 'source:t', credit: 'wallet:a' })
  for (let at = 0; at < pairs; at += 1) {
    add(`hold-${at}`, 10n, { kind: 'pending', untilMs: 5000 + at })
    if (at % 2 === 0) add(`post-${at}`, 7n, { kind: 'post', pending: `hold-${at}` })
  }
  // The end of something long ago.
  add('late', 10n, { kind: 'void', pending: 'hold-1' })
  return made
}

async function written(path: string, transfers: readonly Transfer[]): Promise<string> {
  const environment = openEnvironment(path)
  const table = (name: string) => environment.table(name)
  let head = firstHead
  const byId = new Map(transfers.map((one) => [one.id, one]))
  environment.write(() => {
    for (const transfer of transfers) {
      const { sequence, id, kind, debit, credit, untilMs, pending } = transfer
      const key = numberKey(sequence)
      const text = encodeTransfer(transfer)
      head = nextHead(head, sequence, text)
      table('transfers').append(key, utf8Of(text))
      table('ids').put(utf8Of(id), key)
      if (kind === 'post' || kind === 'void') {
        table('endings').put(utf8Of(pending), key)
        const held = byId.get(pending)
        table('due').remove(Buffer.concat([numberKey(held?.untilMs ?? 0), numberKey(held?.sequence ?? 0)]))
        continue
      }
      for (const name of [debit, credit])
        table('entries').put(Buffer.concat([utf8Of(`${name}\0`), key]), present)
      if (untilMs !== 0) table('due').put(Buffer.concat([numberKey(untilMs), key]), present)
    }
    const pairs = transfers.filter(({ id }) => id.startsWith('hold')).length
    const posted = BigInt(Math.ceil(pairs / 2)) * 7n
    const held = BigInt(Math.floor(pairs / 2) - 1) * 10n
    const much = 10n ** 20n
    table('accounts').put(utf8Of('source:t'), utf8Of(`${much} 0 0 0 1001`))
    table('accounts').put(utf8Of('wallet:a'), utf8Of(`${posted} ${much} ${held} 0 1001`))
    table('accounts').put(utf8Of('revenue'), utf8Of(`0 ${posted} 0 ${held} 1002`))
    table('records').put(utf8Of('k\0one'), Buffer.concat([numberKey(4), utf8Of('"v"')]))
    const state = { sequence: transfers.length, version: 4, head }
    table('meta').put(utf8Of('state'), utf8Of(JSON.stringify(state)))
  })
  await environment.close()
  return head
}

t.test('a ledger of the first format is brought into this one, with the same chain', async (t) => {
  const path = join(t.testdir(), 'ledger')
  const transfers = transfersOf(4000)
  const head = await written(path, transfers)
  for (const turn of ['first', 'second']) {
    const ledger = new EmbeddedLedger({ path, clock: systemClock })
    const report = await ledger.check()
    t.strictSame([report.faults, report.transfers, report.head], [[], transfers.length, head], turn)
    t.equal((await ledger.ending('hold-1'))?.id, 'late')
    t.equal((await ledger.ending('hold-2'))?.id, 'post-2')
    t.equal(await ledger.ending('hold-3'), undefined)
    t.strictSame(await ledger.record('k', 'one'), { kind: 'k', key: 'one', version: 4, value: '"v"' })
    const page = await ledger.history('wallet:a', Number.MAX_SAFE_INTEGER, 5000)
    t.equal(page.length, 4001)
    t.strictSame(page.at(-1), transfers[0])
    await ledger.close()
  }
  const ledger = new EmbeddedLedger({ path, clock: systemClock })
  let expired = 0
  for (let more = await ledger.expire(Date.now()); more > 0; more = await ledger.expire(Date.now()))
    expired += more
  t.equal(expired, 1999)
  const wallet = await ledger.account('wallet:a')
  t.equal(wallet === undefined ? undefined : availableOf(wallet), 10n ** 20n - 2000n * 7n)
  t.strictSame((await ledger.check()).faults, [])
  await ledger.close()
})

t.test(`killed ${kills} times while it is brought into this format`, async (t) => {
  const transfers = transfersOf(800)
  for (let round = 0; round < kills; round += 1) {
    const path = join(t.testdir(), 'ledger')
    const head = await written(path, transfers)
    const before = statSync(join(path, 'data.mdb')).size
    const running = spawn(process.execPath, [...process.execArgv, child, join(path, 'key.pem'), path], {
      stdio: ['ignore', 'ignore', 'inherit'],
    })
    const gone = once(running, 'close')
    // It grows when its blocks are written: some kills come before the commit, some after it.
    const later = Math.floor(random() * 3)
    const isOver = (): boolean => running.exitCode !== null
    for (
      let grown = 0;
      grown <= later && !isOver();
      grown += statSync(join(path, 'data.mdb')).size > before ? 1 : 0
    )
      await new Promise((resolve) => setImmediate(resolve))
    running.kill('SIGKILL')
    await gone
    const ledger = new EmbeddedLedger({ path, clock: systemClock })
    const report = await ledger.check()
    t.strictSame(report.faults, [])
    // What the process did behind the conversion were ends of what was over.
    t.ok(report.transfers >= transfers.length)
    if (report.transfers === transfers.length) t.equal(report.head, head)
    t.strictSame(await ledger.transfer('late'), transfers.at(-1))
    await ledger.close()
  }
})

t.test('a ledger of a later version is left alone', async (t) => {
  const path = join(t.testdir(), 'ledger')
  const environment = openEnvironment(path)
  environment.write(() => environment.table('meta').put(utf8Of('format'), utf8Of('3')))
  await environment.close()
  t.throws(() => new EmbeddedLedger({ path, clock: systemClock }), { message: /format 3/ })
})
