import t from 'tap'
import { localAddress } from '../../src/actor/mailbox-address.js'
import type { CatalogReply, CatalogRequest } from '../../src/catalog/catalog-messages.js'
import type { ChainIndex } from '../../src/catalog/index-reader.js'
import { refuse } from '../../src/format/refusal.js'
import { IndexQueue } from '../../src/ingest/index-queue.js'

const request: CatalogRequest = { kind: 'learn', attributes: [] }
const index = { refresh: () => undefined } as unknown as ChainIndex

t.test(
  'a change that is refused is sent again more and more seldom, counted, and told of once',
  async (t) => {
    const times: number[] = []
    let isWell = false
    const keeper = localAddress<CatalogRequest, CatalogReply>(async () => {
      times.push(performance.now())
      return isWell ? { kind: 'committed' } : refuse('busy', 'self', 'a page of the catalog is damaged')
    })
    const heard = { failed: 0, back: 0, counted: 0 }
    const count = (name: keyof typeof heard, by = 1): void => {
      heard[name] += by
    }
    const watch = {
      outage: { failed: () => count('failed'), well: () => count('back') },
      refusals: { add: (by: number) => count('counted', by) },
    }
    const stop = new AbortController()
    const queue = new IndexQueue(keeper, index, stop.signal, watch)
    const written = queue.write(() => request)
    while (times.length < 7) await new Promise((resolve) => setTimeout(resolve, 5))
    const pauses = times.slice(1).map((at, place) => at - (times[place] ?? 0))
    for (const [place, ms] of pauses.entries()) t.ok(ms >= 20 * 2 ** place - 2, `pause ${place} of ${ms} ms`)
    t.ok(heard.failed >= 1)
    t.equal(heard.back, 0)
    isWell = true
    await written
    t.equal(heard.counted, times.length - 1)
    t.equal(heard.back, 1)

    isWell = false
    const stopped = queue.write(() => request)
    stop.abort()
    await t.rejects(stopped)
  },
)

t.test(
  'a short message waits for one long one, not for all that came before, and none for ever',
  async (t) => {
    const keeper = localAddress<CatalogRequest, CatalogReply>(async () => ({ kind: 'committed' }))
    const watch = {
      outage: { failed: () => undefined, well: () => undefined },
      refusals: { add: () => undefined },
    }
    const queue = new IndexQueue(keeper, index, new AbortController().signal, watch)
    const written: string[] = []
    const write = (name: string, length: 'short' | 'long'): Promise<unknown> =>
      queue.write(() => {
        written.push(name)
        return request
      }, length)
    const long = ['a', 'b', 'c'].map((name) => write(name, 'long'))
    const failing = queue.write(() => {
      throw new Error('it cannot be composed')
    })
    const short = ['1', '2', '3'].map((name) => write(name, 'short'))
    await t.rejects(failing, 'and keeps nothing behind it waiting')
    await Promise.all([...long, ...short])
    t.same(written, ['a', 'b', '1', 'c', '2', '3'], 'the one that failed had the turn before b')
    await write('d', 'long')
    t.equal(written.at(-1), 'd')
  },
)
