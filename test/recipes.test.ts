/** What the documents tell readers to run is there: files, scripts, commands. Whether it works is for the tests of each. */
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import t from 'tap'
import { sluice } from './flow/running.js'

const root = fileURLToPath(new URL('../..', import.meta.url))
const documents = ['README.md', 'CONTRIBUTING.md', 'deploy/OPERATING.md', 'examples/README.md'].concat(
  ['docs', 'docs/decisions', 'docs/client'].flatMap((folder) =>
    readdirSync(join(root, folder))
      .filter((name) => name.endsWith('.md'))
      .map((name) => join(folder, name)),
  ),
)
const texts = documents.map((path) => ({ path, text: readFileSync(join(root, path), 'utf8') }))

/** All that `pattern` finds, with the document; `{a,b}` in a path stands for both. */
function named(pattern: RegExp): { readonly path: string; readonly word: string }[] {
  return texts.flatMap(({ path, text }) =>
    [...text.matchAll(pattern)].flatMap(([, word = '']) => {
      const [, before = '', choices, after = ''] = /^(.*)\{(.*)\}(.*)$/.exec(word) ?? []
      const words = choices?.split(',').map((one) => `${before}${one}${after}`) ?? [word]
      return words.map((one) => ({ path, word: one }))
    }),
  )
}

t.test('programs that documents name exist', async (t) => {
  const programs = named(/\bnode (?:--[\w=.-]+ )*((?:dist|deploy|native|bin)\/[\w./{},-]+\.m?js)\b/g)
  t.ok(programs.length > 30, `${programs.length} are named`)
  t.strictSame(
    programs.filter(({ word }) => !existsSync(join(root, word))),
    [],
  )
})

t.test('scripts of npm that documents name exist', async (t) => {
  const { scripts } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as { scripts: object }
  const used = named(/\bnpm run (?:--silent )?([\w-]+)/g)
  t.ok(used.length > 5)
  t.strictSame(
    used.filter(({ word }) => !(word in scripts)),
    [],
  )
})

t.test('commands that documents name exist', async (t) => {
  const used = [...new Set(named(/\bnpx sluice ([a-z][a-z-]*)/g).map(({ word }) => word))]
  t.ok(used.length > 8, used.join(' '))
  for (const word of used) {
    const { code, out } = await sluice([word, '--help'])
    t.equal(code, 0, `sluice ${word} --help`)
    t.match(out, 'Usage')
  }
})
