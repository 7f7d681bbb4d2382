import t from 'tap'
import type { Tip } from '../../src/actor/shared.js'
import type { Id } from '../../src/format/id.js'
import { Entries } from '../../src/gateway/entries.js'
import { collectGarbage } from '../collect-garbage.js'
import { someId } from '../source/rig.js'

function heapBytes(): number {
  for (let time = 0; time < 4; time += 1) collectGarbage()
  return process.memoryUsage().heapUsed
}

function opened(entriesMaxBytes: number) {
  const seen = { generation: 0, reads: 0 }
  const catalog = {
    attributes: (id: Id) => {
      seen.reads += 1
      return { id, size: 10, verified: true, trusted: true, digest: new Uint8Array(32) }
    },
    blobSize: () => 10,
    generation: () => seen.generation,
  }
  const options = { entriesMaxBytes, forkDepth: 10 }
  return { seen, entries: new Entries(catalog, () => '/blob', { height: 100 } as Tip, options) }
}

t.test('entries that are read anew, once there were too many, leave nothing behind', async (t) => {
  const limit = 2 ** 20
  const { seen, entries } = opened(limit)
  for (let count = 0; count < 2000; count += 1) entries.get(someId())
  t.ok(entries.bytes <= limit)
  const used = Array.from({ length: 500 }, someId)
  for (const id of used) entries.get(id)
  // From now on they are below their limit, so that no pass comes.
  entries.forget(used.pop() as Id)
  const before = heapBytes()
  for (let round = 0; round < 400; round += 1) {
    seen.generation += 1
    for (const id of used) entries.get(id)
  }
  const grown = heapBytes() - before
  t.ok(grown < 4 * 2 ** 20, `${Math.round(grown / 2 ** 20)} MiB more`)
  t.ok(used.every((id) => entries.get(id)?.attributes.id === id))
})

t.test('where all were asked for, one more is kept after a look at some of them', async (t) => {
  const limit = 2 ** 20
  const { seen, entries } = opened(limit)
  const ids: Id[] = []
  for (let before = -1; entries.bytes > before; ) {
    before = entries.bytes
    const id = someId()
    for (const _time of [1, 2]) entries.get(id)
    ids.push(id)
  }
  // The last one was one too many.
  t.ok(ids.length > 500 && entries.bytes <= limit)
  const { reads } = seen
  entries.get(ids[0] as Id)
  t.equal(seen.reads, reads, 'the oldest was spared')
  entries.get(ids[256] as Id)
  t.equal(seen.reads, reads + 1, 'another one went')
})
