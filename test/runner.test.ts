/** The runner of the tests, over a checkout of its own that has files which pass, fail, skip and end early. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { cpSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import t, { type Test } from 'tap'

const own = fileURLToPath(new URL('../../test', import.meta.url))
const compiled = fileURLToPath(new URL('.', import.meta.url))
/** A file of tests that may share a process with others; each writes down which process it was. */
const shared = (then: string): string =>
  `import t from 'tap'\nimport { appendFileSync } from 'node:fs'\nappendFileSync('pids', process.pid + '\\n')\n` +
  `t.test('the one', async (t) => {\n${then}\n})`

/** Scripts by name: what each does when it runs. */
const scripts = {
  'good.test': "console.log('TAP version 14\\nok 1 - one\\nok 2 - two\\n1..2')",
  'skipped.test': "console.log('ok 1 - one # SKIP no such program\\n1..1')",
  'wrong.test': "console.log('not ok 1 - the sum\\n  found: 3\\n1..1'); process.exitCode = 1",
  'early.test': "console.log('ok 1 - one')",
  'killed.test': "console.log('ok 1 - one\\n1..1'); process.kill(process.pid, 'SIGKILL')",
  // Fails when it runs the first time.
  'once.test':
    "import { existsSync, writeFileSync } from 'node:fs'\nconst good = existsSync('ran')\nwriteFileSync('ran', '')\n" +
    "console.log(good ? 'ok 1\\n1..1' : 'not ok 1\\n1..1')\nprocess.exitCode = good ? 0 : 1",
  // Has begun a program that would outlive it, and holds its output open.
  'leaving.test':
    "import { spawn } from 'node:child_process'\n" +
    "spawn('sleep', ['600'], { stdio: 'inherit' }).unref()\nconsole.log('ok 1\\n1..1')",
  'room/a-fine.test': shared('t.equal(1, 1)\nt.equal(2, 2)'),
  'room/b-wrong.test': shared("t.equal(1, 2, 'the sum')"),
  'room/c-skips.test': shared("t.equal(1, 1, { skip: 'no such program' })"),
  'room/d-fine.test': shared('t.equal(1, 1)'),
  'ends/a-fine.test': shared('t.equal(1, 1)'),
  'ends/b-ends.test': shared("process['exit'](3)"),
  'ends/c-fine.test': shared('t.equal(1, 1)'),
  'timer/a-leaves.test': shared('setInterval(() => undefined, 1000)'),
  'timer/b-fine.test': shared('t.equal(1, 1)'),
  'setting/a-leaves.test': shared("process['env'].LEFT = 'here'"),
  'setting/b-fine.test': shared('t.equal(1, 1)'),
  'clock/a-leaves.test': shared("Date['now'] = () => 7"),
  'clock/b-fine.test': shared('t.equal(1, 1)'),
  'bad/a-throws.test': "import t from 'tap'\nt.pass()\nthrow new Error('the reason')",
  'bad/b-fine.test': shared('t.equal(1, 1)'),
  tidy: "console.log('ok 1\\n1..1')",
}

/** Runs the runner over the scripts whose names have one of `words`. */
async function ran(
  t: Test,
  words: string[],
  unsteady: object[] = [],
): Promise<{ code: number; out: string; pids: readonly string[] }> {
  const root = t.testdir()
  mkdirSync(join(root, 'dist/test'), { recursive: true })
  mkdirSync(join(root, 'test'))
  for (const name of ['run.mjs', 'processes.mjs', 'groups.mjs', 'together.mjs'])
    cpSync(join(own, name), join(root, 'test', name))
  for (const name of ['node_modules', 'property.js'])
    symlinkSync(join(compiled, name), join(root, 'dist/test', name))
  writeFileSync(join(root, 'test/unsteady.json'), JSON.stringify(unsteady))
  writeFileSync(join(root, 'package.json'), '{ "type": "module" }')
  for (const [name, script] of Object.entries(scripts)) {
    for (const place of ['test', 'dist/test'])
      mkdirSync(dirname(join(root, place, name)), { recursive: true })
    writeFileSync(join(root, 'test', `${name}.ts`), '')
    writeFileSync(join(root, 'dist/test', `${name}.js`), script)
  }
  writeFileSync(join(root, 'pids'), '')
  const env = { ...process.env, TEST_PATIENCE_MS: '1000' }
  const child = spawn(process.execPath, [join(root, 'test/run.mjs'), ...words], { cwd: root, env })
  let out = ''
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    out += text
  })
  const [code] = (await once(child, 'close')) as [number]
  return { code, out, pids: readFileSync(join(root, 'pids'), 'utf8').trim().split('\n') }
}

