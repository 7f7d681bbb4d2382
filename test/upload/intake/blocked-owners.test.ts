/** Items of owners whom the operator refuses: alone, in bundles, and in bundles that came before. */
import { createHash } from 'node:crypto'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { systemClock } from '../../../src/actor/clock.js'
import { silentLog } from '../../../src/actor/log.js'
import { encodeBundle, encodeBundleHeader } from '../../../src/format/bundle.js'
import { type Id, idOfBytes } from '../../../src/format/id.js'
import type { ItemHeader } from '../../../src/format/item.js'
import { isRefusal } from '../../../src/format/refusal.js'
import { type Tag, tagOf } from '../../../src/format/tag.js'
import { sha256 } from '../../../src/proof/digest.js'
import { isListed, listedAddress, normalizedAddress } from '../../../src/proof/owner-address.js'
import { ed25519Signer, ethereumSigner, signItem } from '../../../src/proof/sign.js'
import { DurableLog } from '../../../src/store/segments/durable-log.js'
import { InnerItems } from '../../../src/upload/intake/inner-items.js'
import { insideIds } from '../../../src/upload/intake/inside-ids.js'
import { ItemReader } from '../../../src/upload/intake/item-reader.js'
import { openUploadTables, Uploads } from '../../../src/upload/records/uploads.js'
import { eventually } from '../../eventually.js'
import { fc } from '../../property.js'
import { answered, requestOf, uploadRig } from '../upload-rig.js'

const bundleTags = [tagOf('Bundle-Format', 'binary'), tagOf('Bundle-Version', '2.0.0')]
const [bad, good] = [7, 8].map((seed) => ed25519Signer(Buffer.alloc(32, seed))) as [Signer, Signer]
type Signer = ReturnType<typeof ed25519Signer>
const blockedOwners = new Set([normalizedAddress(bad.owner)])

function idOf(item: Uint8Array): Id {
  return idOfBytes(sha256(item.subarray(2, 66)))
}

function itemOf(signer: Signer, text: string, tags: readonly Tag[] = []): Buffer {
  return Buffer.from(signItem(signer, { tags }, Buffer.from(text)))
}

const oneItem = itemOf(good, 'many')

/** A bundle that `good` signs. */
function bundleOf(...items: readonly Uint8Array[]): Buffer {
  const payload = encodeBundle(items.map((bytes) => ({ id: idOf(bytes), bytes })))
  return Buffer.from(signItem(good, { tags: bundleTags }, Buffer.from(payload)))
}

/** So deep in bundles; 0: alone. */
function nested(item: Buffer, depth: number): Buffer {
  return depth === 0 ? item : bundleOf(itemOf(good, `beside it, ${depth}`), nested(item, depth - 1))
}

t.test(
  'an item of a blocked owner is refused before its receipt, at any depth, however it comes',
  async (t) => {
    const environment = openUploadTables(t.testdir())
    t.teardown(() => environment.close())
    const rig = await uploadRig(t, environment, { blockedOwners })
    const path = '/tx'
    const post = async (bytes: Buffer, pieceBytes = bytes.length): Promise<number> => {
      const pieces = Array.from({ length: Math.ceil(bytes.length / pieceBytes) }, (_, at) =>
        bytes.subarray(at * pieceBytes, (at + 1) * pieceBytes),
      )
      const headers = { 'content-type': 'application/octet-stream', 'content-length': String(bytes.length) }
      const answer = await answered(rig, path, requestOf('POST', path, { headers, pieces }))
      return answer.status
    }
    const begin = async (): Promise<string> => {
      const request = requestOf('GET', '/chunks/{token}/-1/-1', { query: 'chunkSize=5242880' })
      return ((await answered(rig, '/chunks/{token}/-1/-1', request)).json as { id: string }).id
    }
    const inParts = async (bytes: Buffer): Promise<number> => {
      const uploadId = await begin()
      const partPath = '/chunks/{token}/{uploadId}/{offset}'
      const headers = { 'content-length': String(bytes.length) }
      const part = requestOf('POST', partPath, { headers, pieces: [bytes] })
      await answered(rig, partPath, part, { uploadId, offset: '0' })
      const end = '/chunks/{token}/{uploadId}/-1'
      return (await answered(rig, end, requestOf('POST', end), { uploadId })).status
    }
    for (const depth of [0, 1, 2, 5]) {
      const bytes = nested(itemOf(bad, `${depth}`), depth)
      t.equal(await post(bytes), 403, `depth ${depth}`)
      t.equal(await post(bytes, 7), 403, `depth ${depth}, in pieces`)
      t.equal(await inParts(bytes), 403, `depth ${depth}, in several requests`)
      t.equal(rig.uploads.find(idOf(bytes)), undefined)
      t.equal(await post(nested(itemOf(good, `${depth}`), depth)), 200, 'others are taken')
    }
    t.equal(await post(itemOf(good, encodeBundle([]).toString(), bundleTags)), 200, 'a broken bundle')
  },
)

