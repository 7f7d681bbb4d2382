import { spawn } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { lstat, readFile, rm, symlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import t, { type Test } from 'tap'
import { type BlobDraft, BlobStore, blobPath } from '../../src/store/blobs.js'
import { eventually } from '../eventually.js'
import { scratch } from '../scratch.js'
import { drain, gateways, type Rig, rig, sha256, someId, sure, upstream } from './rig.js'

const body = randomBytes(5000)
const digest = sha256(body)

/** A fetcher whose store holds `body` under the id that is returned. */
async function stocked(t: Test): Promise<{
  house: Rig
  edge: ReturnType<Rig['edge']>
  id: ReturnType<typeof someId>
  requests: () => number
}> {
  const server = await upstream((_, response) => response.end(body))
  const house = await rig({ source: gateways([server.url]) })
  t.teardown(async () => {
    await house.close()
    await server.close()
  })
  const edge = house.edge()
  const id = someId()
  const content = edge.grow(sure(await edge.open(id)))
  t.ok((await drain(content, 0, body.length)).equals(body))
  content.close()
  await eventually(
    'the content is stored, and no transfer held',
    () => house.catalog.blobSize(digest) !== undefined && house.fetcher.held === 0,
  )
  return { house, edge, id, requests: () => server.requests.length }
}

t.test('a blob that cannot be read now is not removed as damaged', async (t) => {
  const { house, edge, id } = await stocked(t)
  const path = blobPath(house.store.folder, digest)
  // The first page of no process can be read: the system says EIO. A link to itself cannot be opened or looked at: ELOOP.
  for (const [target, code] of [
    ['/proc/self/mem', 'EIO'],
    [path, 'ELOOP'],
  ] as const) {
    await rm(path)
    await symlink(target, path)
    const answer = await edge.address.ask({ kind: 'check', id, digest })
    t.match(answer, { kind: 'refused', refusal: { refused: 'busy', fault: 'self' } }, code)
    t.equal(house.catalog.blobSize(digest), body.length, 'its record stays')
    t.ok((await lstat(path)).isSymbolicLink(), 'and its file')
  }
  await rm(path)
  await writeFile(path, body)
  t.same(await edge.address.ask({ kind: 'check', id, digest }), { kind: 'checked', sound: true })
})

t.test('a blob that cannot be opened is fetched again and replaced', async (t) => {
  const { house, edge, id, requests } = await stocked(t)
  const path = blobPath(house.store.folder, digest)
  await rm(path)
  await symlink(path, path)
  const opened = sure(await edge.open(id))
  t.equal(opened.source, 'trusted-gateways')
  const content = edge.grow(opened)
  t.ok((await drain(content, 0, body.length)).equals(body))
  content.close()
  await eventually('the file is there', async () => (await lstat(path)).isFile())
  t.ok((await readFile(path)).equals(body))
  t.equal(requests(), 2)
})

t.test('a file that cannot be removed does not end the thread', async (t) => {
  class Sticky extends BlobStore {
    override async remove(): Promise<void> {
      throw Object.assign(new Error('read-only'), { code: 'EROFS' })
    }
  }
  const path = scratch('sticky')
  const server = await upstream((_, response) => response.end(body))
  const house = await rig({
    source: gateways([server.url]),
    path,
    store: new Sticky(join(path, 'blobs')),
  })
  const edge = house.edge()
  const content = edge.grow(sure(await edge.open(someId())))
  content.close()
  await eventually('the content is stored', () => house.catalog.blobSize(digest) !== undefined)
  t.same(await edge.address.ask({ kind: 'evict', digest }), { kind: 'evicted', dropped: true })
  t.equal(house.catalog.blobSize(digest), undefined)
  await house.close()
  await server.close()
})

/** A disk that takes bytes and then says, each time that it is asked to keep them, what `flush` says. */
class LosingStore extends BlobStore {
  constructor(
    folder: string,
    private readonly flush: () => Promise<void>,
  ) {
    super(folder)
  }

  override async draft(): Promise<BlobDraft> {
    const draft = await super.draft()
    return { ...draft, handle: Object.assign(draft.handle, { datasync: this.flush, sync: this.flush }) }
  }
}

t.test('content that could not be written is not stored, and its readers still get it', async (t) => {
  const large = randomBytes(65 * 1024 * 1024)
  const server = await upstream((_, response) => response.end(large))
  const path = scratch('losing')
  let lose: (error: Error) => void = () => undefined
  const flushing = new Promise<void>((_, reject) => {
    lose = reject
  })
  flushing.catch(() => 'told to whoever flushes')
  let flushes = 0
  const store = new LosingStore(join(path, 'blobs'), () => {
    flushes += 1
    return flushing
  })
  const house = await rig({ source: gateways([server.url]), path, store })
  const edge = house.edge()
  const content = edge.grow(sure(await edge.open(someId())))
  const most = await drain(content, 0, large.length - 1)
  t.ok(most.equals(large.subarray(0, -1)))
  t.equal(flushes, 1)
  t.equal(content.read(large.length - 1, large.length), undefined, 'not whole before the disk has answered')
  lose(Object.assign(new Error('lost'), { code: 'EIO' }))
  t.ok((await drain(content, large.length - 1, large.length)).equals(large.subarray(-1)))
  content.close()
  await eventually('no transfer is held', () => house.fetcher.held === 0)
  t.equal(house.catalog.blobSize(sha256(large)), undefined)
  t.same(await house.drafts(), [])
  await house.close()
  await server.close()
})

t.test('without a free descriptor nothing is removed, and it works again when there is one', async (t) => {
  const child = fileURLToPath(new URL('without-descriptors.js', import.meta.url))
  // Node opens the modules of a program side by side: the limit lies above their number.
  const run = spawn('sh', ['-c', 'ulimit -n 1024 && exec "$0" "$1"', process.execPath, child], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  let answer = ''
  run.stdout.on('data', (text: Buffer) => {
    answer += text.toString()
  })
  const [code] = (await once(run, 'close')) as [number]
  t.equal(code, 0)
  t.same(JSON.parse(answer), {
    without: 'busy',
    opened: 'busy',
    recorded: body.length,
    after: { kind: 'checked', sound: true },
  })
})
