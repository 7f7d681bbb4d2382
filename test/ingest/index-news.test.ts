import { constants } from 'node:os'
import t from 'tap'
import type { Attributes } from '../../src/catalog/attributes.js'
import { Generations } from '../../src/catalog/generations.js'
import type { Id } from '../../src/format/id.js'
import { IndexNews } from '../../src/ingest/index-news.js'
import { ProofAgenda } from '../../src/ingest/proof-agenda.js'
import { priorities } from '../../src/ingest/proof-records.js'
import type { VerifierParts } from '../../src/ingest/verifier-parts.js'
import { diskError } from '../../src/store/disk-error.js'
import { openEnvironment } from '../../src/store/lmdb.js'
import { folder } from './house.js'
import { idOf } from './proving-rig.js'

t.test('what the index learns while the disk is full is heard after the next block', async (t) => {
  const environment = openEnvironment(folder(t))
  t.teardown(() => environment.close())
  const agenda = new ProofAgenda(environment, 100)
  const generations = new Generations()
  const known = new Map<Id, Attributes>()
  const tip = { growths: 0 }
  let isFull = false
  const parts = {
    agenda: {
      waiting: agenda.waiting.bind(agenda),
      add: agenda.add.bind(agenda),
      indexed(ids: readonly Id[], now: number): void {
        if (isFull && ids.length > 0) throw diskError(constants.errno.ENOSPC, 'a test')
        agenda.indexed(ids, now)
      },
    },
    tip,
    catalog: {
      attributes: (id: Id) => known.get(id),
      changedShards: (seen: Int32Array) => generations.changed(seen),
    },
    budget: { waitMs: 0, spend: () => undefined },
    clock: { now: () => 1000 },
  }
  const news = new IndexNews(parts as unknown as VerifierParts)
  const hear = (): void => {
    tip.growths += 1
    for (let step = 0; news.isNew && step < 100; step += 1) news.hear()
    t.notOk(news.isNew)
  }
  const ids = [1, 2].map(idOf)
  for (const id of ids)
    agenda.add([{ id, rootId: id, hints: {}, priority: priorities.requested }], () => 5000, 0)
  hear()
  t.notOk(ids.some((id) => agenda.root(id)?.isIndexed))
  isFull = true
  for (const id of ids) known.set(id, { id, size: 1, height: 7, verified: false, trusted: false })
  generations.commit(ids)
  hear()
  t.notOk(ids.some((id) => agenda.root(id)?.isIndexed))
  isFull = false
  hear()
  t.ok(ids.every((id) => agenda.root(id)?.isIndexed && agenda.root(id)?.dueMs === 1000))
})
