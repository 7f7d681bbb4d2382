import t from 'tap'
import type { ItemFilter } from '../../config/item-filter.js'
import { refuse } from '../../src/format/refusal.js'
import { tagOf } from '../../src/format/tag.js'
import type { Transaction } from '../../src/format/transaction.js'
import { KeptBundles } from '../../src/ingest/kept-bundles.js'
import type { SourceReply, SourceRequest } from '../../src/source/source-messages.js'
import { someId } from '../source/rig.js'

const id = someId()
const none = new Uint8Array(0)
const transaction: Transaction = {
  id,
  format: 2,
  owner: Buffer.alloc(512, 1),
  target: none,
  quantity: 0n,
  reward: 0n,
  denomination: 0,
  lastTx: none,
  tags: [tagOf('App-Name', 'mine')],
  data: none,
  dataSize: 1000,
  dataRoot: Buffer.alloc(32, 2),
  signature: Buffer.alloc(512, 3),
}
const never = new AbortController().signal

/** The requests to the fetcher for one bundle of 1000 bytes. */
async function requestsFor(
  filter: ItemFilter | undefined,
  usedBytes = 0,
  isHere = true,
): Promise<SourceRequest[]> {
  const requests: SourceRequest[] = []
  const kept = new KeptBundles({
    source: {
      async ask(request): Promise<SourceReply> {
        requests.push(request)
        return { kind: 'fetched' }
      },
    },
    transactions: {
      header: async () => (isHere ? transaction : refuse('unknown', 'upstream', 'no node has it')),
    },
    filter,
    maxBytes: 10_000,
    usedBytes: () => usedBytes,
  })
  await kept.bring(id, never)
  return requests
}

t.test('without a filter bundles are brought while a tenth of the store is free', async (t) => {
  t.same(await requestsFor(undefined, 0), [{ kind: 'fetch-proven', id }])
  t.same(await requestsFor(undefined, 8000), [{ kind: 'fetch-proven', id }])
  t.same(await requestsFor(undefined, 8001), [])
  t.same(await requestsFor(undefined, 0, false), [], 'not where nobody knows the transaction')
})

t.test('a filter says which are brought, whatever room there is', async (t) => {
  t.same(await requestsFor({ kind: 'never' }), [])
  t.same(await requestsFor({ kind: 'always' }, 10_000), [{ kind: 'fetch-proven', id }])
  const ours = (value: string): ItemFilter => ({ kind: 'tags', tags: [{ name: 'App-Name', value }] })
  t.same(await requestsFor(ours('mine'), 10_000), [{ kind: 'fetch-proven', id }])
  t.same(await requestsFor(ours('other')), [])
})

t.test('who stops does not wait for a bundle on its way', async () => {
  const abort = new AbortController()
  const kept = new KeptBundles({
    source: {
      ask: () => {
        setImmediate(() => abort.abort())
        return new Promise(() => undefined)
      },
    },
    transactions: { header: async () => transaction },
    filter: undefined,
    maxBytes: 10_000,
    usedBytes: () => 0,
  })
  await kept.bring(id, abort.signal)
})
