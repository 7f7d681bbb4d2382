import { createHash, randomBytes } from 'node:crypto'
import { setMaxListeners } from 'node:events'
import type { Test } from 'tap'
import { isRefusal, type Refusal } from '../../src/format/refusal.js'
import type { ObjectBody, ObjectContent, ObjectStore } from '../../src/source/objects/object-store.js'

/** An empty store, whose keys are a test's own. */
export type OpenStore = () => Promise<ObjectStore>

const { signal } = new AbortController()
// Many use it at the same time.
setMaxListeners(0, signal)

export function contentOf(bytes: Uint8Array, more: Partial<ObjectContent> = {}): ObjectContent {
  const sha256 = createHash('sha256').update(bytes).digest()
  return { sizeBytes: bytes.length, sha256, bytes: () => [bytes], ...more }
}

export async function bytesOf(found: ObjectBody | Refusal): Promise<Buffer> {
  if (isRefusal(found)) throw new Error(`refused: ${found.message}`)
  const pieces: Uint8Array[] = []
  for await (const piece of found.body) {
    if (isRefusal(piece)) throw new Error(`broken: ${piece.message}`)
    pieces.push(piece)
  }
  return Buffer.concat(pieces)
}

function refusedAs(answer: unknown): string {
  return isRefusal(answer) ? answer.refused : 'no refusal'
}

