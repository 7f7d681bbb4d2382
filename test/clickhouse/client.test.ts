/** What one client of ClickHouse does to others: at a stand-in for its HTTP interface. */
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import t, { type Test } from 'tap'
import { type Clock, systemClock } from '../../src/actor/clock.js'
import { ClickhouseClient } from '../../src/clickhouse/clickhouse-client.js'
import { isRefusal } from '../../src/format/refusal.js'
import { eventually } from '../eventually.js'
import { HandClock } from '../names/hand-clock.js'

/** Statements are what it does: a code of an exception, a status without one, an answer, or one that is held back. */
async function open(
  t: Test,
  options: { readonly slots: number; readonly timeoutMs?: number },
  clock: Clock = systemClock,
  held: (() => void)[] = [],
) {
  const server = createServer((request, response) => {
    const pieces: Buffer[] = []
    request.on('data', (piece: Buffer) => pieces.push(piece))
    request.on('end', () => {
      const [what, number] = Buffer.concat(pieces).toString().split(' ')
      if (what === 'code') response.writeHead(500, { 'x-clickhouse-exception-code': String(number) })
      if (what === 'status') response.writeHead(Number(number))
      const text = what === 'code' ? `Code: ${number}. DB::Exception: words` : 'text'
      if (what === 'hold') held.push(() => response.end(text))
      else response.end(text)
    })
  })
  await new Promise((resolve) => server.listen(0, '127.0.0.1', () => resolve(undefined)))
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  const about = {
    url,
    database: 'default',
    user: 'default',
    password: '',
    writeMs: 60_000,
    timeoutMs: 60_000,
  }
  const client = new ClickhouseClient({ ...about, waitingMax: 64, clientMax: 32, ...options }, clock)
  t.teardown(async () => {
    await client.close()
    server.close()
  })
  return client
}

t.test('what ClickHouse answers about one statement keeps nobody else from it', async (t) => {
  const client = await open(t, { slots: 4 })
  // Codes of its source (ErrorCodes.cpp): syntax, types, sizes, depth, memory, time, rows, bytes, quota of one statement.
  const codes = [
    6, 36, 42, 43, 62, 131, 158, 159, 160, 161, 162, 167, 168, 191, 202, 241, 306, 307, 396, 452, 999,
  ]
  for (const code of codes) {
    for (let tries = 0; tries < 4; tries += 1) {
      const refused = await client.ask(`code ${code}`, 1000)
      t.ok(isRefusal(refused), `${code}`)
    }
    t.equal(String(await client.ask('take', 1000)), 'text', `after code ${code}`)
  }
  t.match(await client.ask('code 168', 1000), { refused: 'too-large', fault: 'client' })
  t.match(await client.ask('code 202', 1000), { refused: 'busy' })
  t.match(await client.ask('code 43', 1000), { refused: 'upstream' })
})

t.test('one that refuses everything, or answers without a code, is left alone', async (t) => {
  for (const sql of ['code 516', 'code 81', 'code 497', 'status 502']) {
    const client = await open(t, { slots: 4 })
    for (let tries = 0; tries < 3; tries += 1) t.match(await client.ask(sql, 1000), { refused: 'upstream' })
    t.match(await client.ask('take', 1000), { refused: 'busy' }, `after ${sql}`)
  }
})

t.test('a statement longer than ClickHouse takes is refused before it is sent', async (t) => {
  const client = await open(t, { slots: 4 })
  const refused = await client.ask(`take ${'x'.repeat(2 ** 22)}`, 1000)
  t.equal(isRefusal(refused) && refused.refused, 'too-large')
})

t.test('statements of one client do not make those of others wait for all of them', async (t) => {
  const [clock, held]: [HandClock, (() => void)[]] = [new HandClock(), []]
  const client = await open(t, { slots: 1, timeoutMs: 1000 }, clock, held)
  const ask = (address: string, sql: string) => client.ask(sql, 1000, {}, { client: address })
  const isUnderWay = (): Promise<boolean> => eventually('one is under way', () => held.length > 0)
  const end = async (): Promise<void> => {
    await isUnderWay()
    held.shift()?.()
  }
  const dear = Array.from({ length: 40 }, () => ask('192.0.2.1', 'hold'))
  for (let tries = 0; tries < 5; tries += 1) {
    await isUnderWay()
    const other = ask('198.51.100.1', 'take')
    await clock.turn(100)
    await end()
    t.equal(String(await other), 'text', 'it has waited for the end of one, and for no more')
  }
  await isUnderWay()
  // The last one began later than all others began to wait.
  await clock.turn(1000 - 5 * 100)
  await end()
  const outcomes = (await Promise.all(dear)).map((one) => (isRefusal(one) ? one.refused : 'text'))
  t.equal(outcomes.filter((one) => one === 'busy').length, 8, 'more than its share is refused at once')
  t.equal(outcomes.filter((one) => one === 'text').length, 6)
  t.ok(outcomes.includes('late'), 'and what waits for longer than its bound')
  t.equal(String(await ask('192.0.2.1', 'take')), 'text', 'nothing of that counts as a failure of ClickHouse')
})