t.test('it is found wherever it lies, and nothing else is', async () => {
  const layouts = fc.record({
    depth: fc.integer({ min: 1, max: 4 }),
    isBad: fc.boolean(),
    size: fc.integer({ min: 0, max: 9000 }),
  })
  await fc.assert(
    fc.asyncProperty(layouts, async ({ depth, isBad, size }) => {
      const bytes = nested(itemOf(isBad ? bad : good, 'x'.repeat(size)), depth)
      const readAt = async (buffer: Uint8Array, at: number): Promise<number> => {
        const piece = bytes.subarray(at, at + buffer.length)
        buffer.set(piece)
        return piece.length
      }
      const reader = new ItemReader(false, new Set())
      reader.push(bytes)
      const place = { start: reader.header?.headerSize ?? 0, end: bytes.length }
      const isListedHere = ({ signatureType, owner }: ItemHeader): boolean =>
        isListed(blockedOwners, signatureType, owner)
      let isFound = false
      for await (const { hasBlocked } of insideIds(readAt, place, isListedHere)) isFound ||= hasBlocked
      return isFound === isBad
    }),
    { numRuns: 60 },
  )
})

t.test('a bundle of many items is looked into, too', async (t) => {
  const environment = openUploadTables(t.testdir())
  t.teardown(() => environment.close())
  const rig = await uploadRig(t, environment, { blockedOwners, isRich: true })
  const many = Array.from({ length: 100_001 }, () => oneItem)
  for (const [last, status] of [
    [itemOf(bad, 'the last'), 403],
    [itemOf(good, 'the last'), 200],
  ] as const) {
    const entries = [...many, last].map((item) => ({ id: idOf(item), sizeBytes: item.length }))
    const payload = Buffer.concat([encodeBundleHeader(entries), ...many, last])
    const bytes = Buffer.from(signItem(good, { tags: bundleTags }, payload))
    const headers = { 'content-type': 'application/octet-stream', 'content-length': String(bytes.length) }
    const request = requestOf('POST', '/tx', { headers, pieces: [bytes] })
    t.equal((await answered(rig, '/tx', request)).status, status)
    if (status === 403) t.equal(rig.questions.at(-1), 'withdraw', 'what was reserved is given back')
  }
})

t.test('who is blocked meanwhile is noticed', async (t) => {
  const blocked = new Set<string>()
  const bytes = itemOf(bad, 'x')
  const isBlocked = (): boolean => {
    const reader = new ItemReader(false, blocked)
    reader.push(bytes)
    return reader.isBlocked
  }
  t.equal(isBlocked(), false)
  blocked.add(normalizedAddress(bad.owner))
  t.equal(isBlocked(), true)
})

async function openedOf(t: Test, bundle: Buffer): Promise<{ uploads: Uploads; announced: Id[] }> {
  const folder = t.testdir()
  const uploads = new Uploads(openUploadTables(join(folder, 'tables')))
  const log = await DurableLog.open(join(folder, 'log'))
  const place = log.append([bundle], createHash('sha256').update(bundle).digest())
  if (isRefusal(place)) throw new Error(place.message)
  const reader = new ItemReader(false, new Set())
  reader.push(bundle)
  const headerSize = reader.header?.headerSize ?? 0
  const facts = { id: idOf(bundle), headerSize, owner: 'o', receivedMs: 1, deadlineHeight: 1, winc: '0' }
  uploads.accept([{ ...facts, place, isBundle: true }], () => undefined)
  const closing = new AbortController()
  const announced: Id[] = []
  const inner = new InnerItems({
    uploads,
    blockedOwners,
    logFolder: join(folder, 'log'),
    verdicts: { verdict: async () => true },
    announcer: {
      announce: async ({ header }) => {
        announced.push(header.id)
      },
    },
    isSandbox: false,
    clock: systemClock,
    logger: silentLog,
    closing: closing.signal,
  })
  await eventually('the bundle is opened', () => !uploads.isUnopened(facts.id))
  closing.abort()
  await inner.stopped()
  t.teardown(async () => {
    await log.close()
    await uploads.environment.close()
  })
  return { uploads, announced }
}

t.test(
  'of a bundle that came before its owner was blocked, his items are neither announced nor known',
  async (t) => {
    const [kept, left] = [itemOf(good, 'kept'), itemOf(bad, 'left out')]
    const { uploads, announced } = await openedOf(t, bundleOf(kept, left))
    t.strictSame(announced, [idOf(kept)])
    const known = (signer: Signer, text: string): Id | undefined =>
      uploads.ofContent(normalizedAddress(signer.owner), sha256(Buffer.from(text)))
    t.equal(known(good, 'kept'), idOf(kept))
    t.equal(known(bad, 'left out'), undefined)
  },
)

t.test('an owner who writes himself otherwise is the same owner', async (t) => {
  const address = '0x1a642f0E3c3aF545E7AcBD38b07251B3990914F1'
  const small = address.toLowerCase()
  const nameOf = (text: string): string => normalizedAddress(Buffer.from(text))
  const spelled = fc.array(fc.boolean(), { minLength: 40, maxLength: 40 }).map((upper) => {
    return `0x${[...small.slice(2)].map((one, at) => (upper[at] ? one.toUpperCase() : one)).join('')}`
  })
  const isBlocked = (listed: string, owner: Uint8Array, signatureType = 7): boolean =>
    isListed(new Set([listedAddress(listed)]), signatureType, owner)
  fc.assert(
    fc.property(spelled, spelled, (one, other) => {
      for (const listed of [address, one, nameOf(small), nameOf(address), nameOf(other)])
        if (!isBlocked(listed, Buffer.from(other))) throw new Error(`${listed} is not ${other}`)
      return !isBlocked(nameOf(small).replace(/^./, '_'), Buffer.from(other))
    }),
  )
  const key = ethereumSigner(Buffer.alloc(32, 1)).owner
  t.equal(isBlocked(address, key, 3), true, 'the key itself, too')
  t.equal(isBlocked(nameOf(address), good.owner, 2), false)
})
