// Compiles the sources of each native/<name>/ into native/<name>/build/<platform>-<arch>.node, only where one of them, a
// header that all share, or this file is newer than it. With --sanitize into <platform>-<arch>.sanitized.node, with AddressSanitizer and
// UndefinedBehaviorSanitizer: `npm run sanitized -- FILE` runs with those, and any fault of theirs ends that run.
//
// With --prebuilt: those that the npm package brings along, native/<name>/prebuilt/linux-<arch>-glibc.node for each processor,
// by Debian's cross compilers; a compiler that is absent is named, and its machines build at install. There is none for musl:
// Debian's musl-gcc has no C++ library. --clean removes them again, since a checkout must not load what is older than its sources.
// With --missing (at install): only where no addon that the package brought loads here.
//
// Without a compiler, or where it fails, nothing fails here: each addon has a TypeScript fallback. One line says which addon, why, and
// what to do; the same line lies beside the addon (<platform>-<arch>.failed), for the program to say it at its start.
// With --strict (the project's own CI) warnings are errors, and so is an addon that was not built. Nowhere else: a later compiler
// that warns of more must not cost anybody the addon.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdirSync, readdirSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { availableParallelism } from 'node:os'
import { dirname, join, relative } from 'node:path'
import { text } from 'node:stream/consumers'
import { fileURLToPath } from 'node:url'

const here = dirname(fileURLToPath(import.meta.url))
const sanitize = process.argv.includes('--sanitize')
const isPrebuilt = process.argv.includes('--prebuilt')
const strict = sanitize || process.argv.includes('--strict')

const flags = [
  ...['-std=c++17', '-Wall', '-Wextra', ...(strict ? ['-Werror'] : [])],
  ...['-fPIC', '-fvisibility=hidden', '-shared', '-DNAPI_VERSION=8'],
  // Node closes an addon with the last thread that loaded it, while what it left behind goes on to point into it: the handler of
  // SIGBUS (bus.h), functions that other addons were given (file-places.h, borrowed-key.h).
  '-Wl,-z,nodelete',
  ...(sanitize
    ? ['-O1', '-g', '-fno-omit-frame-pointer', '-fsanitize=address,undefined', '-fno-sanitize-recover=all']
    : ['-O2']),
  // As other build programs have it, behind what stands above: -O0 where only the form of a package is tested.
  ...(process.env.CXXFLAGS ?? '').split(/\s+/).filter((word) => word !== ''),
]

/** What the program does without each. */
const without = {
  client: 'undici takes over, which takes twice the time',
  crash: 'a start after a crash looks at the upper pages of each database only',
  database: 'a disk that refuses a write to a database may end the program',
  digest: 'its slower TypeScript fallback takes over',
  ed25519: 'node:crypto takes over, which takes twice the time',
  mapped: 'its slower TypeScript fallback takes over',
  schedule: 'threads of the background are nice only',
  secp256k1: 'its slower TypeScript fallback takes over',
  server: 'its slower TypeScript fallback takes over',
  words: 'imports in bulk and flushes of the index take a quarter more time',
}

/**
 * Gives each of `all` to `build`, as many at the same time as there are processors. Prints the lines that it resolves with, in the
 * order of `all`, and resolves with how many there were.
 */
async function built(all, build) {
  const lines = []
  const left = [...all.entries()]
  const work = async () => {
    for (let next = left.shift(); next !== undefined; next = left.shift())
      lines[next[0]] = await build(next[1])
  }
  await Promise.all(Array.from({ length: availableParallelism() }, work))
  const failed = lines.filter((line) => line !== undefined)
  for (const line of failed) process.stdout.write(`${line}\n`)
  return failed.length
}

/** Runs a compiler over a text. Resolves with undefined where there is no such compiler. */
async function compiled(compiler, words, input) {
  const child = spawn(compiler, words, { stdio: ['pipe', 'ignore', 'pipe'] })
  // A compiler that ends before it has read its input ends with its own status.
  child.stdin.on('error', () => undefined)
  child.stdin.end(input)
  const closed = once(child, 'close').catch(() => undefined)
  const stderr = await text(child.stderr)
  const ended = await closed
  return ended === undefined ? undefined : { status: ended[0], signal: ended[1], stderr }
}

