import { randomBytes } from 'node:crypto'
import t from 'tap'
import type { Chain } from '../../../src/chain/chain.js'
import { encodeBundle } from '../../../src/format/bundle.js'
import { chunkSizes } from '../../../src/format/chunk.js'
import { idOfBytes } from '../../../src/format/id.js'
import { isRefusal, refuse } from '../../../src/format/refusal.js'
import { usualEnd, usualStart } from '../../../src/format/usual-cut.js'
import { signTransactionEcdsa } from '../../../src/proof/sign.js'
import { chainSources } from '../../../src/source/roots/chain-sources.js'
import type { Source } from '../../../src/source/source.js'
import { inOrder } from '../../../src/source/upstream/in-order.js'
import { taken, wantedOf } from '../../conformance/source.js'
import { postedOld, signed } from '../../devnet/posting.js'
import { fc } from '../../property.js'
import { bundleItem, bundleTags, item, weave } from '../weave.js'

const never = new AbortController().signal
const location = { depthMax: 10, headersMax: 100, headerMaxBytes: 1_000_000 }

function sourcesOf(chain: Chain, aheadMax = 4): [Source, Source, Source] {
  return [...chainSources(chain, { aheadMax, concurrencyMax: 8 }, location).sources] as [
    Source,
    Source,
    Source,
  ]
}

/** The chain with other words here and there; methods keep their `this`. */
function changed(chain: Chain, changes: Partial<Chain>): Chain {
  return new Proxy(chain, {
    get(target, name: keyof Chain) {
      const own = changes[name] ?? target[name]
      return typeof own === 'function' ? own.bind(changes[name] === undefined ? target : changes) : own
    },
  })
}

t.test('the guess where chunks begin and end is right for data that was cut in the usual way', async (t) => {
  fc.assert(
    fc.property(fc.integer({ min: 1, max: 2_000_000 }), fc.nat(), (sizeBytes, at) => {
      const position = at % sizeBytes
      let start = 0
      let end = 0
      for (const size of chunkSizes(sizeBytes)) {
        start = end
        end += size
        if (position < end) break
      }
      return usualEnd(position, sizeBytes) === end && usualStart(position, sizeBytes) === start
    }),
  )
  t.pass()
})

