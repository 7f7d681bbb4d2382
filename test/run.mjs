// Runs the tests: each file is a program of its own, three at the same time, and more while processors have nothing to do. Prints TAP
// with a line for each file, whole only what failed.
//
//   npm test                         all files
//   npm test -- flow/ client/fetch   files whose path has one of these in it
//
//   --jobs=N             as many files at the same time, and never more
//   --fail-skip          a test that is skipped has failed
//   --costliest=N        at the end, the N files that took the most processor time
//   --conditions=NAME    for Node: `fallback` runs them over the TypeScript fallbacks of the addons
//
// The tests import `tap`, but its runner is not used: it loads a module loader into each process and each of their threads, which took
// more than a second of processor time for each file.
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { availableParallelism } from 'node:os'
import { fileURLToPath } from 'node:url'
import { inTurns, ran } from './processes.mjs'

const root = fileURLToPath(new URL('..', import.meta.url))
/** Files and rooms that take longest, first: what runs last, runs alone. */
const longest = [
  'flow/takeover',
  'flow/each-fault',
  'flow/deploy-killed',
  'cli/tarball',
  'clickhouse/graphql',
  'flow/cluster-drain',
  'interface/published-indexes',
  'flow/',
  'interface/',
  'fuzz/',
  'cli/',
  'client/',
  'bands/',
  'payment/',
  'conformance/',
  'disk/',
  'catalog/',
  'clickhouse/',
  'cluster/',
  'certificates/',
  'upload/',
  'deploy/',
]

const words = process.argv.slice(2)
const named = words.filter((word) => !word.startsWith('--'))
const option = (name) => words.find((word) => word.startsWith(`--${name}=`))?.slice(name.length + 3)
// Two files on two processors left a quarter of their time unused, and three a fifth: a test waits for timers, disks and its own
// children.
const jobs = Number(option('jobs') ?? Math.min(3, availableParallelism() + 1))
const mostJobs = option('jobs') === undefined ? 3 * availableParallelism() : jobs
const conditions = option('conditions')
const failsSkipped = words.includes('--fail-skip')

/** Files that may run once more, alone, when they failed beside others. Each entry says why, and since when. */
const unsteady = new Map(
  JSON.parse(readFileSync(new URL('unsteady.json', import.meta.url), 'utf8')).map((entry) => [
    entry.file,
    entry,
  ]),
)

/** Compiled files of tests that have a source: a file whose source is gone stays in dist. */
function files() {
  const place = (name) => {
    const index = longest.findIndex((room) => name.startsWith(room))
    return index === -1 ? longest.length : index
  }
  const tests = readdirSync(`${root}test`, { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith('.test.ts') && !name.includes('node_modules'))
    .sort((a, b) => place(a) - place(b) || (a < b ? -1 : 1))
  return [...tests, 'tidy.ts']
    .map((name) => `dist/test/${name.replace(/ts$/, 'js')}`)
    .filter((file) => named.length === 0 || named.some((part) => file.includes(part)))
}

/** What one file did: whether all of it passed, and how many tests of each kind it had. */
async function result(file) {
  const options = conditions === undefined ? [] : [`--conditions=${conditions}`]
  const run = existsSync(root + file)
    ? await ran([...options, `${root}${file}`])
    : { code: 1, signal: null, stdout: '', stderr: 'It is not built.\n', ms: 0, seconds: 0 }
  const lines = run.stdout.split('\n')
  const count = (form) => lines.filter((line) => form.test(line)).length
  const skipped = lines.filter((line) => /^ *ok .*# SKIP/i.test(line))
  const hasPlan = lines.some((line) => /^1\.\.\d/.test(line))
  const passed = count(/^ *ok /) - skipped.length
  const isGood = run.code === 0 && hasPlan && !(failsSkipped && skipped.length > 0)
  return { file, run, lines, skipped, passed, failed: count(/^ *not ok /), isGood }
}

/** Each failing assertion with what is said about it, then the end of what was written beside. */
function shown({ run, lines, skipped }) {
  const wrong = new Set()
  for (const [index, line] of lines.entries())
    if (/^ *not ok /.test(line)) for (let next = index; next < index + 25; next += 1) wrong.add(next)
  const wrongLines = lines.filter((_, index) => wrong.has(index)).slice(0, 250)
  const ended = run.signal ?? (run.code === 0 ? undefined : `exit code ${run.code}`)
  return [
    ...(wrongLines.length > 0 ? wrongLines : lines.slice(-25)),
    ...(failsSkipped ? skipped : []),
    ...run.stderr.split('\n').slice(-40),
    ...(ended === undefined ? [] : [`It ended with ${ended}.`]),
  ]
    .map((line) => `    ${line}\n`)
    .join('')
}

const all = files()
const results = new Map()

/** Runs a file and says how it went. */
async function act(file) {
  const got = await result(file)
  results.set(file, got)
  const seconds = `${(got.run.ms / 1000).toFixed(1)} s, ${got.run.seconds.toFixed(1)} s of processor time`
  const skipped = got.skipped.length > 0 ? `, ${got.skipped.length} skipped` : ''
  const line = `ok ${results.size} - ${file} # ${got.passed} passed${skipped}, ${seconds}\n`
  process.stdout.write(got.isGood ? line : `not ${line}${shown(got)}`)
  return got
}

process.stdout.write(`TAP version 14\n1..${all.length}\n`)
const startedMs = performance.now()
await inTurns(all, jobs, act, mostJobs)

// What is named as unsteady runs once more, alone: a failure of any other file counts.
for (const { file, isGood } of [...results.values()]) {
  const entry = unsteady.get(file.replace(/^dist\//, '').replace(/js$/, 'ts'))
  if (isGood || entry === undefined) continue
  process.stdout.write(`# once more, because it is named as unsteady since ${entry.since}: ${entry.why}\n`)
  await act(file)
}

const last = [...results.values()]
const costliest = Number(option('costliest') ?? 0)
for (const { file, run } of last.toSorted((a, b) => b.run.seconds - a.run.seconds).slice(0, costliest))
  process.stdout.write(
    `# ${run.seconds.toFixed(1)} s of processor time in ${(run.ms / 1000).toFixed(1)} s: ${file}\n`,
  )
const sum = (of) => last.reduce((total, each) => total + of(each), 0)
const wrong = last.filter(({ isGood }) => !isGood)
for (const { file } of wrong) process.stdout.write(`# failed: ${file}\n`)
for (const { file, skipped } of last)
  for (const line of skipped) process.stdout.write(`# skipped: ${file}: ${line.trim()}\n`)
process.stdout.write(
  `# ${sum(({ passed }) => passed)} passed, ${sum(({ failed }) => failed)} failed, ` +
    `${sum(({ skipped }) => skipped.length)} skipped in ${last.length} files; ` +
    `${Math.round((performance.now() - startedMs) / 1000)} s, ` +
    `${Math.round(sum(({ run }) => run.seconds))} s of processor time\n`,
)
process.exitCode = wrong.length === 0 && all.length > 0 ? 0 : 1
