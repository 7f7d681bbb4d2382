import t from 'tap'
import { internNatively, sortNatively, wordsBy } from '../../native/words/words.js'
import { WordBatch } from '../../src/index/word-batch.js'
import { tagKey, wordField } from '../../src/index/word-key.js'
import { sortedHere, sortedTexts } from '../../src/index/word-sort.js'
import { fc } from '../property.js'

const skip = wordsBy === 'fallback' && 'the addon was not built: its fallback is tested where it is used'

function joined(texts: readonly Uint8Array[]): { bytes: Buffer; starts: Uint32Array } {
  const starts = new Uint32Array(texts.length + 1)
  for (const [at, text] of texts.entries()) starts[at + 1] = (starts[at] as number) + text.length
  return { bytes: Buffer.concat(texts), starts }
}

/** Texts that share much: of few letters, some of them zero, with long beginnings that are the same. */
const alike = fc
  .record({
    start: fc.array(fc.constantFrom(0, 1, 0x61, 0xff), { maxLength: 40 }),
    ends: fc.uniqueArray(fc.array(fc.constantFrom(0, 1, 0x61, 0xff), { maxLength: 20 }), {
      maxLength: 120,
      selector: (text) => text.join(),
    }),
  })
  .map(({ start, ends }) => ends.map((end) => Uint8Array.of(...start, ...end)))
const any = fc.uniqueArray(fc.uint8Array({ maxLength: 12 }), {
  maxLength: 200,
  selector: (text) => text.join(),
})

t.test('texts are sorted as bytes are compared', { skip }, async (t) => {
  const isRight = (texts: readonly Uint8Array[]): void => {
    const { bytes, starts } = joined(texts)
    const expected = texts.map((_, at) => at).sort((a, b) => Buffer.compare(texts[a]!, texts[b]!))
    t.strictSame([...sortedTexts(bytes, starts, texts.length)], expected)
    t.strictSame([...sortedHere(bytes, starts, texts.length)], expected)
  }
  fc.assert(fc.property(fc.oneof(alike, any), isRight), { numRuns: 100 })
  isRight([])
  // Each begins with all before it: no depth of the sort is too deep.
  isRight(Array.from({ length: 300 }, (_, at) => Buffer.alloc(30 * (300 - at), 0x61)))
})

t.test('an order does not lie in the memory of the starts', { skip }, async (t) => {
  const sort = sortNatively as NonNullable<typeof sortNatively>
  const all = new Uint32Array(8)
  for (const at of [0, 3, 4, 6]) {
    const order = all.subarray(at, at + 2)
    const within = () => sort(new Uint8Array(0), all.subarray(2, 5), order)
    if (at < 2 || at >= 5) t.doesNotThrow(within)
    else t.throws(within, RangeError)
  }
  t.throws(() => sort(new Uint8Array(0), all.subarray(1, 4), all.subarray(0, 2)), RangeError)
})

/** A message with owners and tags as pack.ts writes them, and where each word is. */
function messageOf(words: readonly (readonly [name: Buffer | undefined, value: Buffer])[]) {
  const parts: Buffer[] = []
  const places: number[] = []
  let at = 0
  const length = (size: number): Buffer =>
    size < 0x80 ? Buffer.of(size) : Buffer.of((size % 0x80) + 0x80, size >> 7)
  for (const [name, value] of words) {
    const part =
      name === undefined ? value : Buffer.concat([length(name.length), name, length(value.length), value])
    places.push(name === undefined ? wordField.owner : wordField.tag, at, at + part.length)
    at += part.length
    parts.push(part)
  }
  return { message: Buffer.concat(parts), words: Uint32Array.from(places) }
}

const bytes = fc.uint8Array({ maxLength: 200 }).map((some) => Buffer.from(some))
const word = fc.tuple(
  fc.option(fc.constantFrom(Buffer.from('Type'), Buffer.alloc(150, 1)), { nil: undefined }),
  bytes,
)

t.test('words of messages have the numbers that they have one by one', { skip }, async (t) => {
  const messages = fc.array(fc.array(word, { maxLength: 80 }), { maxLength: 12 })
  fc.assert(
    fc.property(messages, (all) => {
      const [together, single] = [new WordBatch(2 ** 20), new WordBatch(2 ** 20)]
      for (const some of all) {
        const { message, words } = messageOf(some)
        const expected = some.map(([name, value]) =>
          name === undefined ? single.ofField(wordField.owner, value) : single.ofTag(name, value),
        )
        t.strictSame([...together.internAll(message, words)], expected)
      }
      // Also those that came together are found one by one.
      for (const [name, value] of all.flat()) {
        const number =
          name === undefined ? together.ofField(wordField.owner, value) : together.ofTag(name, value)
        const key = name === undefined ? Buffer.concat([Buffer.of(1), value]) : tagKey(name, value)
        const { keys, starts } = together
        t.ok(keys.subarray(starts[number], starts[number + 1]).equals(key))
      }
      t.equal(together.count, single.count)
    }),
    { numRuns: 30 },
  )
})

t.test('what does not fit is refused', { skip }, async (t) => {
  const memory = {
    keys: new Uint8Array(16),
    starts: new Uint32Array(4),
    hashes: new Int32Array(4),
    slots: new Int32Array(8),
    secret: new Int32Array(2),
  }
  const intern = internNatively as NonNullable<typeof internNatively>
  const one = new Uint32Array(1)
  const message = Uint8Array.of(3, 1, 1, 1, 1, 1)
  t.equal(intern(memory, 0, message, Uint32Array.of(4, 0, 6), one), 1, 'a tag whose value is one byte')
  t.throws(
    () => intern(memory, 1, message, Uint32Array.of(4, 0, 3), one),
    RangeError,
    'a name that is longer',
  )
  t.throws(() => intern(memory, 1, message, Uint32Array.of(1, 0, 7), one), RangeError, 'behind the message')
  t.throws(
    () => intern(memory, 1, message, Uint32Array.of(1, 4, 3), one),
    RangeError,
    'an end before its start',
  )
  const large = Buffer.alloc(64, 5)
  t.throws(() => intern(memory, 1, large, Uint32Array.of(1, 0, 64), one), RangeError, 'no room for keys')
  const full = { ...memory, slots: new Int32Array(8).fill(3) }
  t.throws(() => intern(full, 1, message, Uint32Array.of(1, 0, 5), one), RangeError, 'slots of no words')
})