t.test('chunks', async (t) => {
  const { chain, post, payer, devnet } = await weave(t)
  const body = randomBytes(1_500_000)
  const id = await post(body, { 'Content-Type': 'image/jpeg', 'Content-Encoding': 'gzip' })

  await t.test('size, type and tags are learned from the header', async (t) => {
    const found = await sourcesOf(chain)[0].open(wantedOf(id), never)
    if (isRefusal(found)) throw new Error(found.message)
    t.equal(found.learned.contentType, 'image/jpeg')
    t.equal(found.learned.contentEncoding, 'gzip')
    t.equal(found.learned.header?.ownerAddress, payer.address)
    t.equal(found.learned.header?.tags.length, 2)
    t.equal(found.trusted, true)
    await taken(found)
  })

  await t.test(
    'nodes are asked once for what is no transaction, whatever source it is wanted of',
    async (t) => {
      const requested: string[] = []
      const counted = changed(chain, {
        transaction: (id, terms) => {
          requested.push(id)
          return chain.transaction(id, terms)
        },
      })
      const source = inOrder('all', sourcesOf(counted))
      const wanted = wantedOf(idOfBytes(randomBytes(32)))
      for (const times of [1, 2]) {
        const found = await source.open({ ...wanted }, never)
        t.equal(isRefusal(found) && found.refused, 'unknown')
        t.strictSame(requested, Array(times).fill(wanted.id), 'once for each want')
      }
    },
  )

  await t.test('where the id does not cover a data root, nothing is called proven', async (t) => {
    const mined = await chain.transaction(id)
    if (isRefusal(mined)) throw new Error(mined.message)
    const made = signTransactionEcdsa(mined, Buffer.alloc(32, 7))
    const changedChain = changed(chain, {
      transaction: async () => made,
      transactionOffset: async () => chain.transactionOffset(id),
    })
    for (const [source, proven] of [
      [sourcesOf(chain)[0], true],
      [sourcesOf(changedChain)[0], false],
    ] as const) {
      const found = await source.open(wantedOf(proven ? id : made.id), never)
      if (isRefusal(found)) throw new Error(found.message)
      t.equal(found.proven, proven)
      t.same(await taken(found), body)
    }
    const { chunks } = chainSources(changedChain, { aheadMax: 4, concurrencyMax: 8 }, location)
    const root = await chunks.openRoot(made.id, { signal: never })
    if (isRefusal(root)) throw new Error(root.message)
    t.equal(root.proven, false)
    await root.close()
  })

  await t.test('a window costs only the chunks that hold it', async (t) => {
    const requested: number[] = []
    const counting = changed(chain, {
      chunk: (offset, signal) => {
        requested.push(offset)
        return chain.chunk(offset, signal)
      },
    })
    const window = { start: 600_000, end: 600_100 }
    const bytes = await taken(await sourcesOf(counting, 10)[0].open(wantedOf(id, {}, window), never))
    t.ok(!isRefusal(bytes) && bytes.equals(body.subarray(600_000, 600_101)))
    t.equal(requested.length, 1)
  })

  await t.test('reading ahead stays within its bound', async (t) => {
    let underWay = 0
    let most = 0
    const counting = changed(chain, {
      async chunk(offset, signal) {
        underWay += 1
        most = Math.max(most, underWay)
        const chunk = await chain.chunk(offset, signal)
        underWay -= 1
        return chunk
      },
    })
    const bytes = await taken(await sourcesOf(counting, 3)[0].open(wantedOf(id), never))
    t.ok(!isRefusal(bytes) && bytes.equals(body))
    t.equal(most, 3)
  })

  await t.test('a forged chunk is asked for again, and never passed on', async (t) => {
    let forgeries = 0
    const forging = (times: number): Chain =>
      changed(chain, {
        async chunk(offset, signal) {
          const chunk = await chain.chunk(offset, signal)
          if (isRefusal(chunk) || forgeries >= times) return chunk
          forgeries += 1
          const wrong = Buffer.from(chunk.chunk)
          wrong[0]! ^= 1
          return { ...chunk, chunk: wrong }
        },
      })
    const recovered = await taken(await sourcesOf(forging(1))[0].open(wantedOf(id), never))
    t.ok(!isRefusal(recovered) && recovered.equals(body))
    forgeries = 0
    const refused = await taken(await sourcesOf(forging(1000))[0].open(wantedOf(id), never))
    t.equal(isRefusal(refused) && refused.refused, 'forged')
  })

  await t.test('a node that gives the place of other data is refused', async (t) => {
    const lying = changed(chain, {
      transactionOffset: async () => ({ size: body.length + 1, start: 1, end: body.length + 1 }),
    })
    const found = await sourcesOf(lying)[0].open(wantedOf(id), never)
    t.equal(isRefusal(found) && found.refused, 'forged')
  })

  await t.test('nodes that cannot be reached are not a 404', async (t) => {
    const silent = changed(chain, { transaction: async () => refuse('late', 'upstream', 'nobody answered') })
    for (const source of sourcesOf(silent)) {
      const found = await source.open(wantedOf(id), never)
      t.equal(isRefusal(found) && found.refused, 'late')
    }
  })

  await t.test('a transaction without data is an empty payload', async (t) => {
    const gift = await signed(payer, { target: randomBytes(32).toString('base64url'), quantity: '1' })
    await payer.client.transactions.post(gift)
    devnet.mine()
    const bytes = await taken(await sourcesOf(chain)[1].open(wantedOf(gift.id as typeof id), never))
    t.ok(!isRefusal(bytes) && bytes.length === 0)
  })

  await t.test('an item that its owner did not sign is refused at its end', async (t) => {
    const good = item(randomBytes(300_000))
    const bad = { ...good, bytes: Buffer.from(good.bytes) }
    bad.bytes[bad.bytes.length - 1]! ^= 1
    const rootId = await post(encodeBundle([bad]), bundleTags)
    const bytes = await taken(await sourcesOf(chain)[1].open(wantedOf(good.id, { rootId }), never))
    t.equal(isRefusal(bytes) && bytes.refused, 'forged')
    t.match(isRefusal(bytes) && bytes.message, /signature/)
  })

  await t.test('the place of a nested item is learned with its header', async (t) => {
    const wanted = item(randomBytes(5000), { 'Content-Type': 'text/html' })
    const inner = bundleItem([item(randomBytes(77)), wanted])
    const root = encodeBundle([item(randomBytes(33)), inner])
    const rootId = await post(root, bundleTags)
    const found = await sourcesOf(chain)[1].open(wantedOf(wanted.id, { rootId }), never)
    if (isRefusal(found)) throw new Error(found.message)
    const rootItemOffset = Buffer.from(root).indexOf(wanted.bytes)
    t.match(found.learned.place, {
      rootId,
      parentId: inner.id,
      path: [rootId, inner.id],
      rootItemOffset,
      parentItemOffset: 32 + 2 * 64 + item(randomBytes(77)).bytes.length,
      itemSize: wanted.bytes.length,
      headerSize: wanted.bytes.length - wanted.payload.length,
    })
    t.equal(found.learned.contentType, 'text/html')
    await taken(found)
  })

  await t.test('data that is no bundle, named as a root, has no items', async (t) => {
    const found = await sourcesOf(chain)[1].open(wantedOf(item(randomBytes(9)).id, { rootId: id }), never)
    t.equal(isRefusal(found) && found.refused, 'unknown')
  })

  await t.test('a search gives up at its bounds', async (t) => {
    let nest = bundleItem([item(randomBytes(10))])
    const wanted = item(randomBytes(20))
    nest = bundleItem([wanted])
    for (let depth = 0; depth < 11; depth += 1) nest = bundleItem([nest])
    const rootId = await post(encodeBundle([nest]), bundleTags)
    const found = await sourcesOf(chain)[1].open(wantedOf(wanted.id, { rootId }), never)
    t.equal(isRefusal(found) && found.refused, 'unknown')
  })
})

