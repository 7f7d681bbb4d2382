import { deepEqual, ok } from 'node:assert/strict'
import { DataItem, deserializeTags } from 'arbundles'
import t from 'tap'
import { readItemHead } from '../../src/client/item-layout.js'
import { unpackTags } from '../../src/client/tags.js'
import { decodeTags } from '../../src/format/avro-tags.js'
import { encodeItem, parseItemHeader } from '../../src/format/item.js'
import { isRefusal, type Refusal } from '../../src/format/refusal.js'
import { tagText } from '../../src/format/tag.js'
import { itemMessage, verifyItem } from '../../src/proof/item-verifier.js'
import { ed25519Signer } from '../../src/proof/sign.js'
import { fc } from '../property.js'
import { mutated } from './mutate.js'

/** Zigzag varint with so many needless groups behind it. */
function varint(value: number, needless: number): number[] {
  const bytes: number[] = []
  let rest = value < 0 ? -2 * value - 1 : 2 * value
  for (; rest >= 128; rest = Math.floor(rest / 128)) bytes.push((rest % 128) + 128)
  if (needless === 0) return [...bytes, rest]
  return [...bytes, rest + 128, ...Array<number>(needless - 1).fill(128), 0]
}

const needless = fc.oneof({ weight: 4, arbitrary: fc.constant(0) }, fc.nat(12), fc.constant(160))
const text = fc.string({ maxLength: 12, unit: 'grapheme' })
const block = fc.record({
  tags: fc.array(fc.record({ name: text, value: text }), { minLength: 1, maxLength: 4 }),
  /** A block with a negative count says a size, which need not be true. */
  size: fc.option(fc.integer({ min: -5, max: 300 })),
  needless,
})

/** An array of tags in any form that an Avro reader can make sense of, and some that it cannot. */
const array = fc
  .record({
    blocks: fc.array(block, { maxLength: 3 }),
    needless,
    isEnded: fc.boolean(),
    after: fc.uint8Array({ maxLength: 3 }),
  })
  .map(({ blocks, needless, isEnded, after }) => {
    const bytes: number[] = []
    for (const { tags, size, needless } of blocks) {
      bytes.push(...varint(size === null ? tags.length : -tags.length, needless))
      if (size !== null) bytes.push(...varint(size, 0))
      for (const { name, value } of tags) {
        for (const word of [Buffer.from(name), Buffer.from(value)])
          bytes.push(...varint(word.length, needless), ...word)
      }
    }
    if (isEnded) bytes.push(...varint(0, needless), ...after)
    return Uint8Array.from(bytes)
  })

const anyArray = fc.oneof(
  array,
  array.chain((bytes) => mutated([bytes])),
)

/** What the library reads; undefined: it throws. */
function theirs(bytes: Uint8Array): { name: string; value: string }[] | undefined {
  try {
    return deserializeTags(Buffer.from(bytes))
  } catch {
    return undefined
  }
}

/**
 * Where the library must not be asked: at a length below zero it goes backwards, which we refuse, and with a large count it may
 * do so without end.
 */
const isBeyond = ({ message }: Refusal): boolean => / negative length |more than 128/.test(message)

t.test('of any array the tags are read that the usual library reads', async (t) => {
  const seen = { read: 0, refused: 0 }
  fc.assert(
    fc.property(anyArray, (bytes) => {
      const ours = decodeTags(bytes)
      const clients = unpackTags(bytes)
      if (isRefusal(ours)) {
        deepEqual(clients, undefined)
        if (!isBeyond(ours)) {
          deepEqual(theirs(bytes), undefined)
          seen.refused += 1
        }
      } else {
        const tags = ours.tags.map(tagText)
        deepEqual(tags, theirs(bytes))
        deepEqual(clients, tags)
        seen.read += 1
      }
    }),
    { numRuns: 3000 },
  )
  t.ok(seen.read > 500 && seen.refused > 100, JSON.stringify(seen))
})

const signer = ed25519Signer(new Uint8Array(32).fill(3))
const payload = Buffer.from('an item in an unusual form')
const flagsAt = 2 + 64 + 32

/** A signed item with just these bytes for tags, and what its signature does not cover: the flags and the count. */
function itemOf(rawTags: Uint8Array, count: number, flags: readonly [number, number]): Uint8Array {
  const { signatureType, owner } = signer
  const none = new Uint8Array(0)
  const fields = { signatureType, owner, target: none, anchor: none, rawTags }
  const signature = signer.sign(itemMessage(fields, payload))
  const head = Buffer.from(encodeItem({ signatureType, owner, signature }, none))
  head.set(flags, flagsAt)
  head.writeBigUInt64LE(BigInt(count), flagsAt + 2)
  head.writeBigUInt64LE(BigInt(rawTags.length), flagsAt + 10)
  return Buffer.concat([head, rawTags, payload])
}

t.test('an item is taken where the usual library takes it, with its tags and its id', async (t) => {
  const seen = { taken: 0, refused: 0 }
  const flag = fc.oneof({ weight: 5, arbitrary: fc.constant(0) }, fc.integer({ min: 2, max: 255 }))
  const off = fc.oneof({ weight: 8, arbitrary: fc.constant(0) }, fc.integer({ min: -2, max: 2 }))
  await fc.assert(
    fc.asyncProperty(anyArray, off, fc.tuple(flag, flag), async (rawTags, off, flags) => {
      const read = decodeTags(rawTags)
      if (isRefusal(read) && isBeyond(read)) return
      const count = isRefusal(read) ? 1 + off : read.tags.length + off
      if (count < 0) return
      const item = itemOf(rawTags, count, flags)
      const ours = verifyItem(item)
      const clients = readItemHead(item)
      if (isRefusal(ours)) {
        deepEqual(clients, undefined)
        // The count is not signed: with none in it, tags that the owner signed would be hidden.
        ok(count === 0 || !(await DataItem.verify(Buffer.from(item))))
        seen.refused += 1
      } else {
        ok(await DataItem.verify(Buffer.from(item)))
        const library = new DataItem(Buffer.from(item))
        deepEqual(ours.tags.map(tagText), library.tags)
        deepEqual(Buffer.from(ours.rawTags), Buffer.from(rawTags))
        deepEqual([ours.id, ours.headerSize], [library.id, item.length - payload.length])
        ok(typeof clients === 'object')
        deepEqual([clients.id, clients.tags], [library.id, library.tags])
        deepEqual(Buffer.from(clients.bytes), Buffer.from(item.subarray(0, ours.headerSize)))
        seen.taken += 1
      }
    }),
    { numRuns: 300 },
  )
  t.ok(seen.taken > 50 && seen.refused > 20, JSON.stringify(seen))
})

t.test('a count that the owner did not sign hides no tags', async (t) => {
  const rawTags = Buffer.from('0202610262', 'hex')
  t.match(parseItemHeader(itemOf(rawTags, 0, [0, 0])), { message: /says 0 tags, but there are 1/ })
  t.equal(readItemHead(itemOf(rawTags, 0, [0, 0])), undefined)
  t.match(parseItemHeader(itemOf(rawTags, 1, [2, 255])), { headerSize: flagsAt + 18 + 5 })
})

t.test('half a megabyte of needless groups is read once', async (t) => {
  const long = Buffer.alloc(500_000, 128)
  long.set([2, 2, 97, 2, 98], 0)
  t.match(decodeTags(long), { tags: [{}] })
  t.match(unpackTags(long), [{ name: 'a', value: 'b' }])
})
