/** A process that writes into a catalog until it is killed, and says what was answered. */
import { randomBytes } from 'node:crypto'
import { systemClock } from '../../src/actor/clock.js'
import { CatalogKeeper } from '../../src/catalog/catalog-keeper.js'
import { Generations } from '../../src/catalog/generations.js'
import { idOfBytes } from '../../src/format/id.js'

const [, , path = ''] = process.argv
const keeper = new CatalogKeeper({ path, touchEveryMs: 0 }, new Generations(), systemClock)
for (let size = 1; ; size += 1) {
  const id = idOfBytes(randomBytes(32))
  const digest = randomBytes(32)
  await Promise.all([
    keeper.handle({ kind: 'kept', digest, sizeBytes: size }),
    keeper.handle({ kind: 'learn', attributes: [{ id, size, verified: false, trusted: true, digest }] }),
  ])
  process.send?.({ id, digest: digest.toString('hex') })
}