t.test('data of format 1 that came with its header is not fetched again', async (t) => {
  const { chain, devnet, payer } = await weave(t)
  const data = randomBytes(5000)
  const id = await postedOld(payer, devnet.url, data)
  devnet.mine()
  const calls: string[] = []
  const counted = changed(chain, {
    transaction: (...given) => {
      calls.push('transaction')
      return chain.transaction(...given)
    },
    transactionData: (...given) => {
      calls.push('data')
      return chain.transactionData(...given)
    },
  })
  const [, aware, txData] = sourcesOf(counted)
  const source = inOrder('both', [aware, txData])
  t.strictSame(await taken(await source.open(wantedOf(id), never)), data)
  t.strictSame(calls, ['transaction'])
  t.strictSame(await taken(await source.open(wantedOf(id), never)), data)
  t.strictSame(calls, ['transaction', 'transaction'], 'the header is another one each time')
})

t.test('no data is read with the header of a root that somebody named', async (t) => {
  const { chain, devnet, payer, post } = await weave(t)
  const rootId = await postedOld(payer, devnet.url, randomBytes(300_000))
  devnet.mine()
  const read: number[] = []
  const counted = changed(chain, {
    async transaction(...given) {
      const tx = await chain.transaction(...given)
      if (!isRefusal(tx)) read.push(tx.data.length)
      return tx
    },
  })
  const [, aware] = sourcesOf(counted)
  for (let time = 0; time < 3; time += 1) {
    const found = await aware.open(wantedOf(item(randomBytes(9)).id, { rootId }), never)
    t.match(found, { refused: 'unknown' })
  }
  t.strictSame(read, [])
  const bundled = item(randomBytes(5000))
  const bundleId = await post(encodeBundle([bundled]), bundleTags)
  const found = await aware.open(wantedOf(bundled.id, { rootId: bundleId }), never)
  t.strictSame(await taken(found), bundled.payload)
})

t.test('a false header under a true id lasts no longer than the request that it came for', async (t) => {
  const { chain, devnet, payer, post } = await weave(t)
  const data = randomBytes(5000)
  const old = await postedOld(payer, devnet.url, data)
  const minedId = await post(data)
  const mined = await chain.transaction(minedId)
  if (isRefusal(mined)) throw new Error(mined.message)
  const ownerless = signTransactionEcdsa(mined, Buffer.alloc(32, 7))
  let isLie = true
  const lying = changed(chain, {
    async transaction(id) {
      const tx = id === ownerless.id ? ownerless : await chain.transaction(id, { signed: false })
      if (isRefusal(tx) || !isLie) return tx
      const dataSize = tx.dataSize - 32
      if (tx.format === 2) return { ...tx, dataSize }
      return { ...tx, target: tx.data.subarray(0, 32), data: tx.data.subarray(32), dataSize }
    },
    transactionOffset: (id, ...more) => chain.transactionOffset(id === ownerless.id ? minedId : id, ...more),
  })
  const [chunks, , txData] = sourcesOf(lying)
  t.strictSame(await taken(await txData.open(wantedOf(old), never)), data.subarray(32), 'it verifies')
  t.match(await chunks.open(wantedOf(ownerless.id), never), { refused: 'forged' })
  isLie = false
  t.strictSame(await taken(await txData.open(wantedOf(old), never)), data)
  t.strictSame(await taken(await chunks.open(wantedOf(ownerless.id), never)), data)
})
