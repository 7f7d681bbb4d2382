/** What one client of ClickHouse does to others: at a stand-in for its HTTP interface. */
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import t, { type Test } from 'tap'
import { systemClock } from '../../src/actor/clock.js'
import { ClickhouseClient } from '../../src/clickhouse/clickhouse-client.js'
import { isRefusal } from '../../src/format/refusal.js'

/** Statements are what it does: a code of an exception, a status without one, or how many milliseconds it takes. */
async function open(t: Test, options: { readonly slots: number; readonly timeoutMs?: number }) {
  const server = createServer((request, response) => {
    const pieces: Buffer[] = []
    request.on('data', (piece: Buffer) => pieces.push(piece))
    request.on('end', () => {
      const [what, number] = Buffer.concat(pieces).toString().split(' ')
      if (what === 'code') response.writeHead(500, { 'x-clickhouse-exception-code': String(number) })
      if (what === 'status') response.writeHead(Number(number))
      const text = what === 'code' ? `Code: ${number}. DB::Exception: words` : 'text'
      systemClock.after(what === 'take' ? Number(number) : 0, () => response.end(text))
    })
  })
  await new Promise((resolve) => server.listen(0, '127.0.0.1', () => resolve(undefined)))
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  const about = { url, database: 'default', user: 'default', password: '', writeMs: 1000, timeoutMs: 1000 }
  const client = new ClickhouseClient({ ...about, waitingMax: 64, clientMax: 32, ...options }, systemClock)
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
    t.equal(String(await client.ask('take 0', 1000)), 'text', `after code ${code}`)
  }
  t.match(await client.ask('code 168', 1000), { refused: 'too-large', fault: 'client' })
  t.match(await client.ask('code 202', 1000), { refused: 'busy' })
  t.match(await client.ask('code 43', 1000), { refused: 'upstream' })
})

t.test('one that refuses everything, or answers without a code, is left alone', async (t) => {
  for (const sql of ['code 516', 'code 81', 'code 497', 'status 502']) {
    const client = await open(t, { slots: 4 })
    for (let tries = 0; tries < 3; tries += 1) t.match(await client.ask(sql, 1000), { refused: 'upstream' })
    t.match(await client.ask('take 0', 1000), { refused: 'busy' }, `after ${sql}`)
  }
})

t.test('a statement longer than ClickHouse takes is refused before it is sent', async (t) => {
  const client = await open(t, { slots: 4 })
  const refused = await client.ask(`take 0 ${'x'.repeat(2 ** 22)}`, 1000)
  t.equal(isRefusal(refused) && refused.refused, 'too-large')
})

t.test('statements of one client do not make those of others wait for all of them', async (t) => {
  const client = await open(t, { slots: 1, timeoutMs: 1000 })
  const ask = (address: string, sql: string) => client.ask(sql, 1000, {}, { client: address })
  const dear = Array.from({ length: 40 }, () => ask('192.0.2.1', 'take 100'))
  for (let tries = 0; tries < 5; tries += 1) {
    const begun = systemClock.monotonic()
    t.equal(String(await ask('198.51.100.1', 'take 1')), 'text')
    const tookMs = systemClock.monotonic() - begun
    t.ok(tookMs < 500, `a statement of another has waited for ${Math.round(tookMs)} ms`)
  }
  const outcomes = (await Promise.all(dear)).map((one) => (isRefusal(one) ? one.refused : 'text'))
  t.equal(outcomes.filter((one) => one === 'busy').length, 8, 'more than its share is refused at once')
  t.ok(outcomes.includes('late'), 'and what waits for longer than its bound')
  t.equal(
    String(await ask('192.0.2.1', 'take 0')),
    'text',
    'nothing of that counts as a failure of ClickHouse',
  )
})
