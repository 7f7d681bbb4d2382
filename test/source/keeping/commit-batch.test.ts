import t from 'tap'
import { type Clock, systemClock } from '../../../src/actor/clock.js'
import { localAddress } from '../../../src/actor/mailbox-address.js'
import type { CatalogReply, CatalogRequest } from '../../../src/catalog/catalog-messages.js'
import { refuse } from '../../../src/format/refusal.js'
import { CommitBatch } from '../../../src/source/keeping/commit-batch.js'

/** A keeper that writes down how many words came together. */
function rig(isGone = false) {
  const sizes: number[] = []
  const keeper = localAddress<CatalogRequest, CatalogReply>((message) => {
    sizes.push(message.kind === 'all' ? message.requests.length : 0)
    return isGone ? refuse('upstream', 'self', 'the thread has ended') : { kind: 'committed' }
  })
  const acts = new Set<() => void>()
  let ms = 0
  const clock: Clock = {
    ...systemClock,
    monotonic: () => ms,
    after(_, act) {
      acts.add(act)
      return { cancel: () => acts.delete(act) }
    },
  }
  const advance = (by: number): void => {
    ms += by
    for (const act of [...acts]) act()
  }
  return { sizes, advance, batch: new CommitBatch(keeper, clock) }
}

const word: CatalogRequest = { kind: 'kept', digest: new Uint8Array(32), sizeBytes: 1, isSmall: true }

t.test(
  'words go at once after a pause, together while there are many, and each hears of its commit',
  async (t) => {
    const { sizes, advance, batch } = rig()
    t.ok(await batch.add([word]), 'the first one waits for nobody')
    const others = [batch.add([word]), batch.add([word, word])]
    t.same(sizes, [1])
    advance(1000)
    t.same(await Promise.all(others), [true, true])
    t.same(sizes, [1, 3])
    advance(1000)
    t.ok(await batch.add([word]))
    t.same(sizes, [1, 3, 1])
  },
)

t.test('a commit does not grow without bound', async (t) => {
  const { sizes, batch } = rig()
  const all = Array.from({ length: 1025 }, () => batch.add([word]))
  t.same(await Promise.all(all), Array(1025).fill(true), 'without a turn of the clock')
  t.same(sizes, [1, 1024])
})

t.test('waiting messages can be sent at once, and each sender learns that the keeper is gone', async (t) => {
  const { sizes, batch } = rig(true)
  t.notOk(await batch.add([word]))
  const later = batch.add([word])
  batch.flush()
  t.same(sizes, [1, 1])
  t.notOk(await later)
  batch.flush()
  t.same(sizes, [1, 1], 'nothing waits')
})
