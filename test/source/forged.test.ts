/** Items whose header was copied in front of other bytes, in bundles that anybody posted: no byte of them is the item's. */
import { randomBytes } from 'node:crypto'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { merge } from '../../src/catalog/merge.js'
import { encodeBundle } from '../../src/format/bundle.js'
import type { Id } from '../../src/format/id.js'
import { isRefusal } from '../../src/format/refusal.js'
import { Evidence } from '../../src/ingest/evidence.js'
import { InlineProver } from '../../src/source/proving/prover.js'
import { chainSources } from '../../src/source/roots/chain-sources.js'
import type { Found, Source } from '../../src/source/source.js'
import type { FilePart } from '../../src/store/blobs.js'
import { taken, wantedOf } from '../conformance/source.js'
import { forged, forgedTags } from './forged.js'
import { sha256 } from './rig.js'
import { bundleItem, bundleTags, item, weave } from './weave.js'

const never = new AbortController().signal
const location = { depthMax: 10, headersMax: 100, headerMaxBytes: 1_000_000 }

t.test('a copied header proves nothing about what lies behind it', async (t) => {
  const { chain, post } = await weave(t)
  const genuine = item(randomBytes(600_000), { 'Content-Type': 'image/png' })
  const other = item(randomBytes(600_000), { 'Content-Type': 'text/html' })
  const small = item(randomBytes(100))
  const fakes = {
    'other bytes of the same size': encodeBundle([forged(genuine, randomBytes(600_000)), small]),
    'another owner and other tags': encodeBundle([forgedTags(genuine, other)]),
    'more bytes, in a bundle inside': encodeBundle([
      small,
      bundleItem([forged(genuine, randomBytes(610_000))]),
    ]),
  }
  const source = (): Source =>
    chainSources(chain, { aheadMax: 4, concurrencyMax: 8 }, location).sources[1] as Source
  const right = await post(encodeBundle([small, genuine]), bundleTags)

  const roots: Id[] = []

  for (const [what, bundle] of Object.entries(fakes)) {
    const rootId = await post(bundle, bundleTags)
    roots.push(rootId)
    const hints = { rootId }
    const part = await source().open(wantedOf(genuine.id, hints, { start: 5, end: 9 }), never)
    t.match(part, { refused: /forged|unsatisfiable/ }, `${what}: a range`)
    const one = source()
    const whole = await one.open(wantedOf(genuine.id, hints), never)
    if (isRefusal(whole)) throw new Error(whole.message)
    t.equal(whole.isJudgedAtEnd, true, `${what}: nothing of it is shown before its end`)
    t.match(await taken(whole), { refused: 'forged' }, what)
    t.match(await one.open(wantedOf(genuine.id, hints), never), { refused: 'forged' }, 'it is read once')
  }

  await t.test('the owner’s bytes are given, whole and in ranges', async (t) => {
    const one = source()
    const hints = { rootId: right }
    const window = { start: 300_000, end: 300_999 }
    const part = (await one.open(wantedOf(genuine.id, hints, window), never)) as Found
    t.equal(part.isJudgedAtEnd, undefined)
    t.ok(Buffer.compare((await taken(part)) as Uint8Array, genuine.payload.subarray(300_000, 301_000)) === 0)
    t.equal(part.learned.place?.isSigned, true, 'the place is known to be the item’s')
    const whole = (await one.open(wantedOf(genuine.id, hints), never)) as Found
    t.ok(Buffer.compare((await taken(whole)) as Uint8Array, genuine.payload) === 0)
  })

  await t.test('a place that was checked is read without a second look, and stays', async (t) => {
    const one = source()
    const window = { start: 0, end: 9 }
    const first = (await one.open(wantedOf(genuine.id, { rootId: right }, window), never)) as Found
    await taken(first)
    const known = { id: genuine.id, size: 600_000, verified: false, trusted: false, ...first.learned }
    const bad = roots[0] as Id
    const again = await one.open(
      { ...wantedOf(genuine.id, { rootId: bad }, window), attributes: known },
      never,
    )
    t.ok(Buffer.compare((await taken(again as Found)) as Uint8Array, genuine.payload.subarray(0, 10)) === 0)
    const { isSigned: _, ...place } = first.learned.place as NonNullable<Found['learned']['place']>
    const listed = { ...known, place: { ...place, rootId: bad, parentId: bad, path: [bad] } }
    t.equal(merge(known, listed).place?.rootId, right, 'a place that was only listed does not replace it')
    t.equal(merge(listed, known).place?.rootId, right)
    const led = await one.open({ ...wantedOf(genuine.id, {}, window), attributes: listed }, never)
    t.match(led, { refused: 'forged' }, 'nor is it read by ranges')
  })

  await t.test('genuine content is not called wrong because a copied header lies elsewhere', async (t) => {
    const { chunks, transactions } = chainSources(chain, { aheadMax: 4, concurrencyMax: 8 }, location)
    const path = join(t.testdir({ blob: '' }), 'blob')
    const evidence = new Evidence({
      store: { part: () => ({ path }) },
      prover: new InlineProver(),
      transactions,
      openRoot: chunks.openRoot,
      chunks,
      limits: location,
    })
    const judged = (payload: Uint8Array, rootId: Id) => {
      writeFileSync(path, payload)
      const known = { id: genuine.id, size: payload.length, verified: false, trusted: true }
      return evidence.judge(known, sha256(payload), { rootId }, never)
    }
    for (const rootId of roots) t.not((await judged(genuine.payload, rootId)).kind, 'wrong')
    t.match(await judged(genuine.payload, roots[0] as Id), { learned: { place: { isSigned: undefined } } })
    t.match(await judged(genuine.payload, right), { kind: 'proven' })
    t.match(await judged(other.payload, right), { kind: 'wrong' }, 'nor is other content spared')
    t.match(await judged(other.payload, roots[1] as Id), { kind: 'undecided' })
  })

  await t.test('forged payloads are found among genuine ones that are judged together', async (t) => {
    const made = Array.from({ length: 6 }, (_, at) => item(randomBytes(1000 + at)))
    const rootId = await post(encodeBundle([...made, forged(genuine, randomBytes(600_000))]), bundleTags)
    const bits = Buffer.from(made[1]?.payload ?? [])
    bits[500] = (bits[500] ?? 0) ^ 1
    const cut = made[2]?.payload.subarray(0, 999) ?? bits
    const longer = Buffer.concat([made[3]?.payload ?? bits, Buffer.from('x')])
    const payloads = [
      made[0]?.payload,
      bits,
      cut,
      longer,
      made[5]?.payload,
      made[5]?.payload,
      genuine.payload,
    ]
    const path = join(t.testdir({ segment: '' }), 'segment')
    const parts = new Map<string, Required<FilePart>>()
    let offset = 0
    const claims = [...made, genuine].map(({ id }, at) => {
      const payload = payloads[at] ?? bits
      const digest = sha256(payload)
      parts.set(Buffer.from(digest).toString('hex'), { path, offset, sizeBytes: payload.length })
      offset += payload.length
      const known = { id, size: payload.length, verified: false, trusted: true }
      return { known, digest, hints: { rootId } }
    })
    writeFileSync(path, Buffer.concat(payloads.map((one) => one ?? bits)))
    const { chunks, transactions } = chainSources(chain, { aheadMax: 4, concurrencyMax: 8 }, location)
    const evidence = new Evidence({
      store: { part: (digest) => parts.get(Buffer.from(digest).toString('hex')) ?? { path } },
      prover: new InlineProver(),
      transactions,
      openRoot: chunks.openRoot,
      chunks,
      limits: location,
    })
    const { verdicts } = await evidence.judgeAll(rootId, claims, never)
    t.same(
      claims.map(({ known }) => verdicts.get(known.id)?.kind),
      ['proven', 'wrong', 'wrong', 'wrong', 'wrong', 'proven', 'proven'],
    )
    t.match(verdicts.get(genuine.id), { learned: { place: { rootId, isSigned: undefined } } })
    const elsewhere = await evidence.judgeAll(right, claims.slice(0, 2), never)
    for (const { known } of claims.slice(0, 2))
      t.match(elsewhere.verdicts.get(known.id), { kind: 'undecided', because: 'elsewhere' }, 'a false hint')
  })

  await t.test('many who ask for ranges of one item have it read once', async (t) => {
    let requested = 0
    const counted = new Proxy(chain, {
      get(target, name: keyof typeof chain) {
        const own = target[name]
        if (typeof own !== 'function') return own
        if (name === 'chunk') requested += 1
        return (own as (...given: unknown[]) => unknown).bind(target)
      },
    })
    const one = chainSources(counted, { aheadMax: 4, concurrencyMax: 8 }, location).sources[1] as Source
    const hints = { rootId: right }
    const parts = Array.from({ length: 20 }, async (_, at) => {
      const window = { start: at * 1000, end: at * 1000 + 99 }
      return taken((await one.open(wantedOf(genuine.id, hints, window), never)) as Found)
    })
    for (const [at, part] of (await Promise.all(parts)).entries())
      t.ok(Buffer.compare(part as Uint8Array, genuine.payload.subarray(at * 1000, at * 1000 + 100)) === 0)
    t.ok(requested <= 8, `${requested} chunks were asked for`)
  })
})
