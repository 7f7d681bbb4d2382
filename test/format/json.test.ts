import t from 'tap'
import { isJsonWithin, parsedBytes, parsedJson } from '../../src/format/json.js'
import { fc } from '../property.js'

/** Values of a parsed text, as the bounds count them: a comma stands between two, and a list or object is one. */
function valuesOf(value: unknown): number {
  if (typeof value !== 'object' || value === null) return 0
  const inner: unknown[] = Object.values(value)
  return 1 + Math.max(0, inner.length - 1) + inner.reduce((sum: number, one) => sum + valuesOf(one), 0)
}

const depthOf = (value: unknown): number =>
  typeof value === 'object' && value !== null
    ? 1 + Math.max(0, ...Object.values(value).map((one: unknown) => depthOf(one)))
    : 0

t.test('a text is within bounds exactly where its value is', async (t) => {
  fc.assert(
    fc.property(fc.json({ maxDepth: 6 }), fc.nat(12), fc.nat(6), (text, values, depth) => {
      const value: unknown = JSON.parse(text)
      // A repeated name counts twice in the text.
      if (JSON.stringify(value) !== text) return
      t.equal(isJsonWithin(text, { values, depth }), valuesOf(value) <= values && depthOf(value) <= depth)
    }),
  )
})

t.test('strings count for nothing, whatever is in them', async (t) => {
  fc.assert(
    fc.property(fc.string({ unit: fc.constantFrom('"', '\\', '[', '{', ',', 'a', '\n') }), (text) => {
      t.equal(parsedJson(JSON.stringify(text), { values: 0, depth: 0 }), text)
    }),
  )
})

t.test('bytes of strangers are refused before they take memory', async (t) => {
  for (const text of [
    '['.repeat(2 ** 22),
    '[],'.repeat(2 ** 20),
    '{"a":'.repeat(2 ** 20),
    '"'.repeat(2 ** 20),
  ]) {
    const before = process.memoryUsage.rss()
    t.equal(parsedJson(text, { values: 1000 }), undefined)
    t.ok(process.memoryUsage.rss() - before < 2 ** 26, text.slice(0, 5))
  }
  t.equal(parsedBytes(Uint8Array.of(0xff)), undefined, 'no UTF-8')
  t.equal(parsedJson('{'), undefined)
  t.same(parsedJson('{"a":[1,2]}', { values: 3, depth: 2 }), { a: [1, 2] })
})

t.test('strings of digits that strangers could choose by their hashes are bounded', async (t) => {
  const listOf = (text: string, count: number): string => `[${Array(count).fill(`"${text}"`).join(',')}]`
  const isWithin = (text: string, count: number): boolean =>
    isJsonWithin(listOf(text, count), { values: 10_000 })
  for (const digits of ['12345678', '99999999999999999999', '1234567\\u0038', '\\u0031'.repeat(20)]) {
    t.ok(isWithin(digits, 2000), digits)
    t.notOk(isWithin(digits, 2001), digits)
    t.ok(isJsonWithin(listOf(digits, 2001), { values: 10_000, integers: 2001 }), digits)
  }
  const names = `{${Array(2001).fill('"123456789":0').join(',')}}`
  t.notOk(isJsonWithin(names, { values: 10_000 }), 'names count, too')
  for (const other of ['1234567', '1'.repeat(21), '1234567x', '1234567\\u0041', '-12345678', '\\u003'])
    t.ok(isWithin(other, 2001), other)
})
