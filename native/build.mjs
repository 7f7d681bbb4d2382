// Compiles the sources of each native/<name>/ into native/<name>/build/<platform>-<arch>.node, only where one of them, or a
// header that all share, is newer than it. With --sanitize into <platform>-<arch>.sanitized.node, with AddressSanitizer and
// UndefinedBehaviorSanitizer: `npm run sanitized -- FILE` runs with those, and any fault of theirs ends that run.
//
// Without a compiler, or where it fails, nothing fails here: each addon has a TypeScript twin. One line says which addon, why, and
// what to do; the same line lies beside the addon (<platform>-<arch>.failed), for the program to say it at its start.
// With --strict (the project's own CI) warnings are errors, and so is an addon that was not built. Nowhere else: a later compiler
// that warns of more must not cost anybody the addon.
import { spawnSync } from 'node:child_process'
import { existsSync, mkdirSync, readdirSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'

const here = dirname(fileURLToPath(import.meta.url))
const sanitize = process.argv.includes('--sanitize')
const strict = sanitize || process.argv.includes('--strict')
const say = (line) => process.stdout.write(`${line}\n`)

const flags = [
  ...['-std=c++17', '-Wall', '-Wextra', ...(strict ? ['-Werror'] : [])],
  ...['-fPIC', '-fvisibility=hidden', '-shared', '-DNAPI_VERSION=8'],
  ...(sanitize
    ? ['-O1', '-g', '-fno-omit-frame-pointer', '-fsanitize=address,undefined', '-fno-sanitize-recover=all']
    : ['-O2']),
]

/** What the program does without each. */
const without = {
  digest: 'its slower TypeScript twin takes over',
  mapped: 'its slower TypeScript twin takes over',
  schedule: 'threads of the background are nice only',
  server: 'its slower TypeScript twin takes over',
}

/** Undefined: built. Else in one line why not. */
function compile(sources, target) {
  const compilers = [process.env.CXX, 'c++', 'g++', 'clang++'].filter((name) => (name ?? '') !== '')
  const include = headers()
  if (include === undefined) return 'the package node-api-headers is not installed (npm ci)'
  const draft = `${target}.${process.pid}`
  for (const compiler of compilers) {
    const run = spawnSync(compiler, [...flags, `-I${include}`, ...sources, '-o', draft], { encoding: 'utf8' })
    if (run.error !== undefined) continue
    if (run.stderr !== '') process.stderr.write(run.stderr)
    if (run.status === 0) {
      renameSync(draft, target)
      return undefined
    }
    rmSync(draft, { force: true })
    const lines = run.stderr.split('\n')
    const first = lines.find((line) => /error/i.test(line)) ?? lines.find((line) => line !== '') ?? ''
    return `${compiler} ended with ${run.status ?? run.signal}: ${first.trim().slice(0, 300)}`
  }
  return `no C++ compiler was found (looked for ${compilers.join(', ')})`
}

function headers() {
  try {
    return createRequire(import.meta.url)('node-api-headers').include_dir
  } catch {
    return undefined
  }
}

const textsOf = (folder) =>
  readdirSync(folder)
    .map((file) => join(folder, file))
    .filter((file) => /\.(cc|h)$/.test(file))

let failed = 0
for (const name of readdirSync(here)) {
  if (!existsSync(join(here, name, `${name}.cc`))) continue
  const texts = [...textsOf(here), ...textsOf(join(here, name))]
  const place = join(here, name, 'build', `${process.platform}-${process.arch}`)
  const target = `${place}${sanitize ? '.sanitized' : ''}.node`
  const newest = Math.max(...texts.map((file) => statSync(file).mtimeMs))
  const isStrict = strict && !sanitize
  if (!isStrict && existsSync(target) && statSync(target).mtimeMs >= newest) continue
  // One of other sources would speak other words with the TypeScript beside it: rather none.
  for (const old of [target, `${place}.failed`]) rmSync(old, { force: true })
  mkdirSync(dirname(target), { recursive: true })
  const sources = texts.filter((file) => file.endsWith('.cc'))
  const reason = compile(sources, target)
  if (reason === undefined) continue
  failed += 1
  const way = 'install a C++17 compiler (Debian: apt-get install g++) and run npm run build'
  say(`native/${name} was not built: ${reason}; ${without[name]}; to mend it: ${way}`)
  if (!sanitize) writeFileSync(`${place}.failed`, `${reason}\n`)
}
if (strict && failed > 0) process.exitCode = 1
