import { deepEqual } from 'node:assert/strict'
import { createHash } from 'node:crypto'
import t from 'tap'
import { type ManifestLimits, parseManifest } from '../../src/format/manifest.js'
import {
  isIntact,
  packedHeadBytes,
  packManifest,
  type Resolved,
  readPackedHead,
  resolvePacked,
} from '../../src/format/packed-manifest.js'
import { isRefusal, type Refusal } from '../../src/format/refusal.js'
import { fixture, fixtureJson, fixtureNames, sound } from '../fixture-file.js'
import { fc } from '../property.js'

const idA = 'cG7Hdi_iTQPoEYgQJFqJ8NMpN4KoZ-vH_j7pG4iP7NI'
const idB = 'QYWh-QsozsYu2wor0ZygI5Zoa_fRYFc8_X1RkYmw_fU'
const limits: ManifestLimits = { sizeBytes: 2 ** 24, pathsMax: 300_000, pathMaxBytes: 8192 }

const parse = (text: string | Uint8Array, more: Partial<ManifestLimits> = {}) =>
  parseManifest(Buffer.from(text), { ...limits, ...more })

/** What the packed form of a text says about a path: the form is read in place, a few bytes at a time. */
function look(text: string | Uint8Array): (path: string) => Resolved | undefined {
  const digest = createHash('sha256').update(text).digest()
  const packed = packManifest(sound(parse(text)), digest, limits)
  deepEqual(isIntact(packed, digest, limits), true)
  const head = readPackedHead(packed.subarray(0, packedHeadBytes), packed.length)
  if (head === undefined) throw new Error('no head')
  return (path) => {
    const outcome = resolvePacked(head, (at, length) => packed.subarray(at, at + length), path)
    if (outcome === 'broken') throw new Error('broken')
    return outcome === 'absent' ? undefined : outcome
  }
}

const found = (id: string) => ({ id, fallback: false })
const instead = (id: string) => ({ id, fallback: true })

/** What a manifest says about a path. */
function ask(manifest: unknown, path: string): unknown {
  return look(JSON.stringify(manifest))(path)
}

for (const name of fixtureNames('manifests')) {
  t.test(`${name} leads every path to its id`, async (t) => {
    const ask = look(fixture(`manifests/${name}`))
    const json = fixtureJson<{ version: string; paths: Record<string, { id: string }> }>(`manifests/${name}`)
    for (const [path, { id }] of Object.entries(json.paths)) {
      t.strictSame(ask(path), found(id))
      t.strictSame(ask(`${path}//`), found(id))
    }
    t.strictSame(ask('no/such/path'), json.version === '0.2.0' ? instead(idA) : undefined)
    const index =
      name.includes('index_id') || name.includes('0_at_the_end') ? idB : json.paths['index.html']?.id
    t.strictSame(ask(''), found(index ?? ''))
    t.strictSame(ask('/'), found(index ?? ''))
  })
}

const paths = { 'index.html': { id: idA }, 'a/': { id: idB } }

t.test('the index follows the version', async (t) => {
  t.strictSame(ask({ version: '0.1.0', index: { path: 'index.html', id: idB }, paths }, ''), found(idA))
  t.equal(ask({ version: '0.1.0', index: { id: idB }, paths }, ''), undefined)
  t.strictSame(ask({ version: '0.2.0', index: { path: 'index.html', id: idB }, paths }, ''), found(idB))
  t.strictSame(ask({ version: '0.2.0', index: { path: 'a/' }, paths }, ''), found(idB))
  t.strictSame(ask({ index: { path: 'index.html' }, paths }, ''), found(idA))
})

t.test(
  'a fallback stands in for missing paths, a missing index and an index that leads nowhere',
  async (t) => {
    const fallback = { id: idB }
    t.strictSame(ask({ version: '0.2.0', fallback, paths }, 'x'), instead(idB))
    t.strictSame(ask({ version: '0.2.0', fallback, paths }, ''), instead(idB))
    t.strictSame(ask({ version: '0.2.0', fallback, index: { path: 'gone' }, paths }, ''), instead(idB))
    t.equal(ask({ version: '0.1.0', fallback, paths }, 'x'), undefined)
  },
)

t.test('paths are compared exactly but for slashes at the end', async (t) => {
  t.strictSame(ask({ paths }, 'a'), found(idB))
  t.strictSame(ask({ paths }, 'a///'), found(idB))
  for (const path of ['A', '/a', 'a/b', 'index', 'index.html/x', './a'])
    t.equal(ask({ paths }, path), undefined)
})

