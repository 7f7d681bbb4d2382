import { readdir, readFile } from 'node:fs/promises'
import { isBuiltin } from 'node:module'
import t from 'tap'

const dist = new URL('../../../dist/', import.meta.url)
const workers = (await readdir(new URL('workers/', dist))).map((name) => `workers/${name}`)
const parts = (await readdir(dist)).filter((name) => /^sluice[\w-]*\.js$/.test(name))
const bundles = [...parts, ...workers.filter((name) => name.endsWith('.js'))]

t.test('what threads run is kept in one byte a character', async (t) => {
  t.ok(bundles.length > 10)
  for (const name of bundles) {
    const bytes = await readFile(new URL(name, dist))
    t.ok(
      bytes.every((byte) => byte < 0x80),
      name,
    )
  }
})

t.test('of the languages of zod only English is taken along', async (t) => {
  for (const name of bundles) {
    const text = await readFile(new URL(name, dist), 'latin1')
    const languages = [...text.matchAll(/^\/\/ node_modules\/zod\/v4\/locales\/(\w+)\.js/gm)].map(
      ([, it]) => it,
    )
    t.strictSame(
      languages.filter((it) => it !== 'en' && it !== 'index'),
      [],
      name,
    )
  }
})

t.test('packages that few threads use are not read at the start of a thread', async (t) => {
  for (const name of bundles) {
    const text = await readFile(new URL(name, dist), 'latin1')
    const imported = [...text.matchAll(/^import\b[^\n]* from "([^"]+)";$/gm)].map(([, from = '']) => from)
    t.strictSame(
      imported.filter((from) => !isBuiltin(from) && from !== 'lmdb'),
      [],
      name,
    )
  }
})
