import { randomBytes } from 'node:crypto'
import t from 'tap'
import { FairSlots } from '../../../src/actor/fair-slots.js'
import type { Requester } from '../../../src/actor/requester.js'
import type { Chain } from '../../../src/chain/chain.js'
import { WrittenChunks } from '../../../src/chain/segment-chunks.js'
import { encodeBundle } from '../../../src/format/bundle.js'
import { chunkSizeMax } from '../../../src/format/chunk.js'
import type { Id } from '../../../src/format/id.js'
import { isRefusal, refuse } from '../../../src/format/refusal.js'
import { sha256 } from '../../../src/proof/digest.js'
import { MerkleTree } from '../../../src/proof/merkle.js'
import { rulesetAt } from '../../../src/proof/path.js'
import { chainSources } from '../../../src/source/roots/chain-sources.js'
import { ChunkedRoot } from '../../../src/source/roots/chunked-root.js'
import { ProvenChunks, type RootPlace } from '../../../src/source/roots/proven-chunks.js'
import { Transactions } from '../../../src/source/roots/transaction-headers.js'
import { taken, wantedOf } from '../../conformance/source.js'
import { eventually } from '../../eventually.js'
import { scratch } from '../../scratch.js'
import { SegmentRig } from '../../store/segments/rig.js'
import { bundleItem, bundleTags, item, weave } from '../weave.js'

const never = new AbortController().signal

/** Counts what is asked of the chain, and holds it back until `open`. */
function counted(chain: Chain) {
  const requested: number[] = []
  const aborted: number[] = []
  let open = (): void => undefined
  const gate = new Promise<void>((resolve) => {
    open = resolve
  })
  const chunk: Chain['chunk'] = async (offset, requester) => {
    requested.push(offset)
    const left = new Promise<'left'>((resolve) => {
      requester?.signal.addEventListener('abort', () => resolve('left'))
    })
    if ((await Promise.race([gate, left])) === 'left') {
      aborted.push(offset)
      return refuse('late', 'client', 'given up')
    }
    return chain.chunk(offset, requester)
  }
  return { chunk, requested, aborted, open }
}