/** What holds of every object store. */
export async function conformObjects(t: Test, open: OpenStore): Promise<void> {
  await t.test('an object comes back with its metadata, whole and in parts', async (t) => {
    const store = await open()
    const bytes = randomBytes(300_000)
    const metadata = { 'payload-data-start': '17', 'payload-content-type': 'text/plain; charset=utf-8' }
    const content = contentOf(bytes, { metadata, contentType: 'image/png' })
    t.equal(await store.put('one/two', content, { signal }), 'put')
    const found = await store.get('one/two', undefined, { signal })
    t.match(found, { sizeBytes: 300_000, contentType: 'image/png', metadata })
    t.ok((await bytesOf(found)).equals(bytes))
    const part = await store.get('one/two', { start: 1000, end: 250_999 }, { signal })
    t.match(part, { sizeBytes: 300_000, metadata })
    t.ok((await bytesOf(part)).equals(bytes.subarray(1000, 251_000)))
    t.match(await store.head('one/two', signal), { sizeBytes: 300_000, contentType: 'image/png', metadata })
  })

  await t.test('keys of every form that is used', async (t) => {
    const store = await open()
    const id = '-_ByXbN0a9IcYzmGBy6Hjw0dYkqTGEzVHkdVFr8h2Eo'
    for (const key of [
      `/${id}`,
      `prefix/${id}`,
      `a+b c/(d)*'!~/${id}`,
      `deep/er/sluice/directory/0000000001`,
    ]) {
      t.equal(await store.put(key, contentOf(Buffer.from(key)), { signal }), 'put', key)
      t.equal((await bytesOf(await store.get(key, undefined, { signal }))).toString(), key, key)
    }
    t.equal(refusedAs(await store.get(id, undefined, { signal })), 'unknown', 'a slash more is another key')
  })

  await t.test('empty objects, and bytes in many pieces', async (t) => {
    const store = await open()
    t.equal(await store.put('empty', contentOf(Buffer.alloc(0)), { signal }), 'put')
    t.equal((await bytesOf(await store.get('empty', undefined, { signal }))).length, 0)
    const pieces = Array.from({ length: 9 }, () => randomBytes(100_001))
    const whole = Buffer.concat(pieces)
    const content = contentOf(whole, {
      async *bytes() {
        yield* pieces
      },
    })
    t.equal(await store.put('pieces', content, { signal }), 'put')
    t.ok((await bytesOf(await store.get('pieces', undefined, { signal }))).equals(whole))
  })

  await t.test('what is not there is unknown, and outside of an object is nothing', async (t) => {
    const store = await open()
    t.equal(refusedAs(await store.get('none', undefined, { signal })), 'unknown')
    t.equal(refusedAs(await store.get('none', { start: 0, end: 1 }, { signal })), 'unknown')
    t.equal(refusedAs(await store.head('none', signal)), 'unknown')
    await store.put('short', contentOf(Buffer.from('abc')), { signal })
    t.equal(refusedAs(await store.get('short', { start: 3, end: 4 }, { signal })), 'unsatisfiable')
    const beyond = await store.get('short', { start: 1, end: 4 }, { signal })
    t.match(beyond, { sizeBytes: 3, part: { start: 1, end: 2 } }, 'a window is cut off at the end')
    t.equal((await bytesOf(beyond)).toString(), 'bc')
    t.equal(await store.remove('short', signal), 'removed')
    t.equal(await store.remove('short', signal), 'removed', 'also where it is gone')
    t.equal(refusedAs(await store.head('short', signal)), 'unknown')
  })

  await t.test('an object of other bytes than announced is not taken', async (t) => {
    const store = await open()
    const wrong = { ...contentOf(Buffer.from('right')), bytes: () => [Buffer.from('wrong')] }
    t.equal(refusedAs(await store.put('forged', wrong, { signal })), 'upstream')
    t.equal(refusedAs(await store.head('forged', signal)), 'unknown')
  })

  await t.test('of many that put a new object one succeeds', async (t) => {
    const store = await open()
    const texts = Array.from({ length: 16 }, (_, index) => Buffer.from(`writer ${index}`))
    const outcomes = await Promise.all(
      texts.map((text) => store.put('claimed', contentOf(text, { isNew: true }), { signal })),
    )
    const winners = texts.filter((_, index) => outcomes[index] === 'put')
    t.equal(winners.length, 1)
    t.equal(outcomes.filter((outcome) => outcome === 'exists').length, 15)
    t.ok(
      (await bytesOf(await store.get('claimed', undefined, { signal }))).equals(
        winners[0] ?? Buffer.alloc(0),
      ),
    )
    t.equal(
      await store.put('claimed', contentOf(Buffer.from('over')), { signal }),
      'put',
      'without the condition',
    )
  })

  await t.test('an object in parts is there when it is whole', async (t) => {
    const store = await open()
    const bytes = randomBytes(40_000_000)
    let requested = 0
    const read = async (start: number, length: number): Promise<Uint8Array> => {
      requested += length
      return bytes.subarray(start, start + length)
    }
    t.equal(await store.putLarge('parts/whole', { sizeBytes: bytes.length, read }, signal), 'put')
    t.equal(requested, bytes.length, 'each byte is read once')
    t.ok((await bytesOf(await store.get('parts/whole', undefined, { signal }))).equals(bytes))
    const gone = async (): Promise<Uint8Array> => {
      throw new Error('the file is gone')
    }
    await t.rejects(store.putLarge('parts/cut', { sizeBytes: bytes.length, read: gone }, signal), /gone/)
    t.equal(refusedAs(await store.head('parts/cut', signal)), 'unknown')
    t.equal(await store.dropParts('parts/', () => true, signal), 0, 'nothing is left of it')
  })

  await t.test('keys are listed in order, page by page', async (t) => {
    const store = await open()
    const keys = Array.from({ length: 30 }, (_, index) => `list/${String(index).padStart(3, '0')} +&<é`)
    await Promise.all(keys.map((key) => store.put(key, contentOf(Buffer.from(key)), { signal })))
    await store.put('other/1', contentOf(Buffer.from('x')), { signal })
    const page = await store.list('list/', undefined, signal)
    t.strictSame(isRefusal(page) ? page : page.keys, keys)
    const rest = await store.list('list/', keys[19], signal)
    t.strictSame(isRefusal(rest) ? rest : rest, { keys: keys.slice(20), hasMore: false })
    t.strictSame(await store.list('nothing/', undefined, signal), { keys: [], hasMore: false })
  })

  await t.test('a body that is left early, or dropped, holds up nothing', async (t) => {
    const store = await open()
    const bytes = randomBytes(4_000_000)
    await store.put('large', contentOf(bytes), { signal })
    for (let turn = 0; turn < 40; turn += 1) {
      const found = await store.get('large', undefined, { signal })
      if (isRefusal(found)) throw new Error(found.message)
      if (turn % 2 === 0) found.drop()
      else for await (const _ of found.body) break
    }
    t.ok((await bytesOf(await store.get('large', undefined, { signal }))).equals(bytes))
  })

  await t.test('who gives up gets an answer at once', async (t) => {
    const store = await open()
    const abort = new AbortController()
    const asking = store.get('none', undefined, { signal: abort.signal })
    abort.abort()
    t.ok(['late', 'unknown'].includes(refusedAs(await asking)))
  })
}
