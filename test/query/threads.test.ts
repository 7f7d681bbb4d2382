import { once } from 'node:events'
import { connect } from 'node:net'
import { MessageChannel } from 'node:worker_threads'
import t, { type Test } from 'tap'
import { Chain, messagesOf } from '../../bench/index/chain.js'
import { pause, systemClock } from '../../src/actor/clock.js'
import { answer } from '../../src/actor/mailbox-address.js'
import { startThread } from '../../src/actor/thread.js'
import { CatalogKeeper } from '../../src/catalog/catalog-keeper.js'
import { Generations } from '../../src/catalog/generations.js'
import { serve } from '../../src/http/listen.js'
import { leftTable, type QueryLine, QueryLines } from '../../src/query/lines.js'
import { createQueryHandler, type QueryThreads } from '../../src/query/query-handler.js'
import { queryLimits } from '../../src/query/query-limits.js'
import type { QueryOrder, QueryReply, QueryResponse } from '../../src/query/query-messages.js'
import { type Answers, movedOf, QueryScheduler } from '../../src/query/scheduler.js'
import { folders } from '../../src/threads/folders.js'
import type { QueryGiven } from '../../src/threads/index/open-query.js'
import { settingsOf } from '../../src/threads/thread-settings.js'
import { eventually } from '../eventually.js'
import { scratch } from '../scratch.js'
import { threadSettings } from '../thread-settings.js'

const queue = { waitingMax: 4, clientMax: 2, waitMs: 60_000 }
const jsonAnswer = (body: string): QueryResponse => ({
  status: 200,
  lines: ['Content-Type: application/json'],
  body,
})

/** The query address on a real socket; whose turn a request takes stands in its header `X-Client`. */
async function served(t: Test, lines: readonly QueryLine[], given = queue) {
  const thrown: unknown[] = []
  const threads = new QueryLines(lines, { ...given, heldMaxBytes: 2 ** 20 })
  const handle = createQueryHandler({
    threads,
    sizeMaxBytes: queryLimits.sizeMaxBytes,
    clientOf: (request) => request.header('x-client') ?? 'nobody',
  })
  const server = serve(
    (request, reply) => {
      handle(request, reply, '').catch((error: unknown) => thrown.push(error))
    },
    { host: '127.0.0.1', port: 0, stallMs: 5000, requestsMax: 100, onThrow: (error) => thrown.push(error) },
  )
  await server.listening
  const close = async (): Promise<void> => {
    threads.close()
    await server.close(100)
    t.same(thrown, [])
  }
  const url = `http://127.0.0.1:${server.port}/graphql`
  const ask = (query: string, client = 'nobody', signal?: AbortSignal): Promise<Response> =>
    fetch(`${url}?query=${encodeURIComponent(query)}`, {
      headers: { 'x-client': client },
      ...(signal === undefined ? {} : { signal }),
    })
  return { url, port: server.port, ask, close }
}

/** A scheduler on this thread behind a real line. */
function schedulerLine(answers: Answers, given = queue): QueryLine {
  const { port1, port2 } = new MessageChannel()
  const left = leftTable(given)
  const places = new Int32Array(left)
  const log = { error: () => undefined }
  const scheduler = new QueryScheduler({ answers, queue: given, clock: systemClock, work: systemClock, log })
  answer<QueryOrder, QueryReply>(
    port1,
    ({ request, client, place }) => scheduler.ask(request, client, () => Atomics.load(places, place) !== 0),
    { movesOf: movedOf },
  )
  return { port: port2, left }
}

/** Answers that come when they are let go. */
class Gate implements Answers {
  readonly begun: string[] = []
  readonly gone: (() => boolean)[] = []
  readonly #open: (() => void)[] = []

