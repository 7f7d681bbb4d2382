// Runs the tests: three files at the same time, and more while processors have nothing to do. Each is a program of its own, but for
// those that can share a process (test/groups.mjs). Prints TAP with a line for each file, whole only what failed.
//
//   npm test                         all files
//   npm test -- flow/ client/fetch   files whose path has one of these in it
//
//   --jobs=N             as many files at the same time, and never more
//   --alone              each file in a process of its own, also those that could share one
//   --fail-skip          a test that is skipped has failed
//   --costliest=N        at the end, the N files that took the most processor time
//   --conditions=NAME    for Node: `fallback` runs them over the TypeScript fallbacks of the addons
//
// The tests import `tap`, but its runner is not used: it loads a module loader into each process and each of their threads, which took
// more than a second of processor time for each file.
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { availableParallelism } from 'node:os'
import { fileURLToPath } from 'node:url'
import { groupsOf, partsOf } from './groups.mjs'
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

/** The compiled form of a file by the name of its source. */
const built = (file) => `dist/${file.replace(/ts$/, 'js')}`

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

const nodeOptions = conditions === undefined ? [] : [`--conditions=${conditions}`]

/** What a run of one file says: whether all of it passed, and how many tests of each kind it had. `ending`: tests of the runner. */
function judged(file, run, lines, isEnded, ending = 0) {
  const count = (form) => lines.filter((line) => form.test(line)).length
  const skipped = lines.filter((line) => /^ *ok .*# SKIP/i.test(line))
  const passed = Math.max(0, count(/^ *ok /) - skipped.length - ending)
  const isGood = isEnded && run.code === 0 && !(failsSkipped && skipped.length > 0)
  return { file, run, lines, skipped, passed, failed: count(/^ *not ok /), isGood }
}

/** Runs a file by itself. */
async function result(file) {
  const run = existsSync(root + file)
    ? await ran([...nodeOptions, `${root}${file}`])
    : { code: 1, signal: null, stdout: '', stderr: 'It is not built.\n', ms: 0, seconds: 0 }
  const lines = run.stdout.split('\n')
  return judged(
    file,
    run,
    lines,
    lines.some((line) => /^1\.\.\d/.test(line)),
  )
}

/**
 * Runs files in one process, one after the other. Where it ended before its time, the file that was running has failed, and nothing is
 * resolved with of those behind it.
 */
async function results(files) {
  const [only] = files
  if (files.length === 1) return [await result(only)]
  const run = await ran([...nodeOptions, `${root}test/together.mjs`], { TEST_FILES: JSON.stringify(files) })
  const lines = run.stdout.split('\n')
  const { parts, rest } = partsOf(lines)
  const ended = files.filter((file) => parts.has(file))
  const loading = ended.reduce((left, file) => left - parts.get(file).seconds, run.seconds)
  const all = ended.map((file, index) => {
    const part = parts.get(file)
    // What the process takes by itself is said with the first.
    if (index === 0) part.seconds += Math.max(0, loading)
    const isWrong = part.lines.some((line) => /^ *not ok (?!.*# TODO)/.test(line))
    return judged(file, { ...run, ...part, code: isWrong ? 1 : 0, signal: null }, part.lines, true, 5)
  })
  if (lines.includes('# the others run by themselves')) return all
  const isWrong = run.code !== 0 && all.every(({ isGood }) => isGood)
  const running = files.find((file) => !parts.has(file)) ?? (isWrong ? all.pop().file : undefined)
  if (running !== undefined) all.push(judged(running, run, rest, false))
  return all
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
const done = new Map()

/** Says how a file went. */
function say(got) {
  done.set(got.file, got)
  const seconds = `${(got.run.ms / 1000).toFixed(1)} s, ${got.run.seconds.toFixed(1)} s of processor time`
  const skipped = got.skipped.length > 0 ? `, ${got.skipped.length} skipped` : ''
  const line = `ok ${done.size} - ${got.file} # ${got.passed} passed${skipped}, ${seconds}\n`
  process.stdout.write(got.isGood ? line : `not ${line}${shown(got)}`)
}

/** Runs files together, and by themselves those that their process did not come to. */
async function act(files) {
  for (const got of await results(files)) say(got)
  for (const file of files) if (!done.has(file)) say(await result(file))
}

process.stdout.write(`TAP version 14\n1..${all.length}\n`)
const startedMs = performance.now()
// What may run twice runs alone, and so its first failure is its own.
const alone = new Set(words.includes('--alone') ? all : [...unsteady.keys()].map(built))
await inTurns(groupsOf(all, alone), jobs, act, mostJobs)

// What is named as unsteady runs once more, alone: a failure of any other file counts.
for (const { file, isGood } of [...done.values()]) {
  const entry = [...unsteady.values()].find((entry) => built(entry.file) === file)
  if (isGood || entry === undefined) continue
  process.stdout.write(`# once more, because it is named as unsteady since ${entry.since}: ${entry.why}\n`)
  say(await result(file))
}

const last = [...done.values()]
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