/**
 * Undefined: built. Else in one line why not. All sources of an addon are compiled as one text: the headers of the C++ library,
 * which are most of what a compiler reads here, are then read once. For native/server that is 7 s of processor time in place of 30.
 */
async function compile(sources, target, compilers, more = []) {
  const include = headers()
  if (include === undefined) return 'the package node-api-headers is not installed (npm ci)'
  const draft = `${target}.${process.pid}`
  const input = sources.map((file) => `#include "${relative(here, file)}"\n`).join('')
  for (const compiler of compilers) {
    const words = [...flags, ...more, `-I${include}`, '-iquote', here, '-x', 'c++', '-', '-o', draft]
    const run = await compiled(compiler, words, input)
    if (run === undefined) continue
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

/** The addons' names, and what each is made of. */
function addons() {
  const shared = textsOf(here)
  return readdirSync(here)
    .filter((name) => existsSync(join(here, name, `${name}.cc`)))
    .map((name) => ({ name, texts: [...shared, ...textsOf(join(here, name))] }))
}

const sourcesOf = ({ texts }) => texts.filter((file) => file.endsWith('.cc'))

/** Builds for this machine what is older than its sources. Resolves with how many could not be built. */
function buildHere() {
  const compilers = [process.env.CXX, 'c++', 'g++', 'clang++'].filter((name) => (name ?? '') !== '')
  return built(addons(), async (addon) => {
    const { name, texts } = addon
    const place = join(here, name, 'build', `${process.platform}-${process.arch}`)
    const target = `${place}${sanitize ? '.sanitized' : ''}.node`
    const newest = Math.max(
      ...[...texts, fileURLToPath(import.meta.url)].map((file) => statSync(file).mtimeMs),
    )
    const isStrict = strict && !sanitize
    if (!isStrict && existsSync(target) && statSync(target).mtimeMs >= newest) return undefined
    // One of other sources would speak other words with the TypeScript beside it: rather none.
    for (const old of [target, `${place}.failed`]) rmSync(old, { force: true })
    mkdirSync(dirname(target), { recursive: true })
    const reason = await compile(sourcesOf(addon), target, compilers)
    if (reason === undefined) return undefined
    if (!sanitize) writeFileSync(`${place}.failed`, `${reason}\n`)
    const way = 'install a C++17 compiler (Debian: apt-get install g++) and run npm run build'
    return `native/${name} was not built: ${reason}; ${without[name]}; to mend it: ${way}`
  })
}

/** By the names of Node; Debian's packages are g++ on the machine itself, and g++-aarch64-linux-gnu or g++-x86-64-linux-gnu. */
const crossCompilers = { x64: 'x86_64-linux-gnu-g++', arm64: 'aarch64-linux-gnu-g++' }

/** Resolves with how many could not be built. */
function buildForPackage() {
  const all = Object.entries(crossCompilers).flatMap(([arch, compiler]) =>
    addons().map((addon) => ({ addon, arch, compiler })),
  )
  return built(all, async ({ addon, arch, compiler }) => {
    const target = join(here, addon.name, 'prebuilt', `linux-${arch}-glibc.node`)
    mkdirSync(dirname(target), { recursive: true })
    // The C++ library stays outside: Node brings it to every machine, while Debian's own copy would want glibc 2.36.
    const reason = await compile(sourcesOf(addon), target, [compiler], ['-s'])
    return reason && `native/${addon.name} has no build for ${arch} in the package: ${reason}`
  })
}

/** Whether all that the package brought loads here, so that there is nothing to build. */
async function areAllThere() {
  const program = new URL('../dist/native/addon.js', import.meta.url)
  if (!existsSync(program)) return true
  return (await import(program.href)).missingAddons().length === 0
}

async function main() {
  if (process.argv.includes('--clean')) {
    for (const { name } of addons()) rmSync(join(here, name, 'prebuilt'), { recursive: true, force: true })
    return 0
  }
  if (isPrebuilt) return buildForPackage()
  if (process.argv.includes('--missing') && (await areAllThere())) return 0
  return buildHere()
}

const failed = await main()
if (strict && failed > 0) process.exitCode = 1