t.test('all that pass is one line for each file', async (t) => {
  const { code, out } = await ran(t, ['good', 'tidy'])
  t.equal(code, 0)
  t.match(out, /^ok \d - dist\/test\/good\.test\.js # 2 passed, /m)
  t.match(out, /^# 3 passed, 0 failed, 0 skipped in 2 files; /m)
})

t.test('the files that cost most are named last', async (t) => {
  const { out } = await ran(t, ['good', 'tidy', '--costliest=1'])
  t.match(out, /^# \d+\.\d s of processor time in \d+\.\d s: dist\/test\/(good\.test|tidy)\.js\n# 3 passed/m)
  t.equal(out.match(/ s of processor time in /g)?.length, 1)
})

t.test('what is skipped is named, and fails where nothing may be skipped', async (t) => {
  const { code, out } = await ran(t, ['skipped'])
  t.equal(code, 0)
  t.match(out, '# skipped: dist/test/skipped.test.js: ok 1 - one # SKIP no such program')
  t.equal((await ran(t, ['skipped', '--fail-skip'])).code, 1)
})

t.test('a failure shows what was said about it', async (t) => {
  const { code, out } = await ran(t, ['wrong', 'good'])
  t.equal(code, 1)
  t.match(
    out,
    /^not ok \d - dist\/test\/wrong\.test\.js # 0 passed, .*\n {4}not ok 1 - the sum\n {6}found: 3$/m,
  )
  t.match(out, /^# failed: dist\/test\/wrong\.test\.js$/m)
})

t.test('a file that ends before its plan, is killed, or is not there has failed', async (t) => {
  t.equal((await ran(t, ['early'])).code, 1)
  const { code, out } = await ran(t, ['killed'])
  t.equal(code, 1)
  t.match(out, 'It ended with SIGKILL.')
  t.equal((await ran(t, ['nothing has this name'])).code, 1)
})

t.test('only what is named as unsteady runs once more', async (t) => {
  t.equal((await ran(t, ['once'])).code, 1)
  const entry = { file: 'test/once.test.ts', since: '2026-11-27', why: 'it is made so' }
  const { code, out } = await ran(t, ['once'], [entry])
  t.equal(code, 0)
  t.match(out, '# once more, because it is named as unsteady since 2026-11-27: it is made so')
  t.equal((await ran(t, ['wrong'], [{ ...entry, file: 'test/wrong.test.ts' }])).code, 1, 'it fails twice')
})

t.test('what a file leaves running is ended', async (t) => {
  const { code, out } = await ran(t, ['leaving'])
  t.equal(code, 0)
  t.match(out, /^# 1 passed, 0 failed, 0 skipped in 1 files; \d s, /m, 'nobody waited for it')
})

t.test('of files in one process each is named, with what it did itself', async (t) => {
  const { code, out, pids } = await ran(t, ['room/'])
  t.equal(code, 1)
  t.equal(pids.length, 4)
  t.equal(new Set(pids).size, 1)
  t.match(out, /^ok \d - dist\/test\/room\/a-fine\.test\.js # 3 passed, \d/m)
  t.match(out, /^not ok \d - dist\/test\/room\/b-wrong\.test\.js # 0 passed, .*\n {8}not ok 1 - the sum$/m)
  t.match(out, /^ok \d - dist\/test\/room\/c-skips\.test\.js # 1 passed, 1 skipped, /m)
  t.match(out, /^ok \d - dist\/test\/room\/d-fine\.test\.js # 2 passed, /m)
  t.match(out, /^# 6 passed, 2 failed, 1 skipped in 4 files; /m)
  t.equal(new Set((await ran(t, ['room/', '--alone'])).pids).size, 4)
})

t.test('one that ends their process has failed, and those behind it run by themselves', async (t) => {
  const { code, out, pids } = await ran(t, ['ends/'])
  t.equal(code, 1)
  t.match(out, /^ok 1 - dist\/test\/ends\/a-fine\.test\.js # 2 passed, /m)
  t.match(out, /^not ok 2 - dist\/test\/ends\/b-ends\.test\.js # 0 passed, /m)
  t.match(out, 'test unfinished')
  t.match(out, 'It ended with exit code 1.')
  t.match(out, /^ok 3 - dist\/test\/ends\/c-fine\.test\.js # 2 passed, /m)
  t.match(out, /^# failed: dist\/test\/ends\/b-ends\.test\.js\n# 4 passed/m)
  t.equal(new Set(pids).size, 2)
})

t.test('one that leaves something to the next has failed, and the next runs by itself', async (t) => {
  const rooms = ['timer/', 'setting/', 'clock/', 'bad/']
  const { code, out, pids } = await ran(t, rooms)
  t.equal(code, 1)
  const failed = out.match(/^# failed: \S+/gm)?.map((line) => line.replace('# failed: dist/test/', ''))
  t.strictSame(failed?.sort(), [
    'bad/a-throws.test.js',
    'clock/a-leaves.test.js',
    'setting/a-leaves.test.js',
    'timer/a-leaves.test.js',
  ])
  t.equal(out.match(/^ok \d - .*b-fine\.test\.js # 2 passed/gm)?.length, rooms.length)
  t.equal(new Set(pids).size, 7)
  for (const what of [
    'nothing is left running',
    'the environment is as before',
    'so are the parts of Node',
    'the reason',
  ])
    t.match(out, new RegExp(`not ok .*${what}`))
})
