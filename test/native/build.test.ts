import { spawnSync } from 'node:child_process'
import { chmodSync, cpSync, existsSync, mkdirSync, readdirSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import t from 'tap'
import type { MissingAddon } from '../../native/addon.js'
import { scratch } from '../scratch.js'

const root = fileURLToPath(new URL('../../../', import.meta.url))

/** The sources of the addons in a folder of their own, and a compiler there that does what `script` does. */
function workshop(script: string | undefined): {
  folder: string
  build(...words: string[]): { code: number | null; lines: string[] }
} {
  const folder = scratch('build')
  mkdirSync(join(folder, 'bin'))
  for (const name of ['build.mjs', 'calls.h', 'bus.h', 'schedule', 'mapped'])
    cpSync(join(root, 'native', name), join(folder, 'native', name), {
      recursive: true,
      filter: (path) => !path.endsWith('.node'),
    })
  symlinkSync(join(root, 'node_modules'), join(folder, 'node_modules'))
  if (script !== undefined) {
    writeFileSync(join(folder, 'bin', 'c++'), `#!/bin/sh\n${script}\n`)
    chmodSync(join(folder, 'bin', 'c++'), 0o755)
  }
  return {
    folder,
    build(...words) {
      const env = { PATH: join(folder, 'bin') }
      const run = spawnSync(process.execPath, [join(folder, 'native/build.mjs'), ...words], {
        env,
        encoding: 'utf8',
      })
      return { code: run.status, lines: run.stdout.split('\n').filter((line) => line !== '') }
    },
  }
}

/** What a program that lies in this folder says of its addons. */
async function missing(folder: string): Promise<readonly MissingAddon[]> {
  mkdirSync(join(folder, 'dist/native'), { recursive: true })
  cpSync(join(root, 'dist/native/addon.js'), join(folder, 'dist/native/addon.js'))
  writeFileSync(join(folder, 'package.json'), '{"type":"module"}')
  const { missingAddons } = await import(pathToFileURL(join(folder, 'dist/native/addon.js')).href)
  return missingAddons()
}

t.test(
  'where the compiler fails the addon is missing, and one line says which, why, and what to do',
  async (t) => {
    const { folder, build } = workshop('echo "x.cc:1: error: no such thing" >&2; exit 3')
    const { code, lines } = build()
    t.equal(code, 0, 'the program runs all the same')
    t.equal(lines.length, 2, 'one line each')
    for (const [index, name] of ['mapped', 'schedule'].entries()) {
      t.match(lines[index], `native/${name} was not built: c++ ended with 3: x.cc:1: error: no such thing;`)
      t.match(lines[index], 'npm run build')
    }
    const found = await missing(folder)
    t.same(
      found.map(({ addon }) => addon),
      [
        'client',
        'server',
        'mapped',
        'digest',
        'ed25519',
        'secp256k1',
        'crash',
        'database',
        'words',
        'schedule',
      ],
    )
    t.match(found.find(({ addon }) => addon === 'mapped')?.reason, 'x.cc:1: error: no such thing')
    t.match(found.find(({ addon }) => addon === 'server')?.reason, 'it was not built here')
    t.equal(build('--strict').code, 1, 'where the addons are wanted it is a failure')
  },
)

t.test('without a compiler the same', async (t) => {
  const { build } = workshop(undefined)
  const { code, lines } = build()
  t.equal(code, 0)
  for (const line of lines) t.match(line, 'no C++ compiler was found')
  t.equal(build('--strict').code, 1)
})

t.test('warnings are errors where that is asked for, and nowhere else', async (t) => {
  // Makes what it was told to, unless it was told to take warnings for errors.
  const script = [
    'for word in "$@"; do',
    '  if [ "$word" = "-Werror" ]; then echo "warning, error" >&2; exit 1; fi',
    '  if [ "$before" = "-o" ]; then : > "$word"; fi',
    '  before=$word',
    'done',
  ].join('\n')
  const { folder, build } = workshop(script)
  t.strictSame(build(), { code: 0, lines: [] })
  t.ok(existsSync(join(folder, `native/mapped/build/${process.platform}-${process.arch}.node`)))
  const { code, lines } = build('--strict')
  t.equal(code, 1)
  t.match(lines[0], 'warning, error')
})

t.test('what was built here is there', async (t) => {
  const { missingAddons } = await import('../../native/addon.js')
  const there = readdirSync(join(root, 'native/mapped/build')).some(
    (name) => name === `${process.platform}-${process.arch}.node`,
  )
  t.equal(
    missingAddons().some(({ addon }) => addon === 'mapped'),
    !there,
  )
})