t.test('names of inherited properties are ordinary path names', async (t) => {
  const text = `{"paths":{"__proto__":{"id":"${idA}"},"a":{"__proto__":{"id":"${idB}"}}}}`
  const ask = look(text)
  t.strictSame(ask('__proto__'), found(idA))
  for (const path of ['constructor', 'toString', 'hasOwnProperty', 'a']) t.equal(ask(path), undefined)
  t.equal(sound(parse('{"__proto__":{"paths":{"a":{"id":"x"}}}}')).paths.size, 0)
})

t.test('an id is checked only when it is requested', async (t) => {
  const mixed = {
    version: '0.2.0',
    fallback: { id: idA },
    paths: { good: { id: idB }, bad: { id: '../etc' }, no: {} },
  }
  t.strictSame(ask(mixed, 'good'), found(idB))
  t.equal(ask(mixed, 'bad'), undefined)
  t.strictSame(ask(mixed, 'no'), instead(idA))
})

t.test('bytes with a byte order mark and paths beyond ASCII are read', async (t) => {
  const text = JSON.stringify({ paths: { 'é/日本.html': { id: idA } } })
  const ask = look(Buffer.from(`\ufeff${text}`))
  t.strictSame(ask('é/日本.html'), found(idA))
})

t.test('what is no manifest is refused, and so is what is beyond a limit', async (t) => {
  for (const text of ['', 'x', '[]', 'null', '1', '"a"', '{"paths":{}', '['.repeat(100_000)]) {
    t.ok(isRefusal(parse(text)), text.slice(0, 20))
  }
  const text = JSON.stringify({ paths })
  const outcomeOf = (more: Partial<ManifestLimits>, given = text): string =>
    `${(parse(given, more) as Refusal).refused}: ${(parse(given, more) as Refusal).message}`
  t.equal(outcomeOf({ sizeBytes: 4 }, '{}   '), 'too-large: manifest: more than 4 bytes')
  t.equal(outcomeOf({ pathsMax: 1 }), 'too-large: manifest: more than 1 paths')
  t.equal(outcomeOf({ pathMaxBytes: 9 }), 'too-large: manifest: a path of more than 9 bytes')
  t.notOk(isRefusal(parse(text, { pathsMax: 2, pathMaxBytes: 10 })))
  const hollow = `{"paths":{},"x":[${'{},'.repeat(300_000)}{}]}`
  t.equal(outcomeOf({ pathsMax: 10_000 }, hollow), 'too-large: manifest: more than 84096 values')
})

/** Ids, and texts that are none. */
const ids = [
  'cG7Hdi_iTQPoEYgQJFqJ8NMpN4KoZ-vH_j7pG4iP7NI',
  'QYWh-QsozsYu2wor0ZygI5Zoa_fRYFc8_X1RkYmw_fU',
  'no id',
  '',
]

/** Keys that have met trouble elsewhere, and few enough of them to come twice. */
const awkward = fc.constantFrom(
  '',
  '/',
  '//',
  'a',
  'a/',
  'a//',
  '/a',
  'A',
  'b/c',
  '__proto__',
  '__proto__/',
  'constructor',
  'id',
  '1',
  '1/',
  '0',
  '01',
  '4294967295',
  'é',
  'e\u0301',
  '\u{1f600}',
  '日本/語',
  '%61',
  'a%20b',
  'a b',
  '\u0000',
  '\ufeff',
  '\\',
  '"',
  '\ud800',
  '\udc00x',
  'length',
  'x'.repeat(300),
)
const key = fc.oneof(awkward, awkward, fc.string({ unit: 'binary', maxLength: 6 }))
const value = fc.oneof(
  { weight: 6, arbitrary: fc.constantFrom(...ids).map((id) => `{"id":${JSON.stringify(id)}}`) },
  {
    weight: 1,
    arbitrary: fc.constantFrom('{}', 'null', '[]', '7', '{"id":7}', '{"id":"x","id":null}', '"text"'),
  },
)
/** Members as they stand in a text: keys may come twice. */
const members = (names: typeof key, most: number) =>
  fc
    .array(fc.tuple(names, value), { maxLength: most })
    .map((all) => `{${all.map(([name, text]) => `${JSON.stringify(name)}:${text}`).join(',')}}`)
const indexText = fc.oneof(
  key.map((path) => `{"path":${JSON.stringify(path)}}`),
  fc.tuple(key, fc.constantFrom(...ids)).map(([path, id]) => JSON.stringify({ path, id })),
  fc.constantFrom(...ids).map((id) => `{"id":"${id}"}`),
  fc.constantFrom('{}', 'null', '"a"', '[]'),
)
const manifestText = fc
  .array(
    fc.oneof(
      { weight: 4, arbitrary: members(key, 40).map((text) => `"paths":${text}`) },
      fc.constantFrom('"version":"0.1.0"', '"version":"0.2.0"', '"version":"0.2.0"', '"version":2'),
      indexText.map((text) => `"index":${text}`),
      value.map((text) => `"fallback":${text}`),
      value.map((text) => `"__proto__":${text}`),
    ),
    { maxLength: 6 },
  )
  .map((parts) => `{${parts.join(',')}}`)

