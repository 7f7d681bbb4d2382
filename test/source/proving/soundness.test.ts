import { randomBytes } from 'node:crypto'
import { rm, writeFile } from 'node:fs/promises'
import t from 'tap'
import { type Log, silentLog } from '../../../src/actor/log.js'
import { InlineProver } from '../../../src/source/proving/prover.js'
import { Soundness } from '../../../src/source/proving/soundness.js'
import { blobPath } from '../../../src/store/blobs.js'
import { gateways, rig, sha256, someId } from '../rig.js'

t.test('a blob that is evicted while it is checked is missing, and not damaged', async (t) => {
  const house = await rig({ source: gateways([]) })
  t.teardown(() => house.close())
  const { store, blobCache, catalog, keeper } = house
  const logged: unknown[] = []
  const log: Log = Object.assign(Object.create(silentLog) as Log, {
    error: (_: object, text: string) => void logged.push(text),
  })
  const prover = new InlineProver()
  const soundness = new Soundness(store, prover, blobCache, catalog, keeper, log)
  const kept = async (bytes: Uint8Array): Promise<Buffer> => {
    const draft = await store.draft()
    await draft.handle.write(bytes)
    const digest = sha256(bytes)
    await store.keep(draft, digest)
    await draft.handle.close()
    return digest
  }
  const body = randomBytes(1000)
  const digest = await kept(body)
  t.equal(await soundness.check(someId(), digest), true)

  const evicted = await kept(randomBytes(1000))
  prover.digest = async (part) => {
    await rm(part.path)
    return InlineProver.prototype.digest.call(prover, part)
  }
  t.equal(await soundness.check(someId(), evicted), false)
  t.same(logged, [])

  prover.digest = InlineProver.prototype.digest
  const damaged = await kept(randomBytes(1000))
  await writeFile(blobPath(store.folder, damaged), 'other bytes')
  t.equal(await soundness.check(someId(), damaged), false)
  t.match(logged, [/damaged/])
})
