import { ok } from 'node:assert/strict'
import { verifyAnswer } from '../../src/attest/verify-answer.js'
import { decodeTags, encodeTags } from '../../src/format/avro-tags.js'
import { decodeBase58 } from '../../src/format/base58.js'
import { decodeBase64url, encodeBase64url } from '../../src/format/base64url.js'
import { parseBundleHeader } from '../../src/format/bundle.js'
import { BundleReader } from '../../src/format/bundle-reader.js'
import { parseEntityTags } from '../../src/format/entity-tag.js'
import { parseId } from '../../src/format/id.js'
import { parseItemHeader } from '../../src/format/item.js'
import { type ManifestLimits, parseManifest } from '../../src/format/manifest.js'
import {
  packedHeadBytes,
  packManifest,
  readPackedHead,
  resolvePacked,
} from '../../src/format/packed-manifest.js'
import { parseRange } from '../../src/format/range.js'
import { isRefusal } from '../../src/format/refusal.js'
import { tagOf } from '../../src/format/tag.js'
import { parseTransactionText, transactionJson } from '../../src/format/transaction.js'
import { fixture, fixtureLines, fixtureNames } from '../fixture-file.js'
import { fc } from '../property.js'
import { fuzz } from './fuzz.js'
import { mutated, mutatedText } from './mutate.js'

const items = fixtureNames('items')
  .map((name) => fixture(`items/${name}`))
  .filter((bytes) => bytes.length < 20_000)
const bundle = fixture('bundles/two-items.bundle')
const manifests = fixtureNames('manifests').map((name) => fixture(`manifests/${name}`))

fuzz('tags', mutated([encodeTags([tagOf('Content-Type', 'text/plain'), tagOf('a', '')])]), (bytes) => {
  const answer = decodeTags(bytes)
  if (!isRefusal(answer)) ok(answer.tags.length <= 128)
  return answer
})

fuzz('an item header', mutated(items), (bytes) => {
  const answer = parseItemHeader(bytes)
  if (typeof answer === 'object' && !isRefusal(answer)) ok(answer.headerSize <= bytes.length)
  return answer
})

fuzz('a bundle header', mutated([bundle]), (bytes) => {
  const answer = parseBundleHeader(bytes)
  if (typeof answer === 'object' && !isRefusal(answer)) ok(answer.headerSize <= bytes.length)
  return answer
})

fuzz('a streamed bundle', fc.tuple(mutated([bundle]), fc.integer({ min: 1, max: 4000 })), ([bytes, size]) => {
  const reader = new BundleReader({ itemsMax: 1000 })
  let payload = 0
  let last: unknown
  for (let at = 0; at < bytes.length; at += size) {
    for (const event of reader.push(bytes.subarray(at, at + size))) {
      if (event.kind === 'payload') payload += event.bytes.length
      last = event.kind
    }
  }
  for (const event of reader.end()) last = event.kind
  ok(payload <= bytes.length)
  ok(last === 'done' || last === 'broken', String(last))
  return last === 'broken' ? undefined : last
})

const limits: ManifestLimits = { sizeBytes: 2 ** 20, pathsMax: 1000, pathMaxBytes: 1000 }

fuzz('a manifest', fc.tuple(mutated(manifests), fc.string()), ([bytes, path]) => {
  const answer = parseManifest(bytes, limits)
  if (isRefusal(answer)) return answer
  const packed = packManifest(answer, new Uint8Array(32), limits)
  const head = readPackedHead(packed, packed.length)
  ok(head !== undefined)
  for (const each of [path, '', '__proto__', 'index.html']) {
    const resolved = resolvePacked(head, (at, length) => packed.subarray(at, at + length), each)
    ok(resolved !== 'broken')
    if (resolved !== 'absent') ok(parseId(resolved.id) !== undefined)
  }
  return answer
})

const transactions = [
  ...fixtureLines('genesis.ndjson').slice(0, 5),
  ...fixtureLines('transactions.ndjson').slice(200, 220),
]
fuzz(
  'a transaction',
  mutatedText(transactions.map((json) => JSON.stringify(json)).filter((text) => text.length < 20_000)),
  (text) => {
    const answer = parseTransactionText(text)
    if (!isRefusal(answer)) ok(!isRefusal(parseTransactionText(JSON.stringify(transactionJson(answer)))))
    return answer
  },
)

fuzz('a transaction of any JSON', fc.json(), (text) => parseTransactionText(text))
fuzz('a manifest of any JSON', fc.json(), (text) => parseManifest(Buffer.from(text), limits))

const somePaths = new Map([
  ['a', 'x'],
  ['b', 'y'],
])
const packedManifest = packManifest(
  { paths: somePaths, index: undefined, fallback: undefined },
  new Uint8Array(32),
  limits,
)
fuzz('a packed manifest', fc.tuple(mutated([packedManifest]), fc.string()), ([bytes, path]) => {
  const packed = Buffer.from(bytes)
  const head = readPackedHead(packed.subarray(0, packedHeadBytes), packed.length)
  const read = (at: number, length: number): Buffer | undefined =>
    at + length > packed.length ? undefined : packed.subarray(at, at + length)
  return head && resolvePacked(head, read, path)
})

const ranges = mutatedText([
  'bytes=0-9',
  'bytes=0-1, 5-9,-3',
  'bytes=100-',
  'items=0-1',
  'bytes=99999999999999999999-',
])
fuzz('a range', fc.tuple(ranges, fc.nat(100)), ([field, size]) => {
  const answer = parseRange(field, size)
  if (answer.kind !== 'ranges') return undefined
  for (const { start, end } of answer.ranges) ok(start >= 0 && start <= end && end < size)
  return answer
})

fuzz('entity tags', mutatedText(['"a", W/"b", "c,d"', '*', '""']), (field) => parseEntityTags(field))

const signature = `sig1=:${'/'.repeat(85)}w==:, a=1`
const inputs = [
  `sig1=("@method";req "@path";req "x");created=1;keyid="ed25519:${'A'.repeat(43)}";alg="ed25519"`,
  'a=:aGVsbG8=:, b=?0;c=tok/en, d',
  'sig1=(x);created=1.5;keyid=@1',
]
fuzz('a signature of an answer', mutatedText(inputs), (field) => {
  const lines: Readonly<Record<string, string>> = { 'signature-input': field, signature, x: 'y' }
  const verdict = verifyAnswer({ status: 200, method: 'GET', path: '/', header: (name) => lines[name] })
  ok(isRefusal(verdict), 'nobody signed it')
  return verdict
})

fuzz('base64url', mutatedText(['aGVsbG8', 'cG7Hdi_iTQPoEYgQJFqJ8NMpN4KoZ-vH_j7pG4iP7NI', '']), (text) => {
  const bytes = decodeBase64url(text)
  if (bytes !== undefined) ok(encodeBase64url(bytes) === text)
  const id = parseId(text)
  if (id !== undefined) ok(decodeBase64url(id)?.length === 32)
  return bytes
})

fuzz('base58', mutatedText(['2NEpo7TZRRrLZSi2U', '11233QC4']), (text) => decodeBase58(text))
