// Runs the test files that TEST_FILES names, in this process, one after the other: what they share is loaded once. For files that
// need no process of their own (test/groups.mjs).
//
// Behind the tests of each file stands one more, `end of FILE`. It fails where the file left something running, or changed what the
// next one would find. That one, and those behind it, are then left to processes of their own.
import { isDeepStrictEqual } from 'node:util'

const root = new URL('../', import.meta.url)
const { default: t } = await import(new URL('dist/test/node_modules/tap/index.js', root))
const { drawAgain } = await import(new URL('dist/test/property.js', root))

/** What ends by itself, such as a socket that closes, has so long: beside others it may get no processor for a minute. */
const patienceMs = Number(process.env.TEST_PATIENCE_MS ?? 120_000)
/** Parts of Node and of the language that a test may replace for itself. */
const replaceable = () => [fetch, Date, Date.now, Math.random, performance.now, setTimeout, setInterval]

/** How many of each kind keep this process alive. */
function running() {
  const counts = {}
  for (const kind of process.getActiveResourcesInfo()) counts[kind] = (counts[kind] ?? 0) + 1
  return counts
}

/** What runs now and did not before. */
function more(before) {
  return Object.entries(running())
    .filter(([kind, count]) => count > (before[kind] ?? 0))
    .map(([kind]) => kind)
}

/** Kinds that still run after all patience. */
async function left(before) {
  const untilMs = performance.now() + patienceMs
  while (more(before).length > 0 && performance.now() < untilMs)
    await new Promise((resolve) => setTimeout(resolve, 20))
  return more(before)
}

let before
await t.test('begin', async () => {
  before = running()
})
for (const file of JSON.parse(process.env.TEST_FILES)) {
  const environment = { ...process.env }
  const parts = replaceable()
  const folder = process.cwd()
  const [startedMs, startedUsage] = [performance.now(), process.cpuUsage()]
  // A folder of a test has the name of its file and of the test: other processes have tests of the same name.
  t.testdirName = `${folder}/.tap/fixtures/${file.replaceAll('/', '-')}`
  drawAgain()
  // Node has nothing to do for a moment of some imports. It says so, and tap then takes its tests for ended.
  const loading = setInterval(() => undefined, 1000)
  try {
    await import(new URL(file, root))
  } catch (error) {
    t.fail(`${file} was not loaded: ${error}`)
  } finally {
    clearInterval(loading)
  }
  const { ok: isAsBefore } = await t.test(`end of ${file}`, async (t) => {
    const { user, system } = process.cpuUsage(startedUsage)
    t.strictSame(await left(before), [], 'nothing is left running')
    t.ok(isDeepStrictEqual({ ...process.env }, environment), 'the environment is as before')
    t.strictSame(
      [process.cwd(), process.exitCode],
      [folder, undefined],
      'so are the folder and the exit code',
    )
    t.ok(
      replaceable().every((part, index) => part === parts[index]),
      'so are the parts of Node',
    )
    t.comment(
      `took ${(performance.now() - startedMs).toFixed(0)} ms, ${((user + system) / 1000).toFixed(0)} ms of processor time`,
    )
  })
  if (isAsBefore) continue
  t.comment('the others run by themselves')
  process.stdout.write('', () => process.exit(1))
  break
}