  answer({ query }: { readonly query: string }, isGone: () => boolean): Promise<QueryResponse> {
    this.begun.push(query)
    this.gone.push(isGone)
    return new Promise((resolve) => this.#open.push(() => resolve(jsonAnswer(query))))
  }

  open(): void {
    for (const open of this.#open.splice(0)) open()
  }
}

t.test('a full queue, and a client with too many queries in it, get 503 with Retry-After', async (t) => {
  const gate = new Gate()
  const { ask, close } = await served(t, [schedulerLine(gate)])
  const first = [ask('1', 'a'), ask('2', 'a')]
  await eventually('two queries have begun', async () => gate.begun.length === 2)
  const third = await ask('3', 'a')
  t.equal(third.status, 503)
  t.equal(third.headers.get('retry-after'), '1')
  t.match(await third.json(), { errors: [{ extensions: { code: 'BUSY' } }] })
  const others = [ask('4', 'b'), ask('5', 'c')]
  await eventually('four queries have begun', async () => gate.begun.length === 4)
  t.equal((await ask('6', 'b')).status, 503, 'no room for who has one already')
  gate.open()
  for (const each of [...first, ...others]) t.equal((await each).status, 200)
  const again = ask('7', 'a')
  await eventually('five queries have begun', async () => gate.begun.length === 5)
  gate.open()
  t.equal((await again).status, 200, 'there is room again')
  await close()
})

t.test('the last query of who has most makes room for who has none', async (t) => {
  const gate = new Gate()
  const { ask, close } = await served(t, [schedulerLine(gate, { ...queue, waitingMax: 8 })])
  const begun = async (query: string, client: string): Promise<{ readonly answer: Promise<Response> }> => {
    const before = gate.begun.length
    const replying = ask(query, client)
    await eventually('another query has begun', () => gate.begun.length > before)
    return { answer: replying }
  }
  const [one, two, three, four] = [
    await begun('1', 'a'),
    await begun('2', 'a'),
    await begun('3', 'b'),
    await begun('4', 'b'),
  ]
  const other = await begun('5', 'c')
  t.equal((await two.answer).status, 503)
  t.equal(gate.gone[1]?.(), true, 'and is not worked on any more')
  gate.open()
  for (const { answer } of [one, three, four, other]) t.equal((await answer).status, 200)
  await close()
})

t.test('a query whose client has left is not begun, and a running one is ended', async (t) => {
  let isHeld = true
  let begun = 0
  const seen: (() => boolean)[] = []
  const answers: Answers = {
    answer: (_, isGone) => {
      begun += 1
      seen.push(isGone)
      return new Promise((resolve) => {
        const look = (): void => void (isHeld ? setImmediate(look) : resolve(jsonAnswer('{}')))
        look()
      })
    },
  }
  const { port, close } = await served(t, [schedulerLine(answers)])
  const socket = connect(port, '127.0.0.1')
  await once(socket, 'connect')
  socket.write('GET /graphql?query=x HTTP/1.1\r\nHost: x\r\nX-Client: a\r\n\r\n')
  await eventually('one query has begun', async () => begun === 1)
  t.equal(seen[0]?.(), false)
  socket.resetAndDestroy()
  await eventually('the client is known to have left', async () => seen[0]?.() === true)
  isHeld = false
  await close()
})

t.test('a bug fails one answer only, and a large answer is complete', async (t) => {
  const large = JSON.stringify({ data: 'ä'.repeat(500_000) })
  const answers: Answers = {
    answer: ({ query }) => {
      if (query.includes('bug')) throw new Error('a bug')
      return query.includes('late') ? Promise.reject(new Error('a late bug')) : jsonAnswer(large)
    },
  }
  const { ask, close } = await served(t, [schedulerLine(answers)])
  for (const query of ['bug', 'late']) {
    const failed = await ask(query)
    t.equal(failed.status, 500)
    t.match(await failed.json(), { errors: [{ extensions: { code: 'INTERNAL_SERVER_ERROR' } }] })
  }
  for (let turn = 0; turn < 6; turn += 1) t.equal(await (await ask('large')).text(), large)
  await close()
})

t.test('queries are answered by threads of their own, beside each other', async (t) => {
  const { config, memory } = threadSettings(scratch('query-threads'), {
    GRAPHQL_CPU_MS: '10000',
    GRAPHQL_TIME_MS: '60000',
    GRAPHQL_QUEUE_MAX: '16',
  })
  const place = { path: folders(config).catalog, touchEveryMs: 0 }
  const keeper = new CatalogKeeper(place, new Generations(memory.generations), systemClock)
  for (const block of new Chain({ items: 300, itemsPerBundle: 100, bundlesPerBlock: 1, seed: 8 }).blocks()) {
    for (const message of messagesOf(block)) await keeper.handle(message)
  }
  const nodes = ['http://127.0.0.1:9']
  const given: QueryGiven = { settings: settingsOf(config, 'query'), memory, row: 0, nodes }
  const threads = [await startThread('query-1', 'query', given), await startThread('query-2', 'query', given)]
  const lines = threads.map((thread) => {
    const left = leftTable(config.queries)
    return { port: thread.connect({ left }), left }
  })
  const { ask, url, close } = await served(t, lines, config.queries)
  const query = '{ transactions(first: 100) { count edges { node { id tags { name value } } } } }'
  const answers = await Promise.all(Array.from({ length: 12 }, async () => (await ask(query)).text()))
  t.equal(new Set(answers).size, 1)
  const { data } = JSON.parse(answers[0] ?? '')
  t.equal(data.transactions.edges.length, 100)
  t.equal(data.transactions.count, 303)
  const posted = await fetch(url, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify([{ query }, { query: '{ nothing }' }]),
  })
  const [whole, wrong] = (await posted.json()) as { errors?: unknown[] }[]
  t.same(whole, JSON.parse(answers[0] ?? ''))
  t.equal(wrong?.errors?.length, 1)
  const page = await fetch(url, { headers: { accept: 'text/html' } })
  t.match(page.headers.get('content-security-policy'), /default-src 'none'/)
  await close()
  for (const thread of threads) await thread.stop(60_000)
  await keeper.close()
})

t.test('an answer that its client does not read makes room for the queries of others', async (t) => {
  const large = `"${'x'.repeat(8_000_000)}"`
  const line = schedulerLine({ answer: () => jsonAnswer(large) }, { ...queue, clientMax: 64, waitingMax: 64 })
  const { ask, close, port } = await served(t, [line], { ...queue, clientMax: 64, waitingMax: 64 })
  /** Clients that read nothing, each of a network of its own. */
  const silent = await Promise.all(
    Array.from({ length: 4 }, async (_, at) => {
      const socket = connect({
        port,
        host: '127.0.0.1',
        onread: { buffer: Buffer.alloc(1), callback: () => false },
      })
      await once(socket, 'connect')
      socket.on('error', () => undefined)
      socket.write(`GET /graphql?query={a} HTTP/1.1\r\nHost: a\r\nX-Client: 20.${at}.1.1\r\n\r\n`)
      return socket
    }),
  )
  await pause(300)
  for (let at = 0; at < 3; at += 1) {
    const answer = await ask('{b}', '198.51.100.7')
    t.equal(answer.status, 200)
    t.equal((await answer.text()).length, large.length)
  }
  for (const socket of silent) socket.destroy()
  await close()
})

t.test('the memory of a large answer is given back as soon as its client has it', async (t) => {
  const replies: QueryReply[] = []
  const threads: QueryThreads = {
    ask: async () => {
      const reply = { ...jsonAnswer(''), body: new TextEncoder().encode(`"${'x'.repeat(3_000_000)}"`) }
      replies.push(reply)
      return reply
    },
    holding: () => () => undefined,
  }
  const thrown: unknown[] = []
  const handle = createQueryHandler({ threads, sizeMaxBytes: 1000, clientOf: () => 'nobody' })
  const server = serve(
    (request, reply) => {
      handle(request, reply, '').catch((error: unknown) => thrown.push(error))
    },
    { host: '127.0.0.1', port: 0, stallMs: 5000, requestsMax: 100, onThrow: (error) => thrown.push(error) },
  )
  await server.listening
  const url = `http://127.0.0.1:${server.port}/graphql?query={__typename}`
  t.equal(((await (await fetch(url)).json()) as string).length, 3_000_000)
  const left = (at: number): number => {
    const reply = replies[at]
    return reply !== undefined && 'body' in reply ? reply.body.length : -1
  }
  await eventually('no query of the first line is under way', async () => left(0) === 0)
  const leaving = await fetch(url)
  await leaving.body?.cancel()
  await eventually('no query of the second line is under way', async () => left(1) === 0)
  await server.close(100)
  t.same(thrown, [])
})
