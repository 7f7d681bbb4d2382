/** The whole program between a gateway that feeds it and clients that come and go. */
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { type IncomingMessage, get as request, type ServerResponse } from 'node:http'
import { join } from 'node:path'
import t from 'tap'
import { eventually } from '../eventually.js'
import { type Running, run, twoEdges } from './running.js'
import { drip, upstream } from './upstream.js'

const idOf = (n: number): string => Buffer.alloc(32, n).toString('base64url')

function fedBy(url: string): Record<string, string> {
  return { SERVICES: 'gateway', DEVNET_BLOCK_MS: '0', TRUSTED_GATEWAYS_URLS: JSON.stringify({ [url]: 1 }) }
}

async function get(running: Running, id: string): Promise<{ answer: Response; bytes: Buffer }> {
  const answer = await fetch(`${running.urls.gateway}/raw/${id}`)
  return { answer, bytes: Buffer.from(await answer.arrayBuffer()) }
}

/** Asks until the answer comes from the store: the last byte is sent a little before the blob has its name. */
async function kept(running: Running, id: string): Promise<void> {
  const isHit = async () => (await get(running, id)).answer.headers.get('x-cache') === 'HIT'
  if (!(await eventually('a hit', isHit))) throw new Error(`${id} was not kept`)
}

/** Files below the blob folder, and drafts that have bytes: some without are made ahead. */
function blobs(dataPath: string): { blobs: string[]; drafts: string[] } {
  const folder = join(dataPath, 'blobs')
  const files = readdirSync(folder, { recursive: true, encoding: 'utf8' })
    .map((name) => join(folder, name))
    .filter((path) => statSync(path, { throwIfNoEntry: false })?.isFile() === true)
  const isDraft = (path: string): boolean => path.startsWith(join(folder, 'tmp'))
  const bytesOf = (path: string): number => statSync(path, { throwIfNoEntry: false })?.size ?? 0
  return {
    blobs: files.filter((path) => !isDraft(path)),
    drafts: files.filter((path) => isDraft(path) && bytesOf(path) > 0),
  }
}

/** An answer of which some bytes are here. */
async function begun(url: string): Promise<IncomingMessage> {
  const [answer] = (await once(request(url), 'response')) as [IncomingMessage]
  answer.on('error', () => undefined)
  await once(answer, 'data')
  return answer
}

/** Something that is waited for, and given once. */
function signal(): { readonly given: Promise<void>; give(): void } {
  let give: () => void = () => undefined
  const given = new Promise<void>((resolve) => {
    give = resolve
  })
  return { given, give }
}

function answerWith(response: ServerResponse, body: Buffer): void {
  response.writeHead(200, { 'content-length': body.length, 'content-type': 'application/x-big' })
}

