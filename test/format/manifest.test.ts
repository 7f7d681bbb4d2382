import { deepEqual } from 'node:assert/strict'
import t from 'tap'
import { parseManifest, resolvePath } from '../../src/format/manifest.js'
import { isRefusal } from '../../src/format/refusal.js'
import { fixture, fixtureJson, fixtureNames, sound } from '../fixture-file.js'
import { fc } from '../property.js'

const idA = 'cG7Hdi_iTQPoEYgQJFqJ8NMpN4KoZ-vH_j7pG4iP7NI'
const idB = 'QYWh-QsozsYu2wor0ZygI5Zoa_fRYFc8_X1RkYmw_fU'
const found = (id: string) => ({ id, fallback: false })
const instead = (id: string) => ({ id, fallback: true })

/** What a manifest says about a path. */
function ask(manifest: unknown, path: string): unknown {
  return resolvePath(sound(parseManifest(JSON.stringify(manifest))), path)
}

for (const name of fixtureNames('manifests')) {
  t.test(`${name} leads every path to its id`, async (t) => {
    const manifest = sound(parseManifest(fixture(`manifests/${name}`)))
    const json = fixtureJson<{ version: string; paths: Record<string, { id: string }> }>(`manifests/${name}`)
    for (const [path, { id }] of Object.entries(json.paths)) {
      t.strictSame(resolvePath(manifest, path), found(id))
      t.strictSame(resolvePath(manifest, `${path}//`), found(id))
    }
    t.strictSame(resolvePath(manifest, 'no/such/path'), json.version === '0.2.0' ? instead(idA) : undefined)
    const index =
      name.includes('index_id') || name.includes('0_at_the_end') ? idB : json.paths['index.html']?.id
    t.strictSame(resolvePath(manifest, ''), found(index ?? ''))
    t.strictSame(resolvePath(manifest, '/'), found(index ?? ''))
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

t.test('names of the language are names like any other', async (t) => {
  const text = `{"paths":{"__proto__":{"id":"${idA}"},"a":{"__proto__":{"id":"${idB}"}}}}`
  const manifest = sound(parseManifest(text))
  t.strictSame(resolvePath(manifest, '__proto__'), found(idA))
  for (const path of ['constructor', 'toString', 'hasOwnProperty', 'a'])
    t.equal(resolvePath(manifest, path), undefined)
  t.equal(sound(parseManifest('{"__proto__":{"paths":{"a":{"id":"x"}}}}')).paths.size, 0)
})

t.test('an id is only looked at when it is asked for', async (t) => {
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
  const manifest = sound(parseManifest(Buffer.from(`\ufeff${text}`)))
  t.strictSame(resolvePath(manifest, 'é/日本.html'), found(idA))
})

t.test('what is no manifest is refused, and so is what is too large', async (t) => {
  for (const text of ['', 'x', '[]', 'null', '1', '"a"', '{"paths":{}', '['.repeat(100_000)]) {
    t.ok(isRefusal(parseManifest(text)), text.slice(0, 20))
  }
  t.match(parseManifest('{}   ', { sizeBytes: 4, pathsMax: 1 }), { refused: 'too-large' })
  t.match(parseManifest(JSON.stringify({ paths }), { sizeBytes: 1000, pathsMax: 1 }), {
    refused: 'too-large',
  })
})

t.test('every path of every manifest is found again', async (t) => {
  const path = fc.string({ unit: 'grapheme', maxLength: 12 }).map((text) => text.replace(/\/+$/, ''))
  fc.assert(
    fc.property(
      fc.uniqueArray(
        path.filter((text) => text !== ''),
        { maxLength: 20 },
      ),
      (list) => {
        const text = JSON.stringify({ paths: Object.fromEntries(list.map((each) => [each, { id: idA }])) })
        const manifest = sound(parseManifest(text))
        for (const each of list) deepEqual(resolvePath(manifest, each), found(idA))
      },
    ),
  )
  t.pass('held for every sample')
})
