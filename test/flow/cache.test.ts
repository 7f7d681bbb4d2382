/** The whole program between a gateway that feeds it and clients that come and go. */
import { randomBytes } from 'node:crypto'
import { readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { get as request } from 'node:http'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { pause } from '../../src/actor/clock.js'
import { type Running, run } from './running.js'
import { drip, type Upstream, upstream } from './upstream.js'

const idOf = (n: number): string => Buffer.alloc(32, n).toString('base64url')

function fedBy(url: string): Record<string, string> {
  return { DEVNET_SEED: 'false', DEVNET_BLOCK_MS: '0', TRUSTED_GATEWAYS_URLS: JSON.stringify({ [url]: 1 }) }
}

async function get(running: Running, id: string): Promise<{ answer: Response; bytes: Buffer }> {
  const answer = await fetch(`${running.urls.gateway}/raw/${id}`)
  return { answer, bytes: Buffer.from(await answer.arrayBuffer()) }
}

/** Asks until the answer comes from the store: the last byte is sent a little before the blob has its name. */
async function kept(running: Running, id: string): Promise<void> {
  for (let tries = 0; tries < 100; tries += 1) {
    if ((await get(running, id)).answer.headers.get('x-cache') === 'HIT') return
    await pause(20)
  }
  throw new Error(`${id} was not kept`)
}

/** Files below the blob folder, drafts apart. */
function blobs(dataPath: string): { blobs: string[]; drafts: string[] } {
  const folder = join(dataPath, 'blobs')
  const files = readdirSync(folder, { recursive: true, encoding: 'utf8' })
    .map((name) => join(folder, name))
    .filter((path) => statSync(path).isFile())
  const isDraft = (path: string): boolean => path.startsWith(join(folder, 'tmp'))
  return { blobs: files.filter((path) => !isDraft(path)), drafts: files.filter(isDraft) }
}

function served(
  t: Test,
  body: Buffer,
  answer: (id: string, response: Parameters<typeof drip>[0]) => void,
): Promise<Upstream> {
  return upstream(t, (id, _request, response) => {
    response.writeHead(200, { 'content-length': body.length, 'content-type': 'application/x-big' })
    answer(id, response)
  })
}

t.test('fifty first requests cause one fetch, and all stream while it arrives', async (t) => {
  const body = randomBytes(12 * 1024 * 1024)
  let finished = false
  const source = await served(t, body, (_id, response) => {
    drip(response, body, 1024 * 1024, 60)
    response.on('finish', () => {
      finished = true
    })
  })
  const running = await run(t, t.testdir(), fedBy(source.url))
  let early = 0
  const all = await Promise.all(
    Array.from({ length: 50 }, async () => {
      const answer = await fetch(`${running.urls.gateway}/raw/${idOf(1)}`)
      const pieces: Uint8Array[] = []
      for await (const piece of answer.body ?? []) {
        if (pieces.length === 0 && !finished) early += 1
        pieces.push(piece)
      }
      return Buffer.concat(pieces)
    }),
  )
  t.ok(
    all.every((bytes) => bytes.equals(body)),
    'every client has every byte',
  )
  t.equal(source.asked.length, 1, 'one fetch')
  t.equal(early, 50, 'nobody waited for the end')
  await kept(running, idOf(1))
  t.equal(source.asked.length, 1)
})

t.test('one client that leaves stops nothing for the others; when all leave, the fetch stops', async (t) => {
  const body = randomBytes(24 * 1024 * 1024)
  let torn = 0
  const source = await served(t, body, (_id, response) => {
    drip(response, body, 512 * 1024, 30)
    response.on('close', () => {
      if (!response.writableFinished) torn += 1
    })
  })
  const dataPath = t.testdir()
  const running = await run(t, dataPath, fedBy(source.url))
  const leave = new AbortController()
  const leaver = fetch(`${running.urls.gateway}/raw/${idOf(1)}`, { signal: leave.signal })
  const stayer = get(running, idOf(1))
  await (await leaver).body?.getReader().read()
  leave.abort()
  t.ok((await stayer).bytes.equals(body), 'the other has every byte')
  t.equal(source.asked.length, 1)
  t.equal(torn, 0)

  const quit = new AbortController()
  const lonely = await fetch(`${running.urls.gateway}/raw/${idOf(2)}`, { signal: quit.signal })
  await lonely.body?.getReader().read()
  quit.abort()
  for (let tries = 0; torn === 0 && tries < 100; tries += 1) await pause(50)
  t.equal(torn, 1, 'the fetch nobody wants is given up')
  for (let tries = 0; blobs(dataPath).drafts.length > 0 && tries < 100; tries += 1) {
    await pause(50)
  }
  t.strictSame(blobs(dataPath).drafts, [], 'and leaves nothing behind')
})

t.test('a source that breaks closes the socket short and is never cached', async (t) => {
  const body = randomBytes(4 * 1024 * 1024)
  const source = await served(t, body, (_id, response) =>
    drip(response, body, 256 * 1024, 5, 3 * 1024 * 1024),
  )
  const dataPath = t.testdir()
  const running = await run(t, dataPath, fedBy(source.url))
  const bytes = await new Promise<number>((resolve) => {
    request(`${running.urls.gateway}/raw/${idOf(1)}`, (response) => {
      let count = 0
      response.on('data', (piece: Buffer) => {
        count += piece.length
      })
      response.on('error', () => resolve(count))
      response.on('end', () => resolve(-1))
    })
  })
  t.ok(bytes > 0 && bytes < body.length, `closed after ${bytes} bytes`)
  t.strictSame(blobs(dataPath).blobs, [])
  t.strictSame(blobs(dataPath).drafts, [])
})

t.test('kill -9 while caching leaves no wrong byte', async (t) => {
  const body = randomBytes(16 * 1024 * 1024)
  let slow = true
  const source = await served(t, body, (_id, response) => drip(response, body, 1024 * 1024, slow ? 100 : 0))
  const dataPath = t.testdir()
  const first = await run(t, dataPath, fedBy(source.url))
  const cut = await fetch(`${first.urls.gateway}/raw/${idOf(1)}`)
  await cut.body?.getReader().read()
  await first.kill()
  t.equal(blobs(dataPath).blobs.length, 0, 'nothing half-written has a name')
  slow = false
  const second = await run(t, dataPath, fedBy(source.url))
  t.strictSame(blobs(dataPath).drafts, [], 'the rest of the first life is swept')
  t.ok((await get(second, idOf(1))).bytes.equals(body))
  t.ok((await get(second, idOf(1))).bytes.equals(body))
})

t.test(
  'a blob that rotted on disk is found out and fetched again, before it is called anything',
  async (t) => {
    const body = randomBytes(3 * 1024 * 1024)
    const source = await served(t, body, (_id, response) => drip(response, body, 1024 * 1024, 0))
    const dataPath = t.testdir()
    const first = await run(t, dataPath, fedBy(source.url))
    await kept(first, idOf(1))
    await first.kill()
    const [path = ''] = blobs(dataPath).blobs
    const bytes = readFileSync(path)
    bytes[1_000_000] = (bytes[1_000_000] ?? 0) ^ 1
    writeFileSync(path, bytes)
    const second = await run(t, dataPath, fedBy(source.url))
    const { answer, bytes: again } = await get(second, idOf(1))
    t.equal(answer.status, 200)
    t.ok(again.equals(body), 'the right bytes')
    t.equal(source.asked.length, 2, 'fetched again')
  },
)

t.test('a source that cannot be reached is 502 or 504, never 404', async (t) => {
  const hanging = await upstream(t, () => undefined)
  const folder = t.testdir({ dead: {}, late: {} })
  const dead = await run(t, `${folder}/dead`, fedBy('http://127.0.0.1:1'))
  const late = await run(t, `${folder}/late`, {
    ...fedBy(hanging.url),
    TRUSTED_GATEWAYS_REQUEST_TIMEOUT_MS: '300',
  })
  t.equal((await get(dead, idOf(1))).answer.status, 502)
  t.equal((await get(late, idOf(1))).answer.status, 504)
})
