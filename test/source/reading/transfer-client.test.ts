import t from 'tap'
import type { Address } from '../../../src/actor/mailbox-address.js'
import { isRefusal } from '../../../src/format/refusal.js'
import { ProgressReader, ProgressTable, progressBytes } from '../../../src/source/reading/progress-table.js'
import { TransferClient } from '../../../src/source/reading/transfer-client.js'
import { stillUnknown, unknownEverywhere } from '../../../src/source/refusals.js'
import type { SourceReply, SourceRequest } from '../../../src/source/source-messages.js'
import { HandClock } from '../../http/hand-clock.js'
import { someId } from '../rig.js'

const provenance = { hops: 0, via: [], forward: true }

function opener(refusal = stillUnknown(60_000)) {
  const clock = new HandClock()
  const on = { generation: 1, requested: 0 }
  const fetcher: Address<SourceRequest, SourceReply> = {
    ask: async () => {
      on.requested += 1
      return { kind: 'refused', refusal }
    },
    tell: () => true,
  }
  const progressReader = new ProgressReader(new ProgressTable(new SharedArrayBuffer(progressBytes(1))))
  return {
    on,
    clock,
    transfers: new TransferClient(fetcher, progressReader, clock, { generation: () => on.generation }),
  }
}

t.test('what the fetcher remembers as absent costs no second message', async (t) => {
  const { on, clock, transfers: edge } = opener()
  const id = someId()
  const ask = (hints = {}) => edge.open({ id, hints, provenance })
  for (let at = 0; at < 5; at += 1) {
    const answer = await ask()
    t.ok(isRefusal(answer) && answer.refused === 'unknown' && answer.remembered === true)
  }
  t.equal(on.requested, 1)
  await ask({ rootId: someId() })
  t.equal(on.requested, 2, 'who knows where to look is not answered from memory')
  on.generation += 1
  await ask()
  t.equal(on.requested, 3, 'something became known')
  await ask()
  t.equal(on.requested, 3)
  clock.turn(10_001)
  await ask()
  t.equal(on.requested, 4)
  await edge.open({ id: someId(), hints: {}, provenance })
  t.equal(on.requested, 5, 'another id')
})

t.test('an absence that is not remembered is asked for again', async (t) => {
  const { on, transfers: edge } = opener(unknownEverywhere())
  const id = someId()
  for (let at = 0; at < 3; at += 1) await edge.open({ id, hints: {}, provenance })
  t.equal(on.requested, 3)
})