t.test('first requests, clients that leave, and a source that breaks off', async (t) => {
  const served = new Map<string, (response: ServerResponse) => void>()
  const source = await upstream(t, (id, _request, response) => served.get(id)?.(response))
  const requested = (id: string): number => source.requested.filter((one) => one === id).length
  const dataPath = t.testdir()
  const running = await run(t, dataPath, { ...fedBy(source.url), ...twoEdges })

  await t.test('fifty first requests cause one fetch, and all stream while it arrives', async (t) => {
    const [id, body] = [idOf(1), randomBytes(3 * 1024 * 1024)]
    const all50 = signal()
    served.set(id, (response) => {
      answerWith(response, body)
      drip(response, body, 256 * 1024, 60, body.length, all50.given)
    })
    let early = 0
    const all = await Promise.all(
      Array.from({ length: 50 }, async () => {
        const answer = await fetch(`${running.urls.gateway}/raw/${id}`)
        const pieces: Uint8Array[] = []
        for await (const piece of answer.body ?? []) {
          if (pieces.length === 0) early += 1
          // The last piece is sent when everybody has one.
          if (early === 50) all50.give()
          pieces.push(piece)
        }
        return Buffer.concat(pieces)
      }),
    )
    t.ok(
      all.every((bytes) => bytes.equals(body)),
      'every client has every byte',
    )
    t.equal(requested(id), 1, 'one fetch')
    await kept(running, id)
    t.equal(requested(id), 1)
  })

  await t.test('one client that leaves does not stop the fetch; when all leave, it stops', async (t) => {
    const [shared, lonely] = [idOf(2), idOf(3)]
    const body = randomBytes(6 * 1024 * 1024)
    let torn = 0
    const gone = signal()
    const countTorn = (response: ServerResponse): void => {
      response.on('close', () => {
        if (!response.writableFinished) torn += 1
      })
    }
    served.set(shared, (response) => {
      answerWith(response, body)
      drip(response, body, 128 * 1024, 5, body.length, gone.given)
      countTorn(response)
    })
    // Where less than 8 MiB are missing the fetch goes on without readers.
    served.set(lonely, (response) => {
      response.writeHead(200, { 'content-length': 64 * 1024 * 1024 }).write(body)
      countTorn(response)
    })
    const leave = new AbortController()
    const leaver = fetch(`${running.urls.gateway}/raw/${shared}`, { signal: leave.signal })
    const stayer = await fetch(`${running.urls.gateway}/raw/${shared}`)
    await (await leaver).body?.getReader().read()
    leave.abort()
    gone.give()
    t.ok(Buffer.from(await stayer.arrayBuffer()).equals(body), 'the other has every byte')
    t.equal(requested(shared), 1)
    t.equal(torn, 0)
    await kept(running, shared)

    // A client that only ends its side may still read: the reset is what states that it has left.
    const alone = await begun(`${running.urls.gateway}/raw/${lonely}`)
    alone.socket.resetAndDestroy()
    t.ok(
      await eventually('the fetch is given up', async () => torn === 1),
      'the fetch nobody wants is given up',
    )
    t.ok(
      await eventually('no draft is left', async () => blobs(dataPath).drafts.length === 0),
      'and leaves nothing behind',
    )
  })

  await t.test('where a source breaks off the socket is closed early, and nothing is cached', async (t) => {
    const [id, body] = [idOf(4), randomBytes(4 * 1024 * 1024)]
    served.set(id, (response) => {
      answerWith(response, body)
      drip(response, body, 256 * 1024, 5, 3 * 1024 * 1024)
    })
    const before = blobs(dataPath).blobs
    const bytes = await new Promise<number>((resolve) => {
      request(`${running.urls.gateway}/raw/${id}`, (response) => {
        let count = 0
        response.on('data', (piece: Buffer) => {
          count += piece.length
        })
        response.on('error', () => resolve(count))
        response.on('end', () => resolve(-1))
      })
    })
    t.ok(bytes > 0 && bytes < body.length, `closed after ${bytes} bytes`)
    t.ok(
      await eventually('no draft is left', async () => blobs(dataPath).drafts.length === 0),
      'nothing is left',
    )
    t.strictSame(blobs(dataPath).blobs, before)
  })
})

t.test('the remains of a kill -9 while caching, and a damaged blob, are never served', async (t) => {
  const half = { id: idOf(1), body: randomBytes(4 * 1024 * 1024) }
  const rotten = { id: idOf(2), body: randomBytes(3 * 1024 * 1024) }
  let slow = true
  const source = await upstream(t, (id, _request, response) => {
    const { body } = id === half.id ? half : rotten
    answerWith(response, body)
    // The first life gets no more than the half of it.
    if (slow && id === half.id) response.write(body.subarray(0, body.length / 2))
    else drip(response, body, 1024 * 1024, 0)
  })
  const dataPath = t.testdir()
  const first = await run(t, dataPath, fedBy(source.url))
  await kept(first, rotten.id)
  const cut = await fetch(`${first.urls.gateway}/raw/${half.id}`)
  await cut.body?.getReader().read()
  await first.kill()
  const [path = '', ...more] = blobs(dataPath).blobs
  t.strictSame(more, [], 'nothing half-written has a name')
  const bytes = readFileSync(path)
  bytes[1_000_000] = (bytes[1_000_000] ?? 0) ^ 1
  writeFileSync(path, bytes)
  slow = false

  const second = await run(t, dataPath, fedBy(source.url))
  t.strictSame(blobs(dataPath).drafts, [], 'the rest of the first life is swept')
  t.ok((await get(second, half.id)).bytes.equals(half.body))
  t.ok((await get(second, half.id)).bytes.equals(half.body))
  const { answer, bytes: again } = await get(second, rotten.id)
  t.equal(answer.status, 200)
  t.ok(again.equals(rotten.body), 'the right bytes')
  t.equal(
    source.requested.filter((id) => id === rotten.id).length,
    2,
    'fetched again, before it is called anything',
  )
})

t.test('a source that cannot be reached is 502 or 504, never 404', async (t) => {
  const hanging = await upstream(t, () => undefined)
  const running = await run(t, t.testdir(), {
    ...fedBy(hanging.url),
    TRUSTED_GATEWAYS_REQUEST_TIMEOUT_MS: '300',
  })
  t.equal((await get(running, idOf(1))).answer.status, 504)
  await hanging.close()
  t.equal((await get(running, idOf(2))).answer.status, 502)
})