/** What the text says in plain words: the language's own JSON, an object with no inheritance, one path after the other. */
function plainly(text: string, path: string): Resolved | undefined {
  const own = (thing: unknown, name: string): unknown =>
    typeof thing === 'object' && thing !== null && !Array.isArray(thing) && Object.hasOwn(thing, name)
      ? (thing as Record<string, unknown>)[name]
      : undefined
  const idIn = (thing: unknown): string | undefined => {
    const id = own(thing, 'id')
    return typeof id === 'string' ? id : undefined
  }
  const bare = (spelled: string): string => spelled.replace(/\/+$/, '')
  const json: unknown = JSON.parse(text)
  const isNew = own(json, 'version') === '0.2.0'
  const paths = own(json, 'paths')
  const names = typeof paths === 'object' && paths !== null && !Array.isArray(paths) ? Object.keys(paths) : []
  const listed = (spelled: string): string | undefined =>
    names
      .filter((name) => bare(name) === bare(spelled))
      .map((name) => idIn(own(paths, name)))
      .find((id) => id !== undefined)
  const index = own(json, 'index')
  const start = own(index, 'path')
  const first = (isNew ? idIn(index) : undefined) ?? (typeof start === 'string' ? listed(start) : undefined)
  const direct = bare(path) === '' ? first : listed(path)
  const id = direct ?? (isNew ? idIn(own(json, 'fallback')) : undefined)
  return id === undefined || id.length !== 43
    ? undefined
    : ({ id, fallback: direct === undefined } as Resolved)
}

t.test('a packed manifest says what its text says, whatever stands in that', async (t) => {
  fc.assert(
    fc.property(manifestText, fc.array(key, { maxLength: 10 }), (text, more) => {
      const ask = look(text)
      const tried = [...more, '', 'a', 'a/', '__proto__', '1', '1/', 'e\u0301', '%61']
      // No request can spell half a character.
      for (const path of tried.filter((one) => !/\p{Surrogate}/u.test(one))) {
        deepEqual(ask(path), plainly(text, path), JSON.stringify({ text, path }))
      }
    }),
    { numRuns: 500 },
  )
  t.pass('held for every sample')
})

t.test('thousands of paths are found, each by a few small reads; what is not there is not', async (t) => {
  const many = Object.fromEntries(
    Array.from({ length: 20_000 }, (_, at) => [`folder/${at}.html`, { id: idA }]),
  )
  const digest = createHash('sha256').digest()
  const packed = packManifest(sound(parse(JSON.stringify({ paths: many }))), digest, limits)
  const head = readPackedHead(packed.subarray(0, packedHeadBytes), packed.length)
  if (head === undefined) throw new Error('no head')
  let [reads, bytes] = [0, 0]
  const ask = (path: string): unknown =>
    resolvePacked(
      head,
      (at, length) => {
        reads += 1
        bytes += length
        return packed.subarray(at, at + length)
      },
      path,
    )
  for (let at = 0; at < 20_000; at += 1) deepEqual(ask(`folder/${at}.html`), found(idA))
  t.equal(ask('folder/20000.html'), 'absent')
  t.ok(reads / 20_001 <= 3, `${reads / 20_001} reads a path`)
  t.ok(bytes / 20_001 <= 3200, `${bytes / 20_001} bytes a path`)
})

t.test('one changed byte of a packed manifest is seen', async (t) => {
  const text = JSON.stringify({ version: '0.2.0', fallback: { id: idB }, paths })
  const digest = createHash('sha256').update(text).digest()
  const packed = packManifest(sound(parse(text)), digest, limits)
  t.ok(isIntact(packed, digest, limits))
  fc.assert(
    fc.property(fc.nat(packed.length - 1), fc.integer({ min: 1, max: 255 }), (at, change) => {
      const other = Buffer.from(packed)
      other[at] = (other[at] ?? 0) ^ change
      deepEqual(isIntact(other, digest, limits), false)
      const head = readPackedHead(other.subarray(0, packedHeadBytes), other.length)
      // A damaged file may say anything, but looking into it ends.
      if (head !== undefined) resolvePacked(head, (from, length) => other.subarray(from, from + length), 'a')
    }),
  )
  t.notOk(isIntact(packed.subarray(0, -1), digest, limits))
  t.notOk(isIntact(packed, createHash('sha256').digest(), limits), 'of another text')
  t.notOk(isIntact(packed, digest, { ...limits, pathsMax: 7 }), 'made under other limits')
})