t.test('proven chunks', async (t) => {
  const { chain, post } = await weave(t)
  const body = randomBytes(10 * chunkSizeMax + 5)
  const id = await post(body)
  const place = (await new Transactions(chain).place(id, { signal: never })) as RootPlace
  const chunksOf = (chunk: Chain['chunk'], max = 8, memoryMaxBytes = 2 ** 24): ProvenChunks =>
    new ProvenChunks({ chain: { chunk }, turns: FairSlots.unbounded(max), memoryMaxBytes })
  const bytesAt = (at: number): Buffer => body.subarray(at, at + 100)
  const take = async (chunks: ProvenChunks, at: number, signal = never): Promise<Buffer | string> => {
    const found = await chunks.take(place, at, { signal })
    if (isRefusal(found)) return found.refused
    return Buffer.from(found.chunk.subarray(at - found.start, at - found.start + 100))
  }

  await t.test('one transfer serves all who want bytes of a chunk, at once and later', async (t) => {
    const counting = counted(chain)
    const chunks = chunksOf(counting.chunk)
    const wanted = [5, 70_000, 5, 262_000]
    const all = Promise.all(wanted.map((at) => take(chunks, at)))
    await eventually('a chunk is requested', () => counting.requested.length > 0)
    counting.open()
    const found = await all
    for (const [index, at] of wanted.entries()) t.same(found[index], bytesAt(at))
    t.same(await take(chunks, 131_072), bytesAt(131_072))
    t.equal(counting.requested.length, 1)
  })

  await t.test('chunks that one client waits for leave another client its turn', async (t) => {
    const counting = counted(chain)
    const chunks = chunksOf(counting.chunk, 1)
    const takeFor = (client: string, at: number) => chunks.take(place, at, { client, signal: never })
    const many = [0, 1, 2, 3, 4].map((at) => takeFor('203.0.113.1', at * chunkSizeMax))
    const one = takeFor('198.51.100.7', 8 * chunkSizeMax)
    await eventually('a chunk is requested', () => counting.requested.length > 0)
    counting.open()
    await Promise.all([...many, one])
    t.equal(counting.requested[1], place.weaveStart + 8 * chunkSizeMax)
  })

  await t.test('the last who leaves ends it; who comes then begins anew', async (t) => {
    const counting = counted(chain)
    const chunks = chunksOf(counting.chunk)
    const leavers = [new AbortController(), new AbortController()]
    const waiting = leavers.map((each) => take(chunks, 9, each.signal))
    await eventually('one chunk is requested', () => counting.requested.length === 1)
    leavers[0]?.abort()
    t.equal(await waiting[0], 'late')
    t.equal(counting.aborted.length, 0, 'somebody waits still')
    leavers[1]?.abort()
    const anew = take(chunks, 9)
    t.equal(await waiting[1], 'late')
    await eventually(
      'one request is given up for another',
      () => counting.aborted.length === 1 && counting.requested.length === 2,
    )
    counting.open()
    t.same(await anew, bytesAt(9))
    const gone = new AbortController()
    gone.abort()
    t.equal(await take(chunks, 5 * chunkSizeMax, gone.signal), 'late')
  })

  await t.test('data that is cut unusually is found all the same', async (t) => {
    // Early in the weave chunks may have any size: these lie in one chunk of the usual cut.
    const data = randomBytes(300_000)
    const ends = [1000, 2000, 90_000, 300_000]
    const startOf = (leaf: number): number => ends[leaf - 1] ?? 0
    const pieces = ends.map((end, leaf) => data.subarray(startOf(leaf), end))
    const tree = new MerkleTree(pieces.map((piece, leaf) => ({ hash: sha256(piece), end: ends[leaf] ?? 0 })))
    let requested = 0
    const chunks = chunksOf(async (offset) => {
      requested += 1
      const leaf = ends.findIndex((end) => offset <= end)
      const chunk = pieces[leaf]
      return chunk === undefined
        ? refuse('unknown', 'upstream', 'none')
        : { chunk, dataPath: tree.path(leaf), node: 'test' }
    })
    const odd: RootPlace = { id, sizeBytes: data.length, dataRoot: tree.root, isBound: true, weaveStart: 1 }
    const wanted = [999, 1000, 1999, 2000, 89_999, 90_000, 299_999]
    const found = await Promise.all(wanted.map((at) => chunks.take(odd, at, { signal: never })))
    for (const [index, at] of wanted.entries()) {
      const one = found[index]
      if (one === undefined || isRefusal(one)) throw new Error(`byte ${at} was not found`)
      t.equal(one.chunk[at - one.start], data[at], String(at))
    }
    t.ok(requested <= wanted.length)
  })

  await t.test('who goes through a root finds the next chunk on its way, one ahead', async (t) => {
    const counting = counted(chain)
    counting.open()
    const chunks = chunksOf(counting.chunk)
    await take(chunks, 0)
    t.equal(counting.requested.length, 1, 'one alone says nothing')
    await take(chunks, chunkSizeMax)
    await eventually('the third chunk is here', () => chunks.find(place, 2 * chunkSizeMax) !== undefined)
    await eventually('the fourth chunk is here', () => chunks.find(place, 3 * chunkSizeMax) !== undefined)
    t.ok(counting.requested.length >= 4)
  })

  await t.test('memory stays within its bound', async (t) => {
    const chunks = chunksOf(
      (offset, requester) => chain.chunk(offset, requester),
      8,
      3 * (chunkSizeMax + 2000),
    )
    for (const at of [7, 2, 9, 0, 5]) await take(chunks, at * chunkSizeMax)
    t.ok(chunks.bytes <= 3 * (chunkSizeMax + 2000) && chunks.bytes > 2 * chunkSizeMax)
    t.equal(chunks.find(place, 7 * chunkSizeMax), undefined, 'the one that was used longest ago went')
  })

  await t.test('what leaves memory is read from segments, and not asked for again', async (t) => {
    const rig = new SegmentRig(scratch('chunks'), {
      segmentBytes: 2 ** 22,
      maxBytes: 2 ** 25,
      payloadMaxBytes: 2 ** 19,
    })
    const segments = new WrittenChunks(rig.store, rig.reader)
    const counting = counted(chain)
    counting.open()
    const parts = {
      chain: counting,
      turns: FairSlots.unbounded(8),
      memoryMaxBytes: 3 * (chunkSizeMax + 2000),
    }
    const chunks = new ProvenChunks({ ...parts, segments })
    const all = [7, 2, 9, 0, 5]
    for (const round of [1, 2, 3])
      for (const at of all)
        t.same(await take(chunks, at * chunkSizeMax + round), bytesAt(at * chunkSizeMax + round))
    t.equal(counting.requested.length, all.length)
    const at = all.map((one) => one * chunkSizeMax).find((one) => chunks.find(place, one) === undefined)
    if (at === undefined) throw new Error('all are in memory')
    t.same(
      Buffer.from(chunks.near(place, at + 10, at + 110) ?? []),
      bytesAt(at + 10),
      'without a copy of all',
    )
    t.equal(chunks.find(place, at), undefined, 'memory stays as it is')
    const disk = rig.store.fileBytes
    for (const one of all) await take(chunks, one * chunkSizeMax)
    t.equal(rig.store.fileBytes, disk, 'nothing is written twice')
    await rig.close()
  })

  await t.test('what is kept as content is not written once more', async (t) => {
    const rig = new SegmentRig(scratch('chunks'), {
      segmentBytes: 2 ** 22,
      maxBytes: 2 ** 25,
      payloadMaxBytes: 2 ** 19,
    })
    const segments = new WrittenChunks(rig.store, rig.reader)
    const parts = { chain, turns: FairSlots.unbounded(8), memoryMaxBytes: 0 }
    const root = new ChunkedRoot(place, { chunks: new ProvenChunks({ ...parts, segments }), aheadMax: 2 })
    for await (const piece of root.stream(0, body.length, never, true)) t.notOk(isRefusal(piece))
    const byte = { dataRoot: place.dataRoot, dataSize: place.sizeBytes, ruleset: rulesetAt(place.weaveStart) }
    const kept = (): number[] =>
      Array.from({ length: 11 }, (_, at) => at).filter((at) =>
        segments.has({ ...byte, offset: at * chunkSizeMax }),
      )
    t.same(kept(), [])
    for await (const piece of root.stream(1, 2 * chunkSizeMax, never, true)) t.notOk(isRefusal(piece))
    t.same(kept(), [0], 'of the first one a byte is missing')
    await rig.close()
  })
})

t.test('the items of one chunk cost one transfer', async (t) => {
  const { chain, post } = await weave(t)
  const items = Array.from({ length: 20 }, (_, at) => item(randomBytes(1000 + at)))
  const rootId = await post(encodeBundle([...items, bundleItem([item(randomBytes(3))])]), bundleTags)
  let requested = 0
  const counting = new Proxy(chain, {
    get(target, name: keyof Chain) {
      if (name !== 'chunk') return (target[name] as () => unknown).bind(target)
      return (offset: number, requester?: Requester) => {
        requested += 1
        return chain.chunk(offset, requester)
      }
    },
  })
  const { sources } = chainSources(
    counting,
    { aheadMax: 4, concurrencyMax: 8 },
    {
      depthMax: 10,
      headersMax: 100,
      headerMaxBytes: 1_000_000,
    },
  )
  const aware = sources[1]
  if (aware === undefined) throw new Error('no source of items')
  const all = items.map(async ({ id, payload }) => {
    const bytes = await taken(await aware.open(wantedOf(id as Id, { rootId }), never))
    t.ok(!isRefusal(bytes) && bytes.equals(payload))
  })
  await Promise.all(all)
  t.equal(requested, 1)
})
