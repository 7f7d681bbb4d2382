import { createHash, randomBytes } from 'node:crypto'
import t from 'tap'
import { systemClock } from '../../../src/actor/clock.js'
import { idOfBytes } from '../../../src/format/id.js'
import { isRefusal } from '../../../src/format/refusal.js'
import { GuardedObjects, guardDefaults } from '../../../src/source/objects/guarded-objects.js'
import { TierSource } from '../../../src/source/tier/tier-source.js'
import { taken, wantedOf } from '../../conformance/source.js'
import { MemoryObjects } from '../../engines/memory-objects.js'

const { signal } = new AbortController()
const unmetered = { ended: () => undefined, received: () => undefined, sent: () => undefined }
const narrow = { ...guardDefaults, readsMax: 1, writesMax: 1 }
const greedy = '203.0.113.1'

function contentOf(bytes: Buffer) {
  const sha256 = createHash('sha256').update(bytes).digest()
  return { sizeBytes: bytes.length, sha256, bytes: () => [bytes] }
}

t.test('one client that reads and writes much leaves others their turns', async (t) => {
  const inner = new MemoryObjects()
  const bytes = randomBytes(10)
  await inner.put('one', contentOf(bytes))
  const store = new GuardedObjects(inner, narrow, unmetered, systemClock)
  const reads: string[] = []
  const read = async (client: string | undefined): Promise<void> => {
    const found = await store.get('one', undefined, { client, signal })
    if (isRefusal(found)) throw new Error(found.message)
    reads.push(client ?? 'own')
    found.drop()
  }
  const writes: string[] = []
  const write = async (client: string | undefined): Promise<void> => {
    const put = await store.put(`by ${client}`, contentOf(bytes), { client, signal })
    if (isRefusal(put)) throw new Error(put.message)
    writes.push(client ?? 'own')
  }
  for (const [act, order] of [
    [read, reads],
    [write, writes],
  ] as const) {
    const all = [greedy, greedy, greedy, '198.51.100.7', undefined].map(act)
    await Promise.all(all)
    t.same(new Set(order.slice(1, 3)), new Set(['198.51.100.7', 'own']))
  }
})

t.test('content is read out of the store by turns of the client that wants it', async (t) => {
  const objects = new MemoryObjects()
  const [id, packed] = [idOfBytes(randomBytes(32)), idOfBytes(randomBytes(32))]
  const bytes = randomBytes(20_000)
  await objects.put(id, contentOf(bytes))
  await objects.put('pack', contentOf(bytes))
  const clients: unknown[] = []
  const place = { pack: 'pack', offset: 0, sizeBytes: 20_000, dataStart: 0, contentType: '' }
  const source = new TierSource({
    store: {
      get(key, window, { client }) {
        clients.push(client)
        return objects.get(key, window)
      },
    },
    keys: { pack: (name) => name, object: (of) => of },
    packed: (of) => (of === packed ? place : undefined),
    wrong: () => undefined,
    read: () => undefined,
  })
  for (const of of [id, packed])
    for (const window of [undefined, { start: 9000, end: 9999 }]) {
      const found = await taken(await source.open({ ...wantedOf(of, {}, window), client: greedy }, signal))
      t.notOk(isRefusal(found))
    }
  t.same(clients, [greedy, greedy, greedy, greedy])
})
