import { createHmac, randomBytes } from 'node:crypto'
import { createServer, type IncomingHttpHeaders } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { pino } from 'pino'
import t, { type Test } from 'tap'
import { systemClock } from '../../src/actor/clock.js'
import { silentLog } from '../../src/actor/log.js'
import { Meters } from '../../src/actor/meter.js'
import { meterTable } from '../../src/actor/meter-table.js'
import type { WebhookOptions } from '../../src/ingest/webhooks.js'
import { Webhooks } from '../../src/ingest/webhooks.js'
import { folder, house } from './house.js'
import { settled, town } from './town.js'

interface Delivery {
  /** Path and query of the request. */
  readonly path: string
  readonly headers: IncomingHttpHeaders
  readonly text: string
  readonly event: string
  readonly data: Readonly<Record<string, unknown>>
}

/** A receiver; `status` may change. It keeps what it took. */
async function receiver(t: Test, port = 0) {
  const state = { status: 200, attempts: 0, delivered: [] as Delivery[] }
  const server = createServer((request, response) => {
    const pieces: Buffer[] = []
    request.on('data', (piece: Buffer) => pieces.push(piece))
    request.on('end', () => {
      const text = Buffer.concat(pieces).toString()
      state.attempts += 1
      if (state.status === 200)
        state.delivered.push({ path: request.url ?? '', headers: request.headers, text, ...JSON.parse(text) })
      response.writeHead(state.status).end()
    })
  })
  await new Promise<void>((resolve) => server.listen(port, '127.0.0.1', resolve))
  t.teardown(() => server.close())
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/hook`
  return Object.assign(state, { url })
}

const secret = randomBytes(32)
const delivery = {
  secret,
  release: 'test',
  timeoutMs: 60_000,
  atOnce: 5,
  retryMs: 20,
  retryMaxMs: 100,
  attemptsMax: 50,
}

function options(servers: readonly string[], more: Partial<WebhookOptions> = {}): WebhookOptions {
  const all = {
    index: { kind: 'always' as const },
    blocks: true,
    cached: false,
    uploads: false,
    waitingMax: 1000,
  }
  return { servers, ...all, delivery, ...more }
}

async function until(done: () => boolean, what: string): Promise<void> {
  for (let turn = 0; turn < 5000 && !done(); turn += 1)
    await new Promise((resolve) => setTimeout(resolve, 20))
  if (!done()) throw new Error(`never: ${what}`)
}

t.test('receivers are told of blocks, transactions and items, signed, and each once', async (t) => {
  const { devnet, bundle, post } = await town(t)
  const hook = await receiver(t)
  const plain = await post(randomBytes(100), { App: 'x' })
  const { root, items } = await bundle(4)
  devnet.mine()
  const one = house(t, devnet.url, { webhooks: options([hook.url]) })
  await settled(one, devnet)
  const ids = (event: string): unknown[] =>
    hook.delivered.filter((entry) => entry.event === event).map(({ data }) => data.id)
  await until(() => ids('ans104-data-item-indexed').length >= items.length, 'items')
  await until(() => ids('tx-indexed').length >= 2, 'transactions')
  t.same(new Set(ids('ans104-data-item-indexed')), new Set(items))
  t.ok(ids('tx-indexed').includes(plain) && ids('tx-indexed').includes(root))
  const heights = hook.delivered
    .filter(({ event }) => event === 'block-indexed')
    .map(({ data }) => data.height)
  t.ok(heights.includes(one.following.height))
  t.equal(
    new Set(hook.delivered.map(({ headers }) => headers['webhook-id'])).size,
    hook.delivered.length,
    'each once',
  )
  for (const { headers, text } of hook.delivered) {
    const signed = `${headers['webhook-id']}.${headers['webhook-timestamp']}.${text}`
    const expected = createHmac('sha256', secret).update(signed).digest('base64')
    t.equal(headers['webhook-signature'], `v1,${expected}`)
  }
  const item = hook.delivered.find(
    ({ event, data }) => event === 'ans104-data-item-indexed' && data.id === items[1],
  )
  t.equal(item?.data.root_tx_id, root)
})

t.test('filters choose what is told, at the whole address of the receiver', async (t) => {
  const { devnet, bundle, post } = await town(t)
  const hook = await receiver(t)
  const wanted = await post(randomBytes(10), { App: 'wanted' })
  await bundle(2)
  devnet.mine()
  const index = { kind: 'tags' as const, tags: [{ name: 'App', value: 'wanted' }] }
  const url = `${hook.url}?key=a%20b`
  const one = house(t, devnet.url, { webhooks: options([url], { index, blocks: false }) })
  await settled(one, devnet)
  await until(() => hook.delivered.length > 0, 'the wanted one')
  t.equal(hook.delivered[0]?.path, '/hook?key=a%20b', 'at the address as it was given, query and all')
  t.same(
    hook.delivered.map(({ data }) => data.id),
    [wanted],
  )
})

t.test(
  'what a receiver does not take is told later, also by another process, and holds up nobody',
  async (t) => {
    const path = join(folder(t), 'hooks')
    const away = await receiver(t)
    const there = await receiver(t)
    away.status = 500
    const meters = new Meters(meterTable, new SharedArrayBuffer(65_536 * 4), 0)
    const parts = { meters, clock: systemClock, log: silentLog }
    const first = new Webhooks(path, options([away.url, there.url]), parts)
    const events = Array.from({ length: 20 }, (_, at) => ({
      key: Buffer.alloc(16, at + 1),
      body: Buffer.from(JSON.stringify({ event: 'block-indexed', data: { height: at } })),
    }))
    first.announce(events)
    void first.run()
    await until(() => there.delivered.length === 20, 'the receiver that is there')
    await until(() => away.attempts > 25, 'tries again')
    await first.stop()
    t.equal(away.delivered.length, 0)
    away.status = 200
    const second = new Webhooks(path, options([away.url, there.url]), parts)
    void second.run()
    await until(() => away.delivered.length === 20, 'the receiver that came back')
    await second.stop()
    t.equal(there.delivered.length, 20, 'told once')
  },
)

t.test(
  'where the agenda is full new events are dropped, and an event that is never accepted is given up',
  async (t) => {
    const hook = await receiver(t)
    hook.status = 404
    const meters = new Meters(meterTable, new SharedArrayBuffer(65_536 * 4), 0)
    const lines: { receiver?: string }[] = []
    const log = pino({ level: 'info' }, { write: (line: string) => lines.push(JSON.parse(line)) })
    const parts = { meters, clock: systemClock, log }
    const given = options([`${hook.url}?key=secret`], {
      waitingMax: 3,
      delivery: { ...delivery, attemptsMax: 2 },
    })
    const hooks = new Webhooks(join(folder(t), 'hooks'), given, parts)
    hooks.announce(
      Array.from({ length: 5 }, (_, at) => ({ key: Buffer.alloc(16, at + 1), body: Buffer.from('{}') })),
    )
    const count = (outcome: string): number =>
      Number(new RegExp(`webhooks_total{outcome="${outcome}"} (\\d+)`).exec(meters.text())?.[1])
    t.equal(count('dropped'), 2)
    void hooks.run()
    await until(() => count('given-up') === 3, 'giving up')
    t.equal(hook.attempts, 6)
    const named = lines.flatMap(({ receiver }) => (receiver === undefined ? [] : [receiver]))
    t.same(named, [new URL(hook.url).origin], 'the log names the receiver once')
    t.notMatch(JSON.stringify(lines), 'secret', 'and nothing of its query')
    await hooks.stop()
  },
)
