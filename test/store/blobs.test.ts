import { createHash, randomBytes } from 'node:crypto'
import { mkdir, readdir, readFile, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import t from 'tap'
import { pause } from '../../src/actor/clock.js'
import { BlobStore, blobPath } from '../../src/store/blobs.js'
import { scratch } from '../scratch.js'

async function store(): Promise<BlobStore> {
  const made = new BlobStore(join(scratch('blobs'), 'blobs'))
  await made.prepare()
  return made
}

/** Resolves true when so many drafts are in the folder. */
async function ahead(folder: string, count: number): Promise<boolean> {
  while ((await readdir(join(folder, 'tmp'))).length !== count) await pause(5)
  return true
}

t.test('a draft becomes a blob under its digest, and its readers keep their file', async (t) => {
  const blobs = await store()
  const bytes = randomBytes(1000)
  const digest = createHash('sha256').update(bytes).digest()
  const draft = await blobs.draft()
  await draft.handle.write(bytes)
  const before = await draft.handle.stat()
  t.same(await blobs.keep(draft, digest), await blobs.identify(digest), 'it is known by what it is')
  const path = blobPath(blobs.folder, digest)
  t.ok((await readFile(path)).equals(bytes))
  t.equal((await stat(path)).ino, before.ino)
  t.equal((await stat(path)).mode & 0o777, 0o600, 'nobody else reads it')
  t.same(await readdir(join(blobs.folder, 'tmp')), [])
  const handle = await blobs.open(digest)
  t.ok(handle)
  await blobs.remove(digest)
  t.ok((await handle!.handle.readFile()).equals(bytes), 'an open file outlives its name')
  await handle!.handle.close()
  await draft.handle.close()
  t.equal(await blobs.open(digest), undefined)
  t.equal(await blobs.identify(digest), undefined)
  await blobs.remove(digest)
})

t.test('blobs that lie a folder deeper, as they once did, are found after the next start', async (t) => {
  const folder = join(scratch('blobs'), 'blobs')
  const digests = Array.from({ length: 20 }, (_, at) =>
    createHash('sha256')
      .update(`${at % 7}`)
      .digest(),
  )
  for (const digest of digests) {
    const deep = join(folder, digest.toString('hex', 0, 1), digest.toString('hex', 1, 2))
    await mkdir(deep, { recursive: true })
    await writeFile(join(deep, digest.toString('base64url')), digest)
  }
  const blobs = new BlobStore(folder)
  await blobs.prepare()
  for (const digest of digests) {
    t.ok((await readFile(blobPath(folder, digest))).equals(digest))
    t.same(await readdir(join(folder, digest.toString('hex', 0, 1))), [digest.toString('base64url')])
  }
})

t.test('drafts made ahead are each given once, and removed at the end', async (t) => {
  const folder = join(scratch('blobs'), 'blobs')
  const blobs = new BlobStore(folder, 3)
  await blobs.prepare()
  t.same(await readdir(join(folder, 'tmp')), [], 'none before one was asked for')
  const given = [await blobs.draft()]
  await t.resolveMatch(ahead(folder, given.length + 3), true)
  for (let count = 0; count < 9; count += 1) given.push(await blobs.draft())
  t.equal(new Set(given.map(({ path }) => path)).size, 10)
  for (const { handle } of given) t.equal((await handle.stat()).size, 0)
  await blobs.close()
  for (const draft of given) {
    await draft.handle.close()
    await blobs.discard(draft)
  }
  await t.resolveMatch(ahead(folder, 0), true)
})

t.test('the same content kept twice is one blob', async (t) => {
  const blobs = await store()
  const digest = createHash('sha256').update('same').digest()
  for (let round = 0; round < 2; round += 1) {
    const draft = await blobs.draft()
    await draft.handle.write('same')
    await blobs.keep(draft, digest)
    await draft.handle.close()
  }
  t.equal(String(await readFile(blobPath(blobs.folder, digest))), 'same')
})

t.test('drafts of a killed process are swept, blobs are not', async (t) => {
  const blobs = await store()
  const digest = createHash('sha256').update('kept').digest()
  const kept = await blobs.draft()
  await kept.handle.write('kept')
  await blobs.keep(kept, digest)
  await kept.handle.close()
  const lost = await blobs.draft()
  await lost.handle.close()
  t.equal(await new BlobStore(blobs.folder).prepare(), 1)
  await t.rejects(stat(lost.path))
  t.equal(String(await readFile(blobPath(blobs.folder, digest))), 'kept')
})

t.test('every blob is listed once, and nothing else', async (t) => {
  const blobs = await store()
  const made = new Set<string>()
  for (let count = 0; count < 50; count += 1) {
    const digest = createHash('sha256').update(`${count}`).digest()
    const draft = await blobs.draft()
    await blobs.keep(draft, digest)
    await draft.handle.close()
    made.add(digest.toString('hex'))
  }
  const [some] = made
  await writeFile(join(blobs.folder, some!.slice(0, 2), 'not-a-digest'), 'x')
  const listed: string[] = []
  for (let first = 0; first < 256; first += 1) {
    for await (const { digest } of blobs.list(first)) listed.push(Buffer.from(digest).toString('hex'))
  }
  t.same(listed.sort(), [...made].sort())
})

t.test('no digest leads out of the folder', async (t) => {
  for (let round = 0; round < 200; round += 1) {
    const path = blobPath('/blobs', randomBytes(32))
    t.match(path, /^\/blobs\/[0-9a-f]{2}\/[A-Za-z0-9_-]{43}$/)
  }
})
