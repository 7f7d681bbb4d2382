import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import t from 'tap'
import type { Tip } from '../../src/actor/shared.js'
import type { Id } from '../../src/format/id.js'
import { Entries } from '../../src/gateway/entries.js'
import { someId } from '../source/rig.js'

setFlagsFromString('--expose-gc')
const collect = runInNewContext('gc') as () => void

function heapBytes(): number {
  for (let time = 0; time < 4; time += 1) collect()
  return process.memoryUsage().heapUsed
}

t.test('entries that are read anew, once there were too many, leave nothing behind', async (t) => {
  let generation = 0
  const catalog = {
    attributes: (id: Id) => ({ id, size: 10, verified: true, trusted: true, digest: new Uint8Array(32) }),
    blobSize: () => 10,
    generation: () => generation,
  }
  const options = { entriesMaxBytes: 2 ** 20, forkDepth: 10 }
  const entries = new Entries(catalog, () => '/blob', { height: 100 } as Tip, options)
  for (let count = 0; count < 2000; count += 1) entries.get(someId())
  t.ok(entries.bytes <= options.entriesMaxBytes)
  const asked = Array.from({ length: 500 }, someId)
  for (const id of asked) entries.get(id)
  // From now on they are below their limit, so that no pass comes.
  entries.forget(asked.pop() as Id)
  const before = heapBytes()
  for (let round = 0; round < 400; round += 1) {
    generation += 1
    for (const id of asked) entries.get(id)
  }
  const grown = heapBytes() - before
  t.ok(grown < 4 * 2 ** 20, `${Math.round(grown / 2 ** 20)} MiB more`)
  t.ok(asked.every((id) => entries.get(id)?.attributes.id === id))
})
