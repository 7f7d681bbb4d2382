// Compiles the sources of each native/<name>/ into native/<name>/build/<platform>-<arch>.node, only where one of them, or a
// header that all share, is newer than it.
// Without a compiler nothing is built and nothing fails: each addon has a TypeScript twin.
import { spawnSync } from 'node:child_process'
import { existsSync, mkdirSync, readdirSync, renameSync, rmSync, statSync } from 'node:fs'
import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'

const here = dirname(fileURLToPath(import.meta.url))
const include = createRequire(import.meta.url)('node-api-headers').include_dir
const compilers = [process.env.CXX, 'c++', 'g++', 'clang++'].filter((name) => name !== undefined)
const say = (line) => process.stdout.write(`${line}\n`)

function compile(sources, target) {
  const flags = [
    '-std=c++17',
    '-O2',
    '-Wall',
    '-Wextra',
    '-Werror',
    '-fPIC',
    '-fvisibility=hidden',
    '-shared',
  ]
  const draft = `${target}.${process.pid}`
  for (const compiler of compilers) {
    const run = spawnSync(compiler, [...flags, '-DNAPI_VERSION=8', `-I${include}`, ...sources, '-o', draft], {
      encoding: 'utf8',
    })
    if (run.error !== undefined) continue
    if (run.status === 0) renameSync(draft, target)
    return run.status === 0 ? 'built' : `${compiler} failed:\n${run.stderr}`
  }
  return 'no C++ compiler was found'
}

const textsOf = (folder) =>
  readdirSync(folder)
    .map((file) => join(folder, file))
    .filter((file) => /\.(cc|h)$/.test(file))

for (const name of readdirSync(here)) {
  if (!existsSync(join(here, name, `${name}.cc`))) continue
  const texts = [...textsOf(here), ...textsOf(join(here, name))]
  const target = join(here, name, 'build', `${process.platform}-${process.arch}.node`)
  const newest = Math.max(...texts.map((file) => statSync(file).mtimeMs))
  if (existsSync(target) && statSync(target).mtimeMs >= newest) continue
  // One of other sources would speak other words with the TypeScript beside it: rather none.
  rmSync(target, { force: true })
  mkdirSync(dirname(target), { recursive: true })
  const outcome = compile(
    texts.filter((file) => file.endsWith('.cc')),
    target,
  )
  if (outcome !== 'built') say(`native/${name}: ${outcome}; its slower TypeScript twin will be used`)
}
