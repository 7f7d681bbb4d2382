// Runs tests over addons that were built with sanitizers (`node native/build.mjs --sanitize`): those that are named, else all that
// touch the addons. The first fault that a sanitizer reports ends its test, and this with code 1.
import { spawnSync } from 'node:child_process'
import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

const root = fileURLToPath(new URL('..', import.meta.url))
const usual = [
  ...['native/rubbish', 'native/mapped', 'native/digest', 'store/mapped', 'fuzz/door', 'fuzz/gateway'],
  ...readdirSync(join(root, 'test/http'))
    .filter((name) => name.endsWith('.test.ts'))
    .map((name) => `http/${name.replace('.test.ts', '')}`),
]
const named = process.argv.slice(2)
const files = (named.length > 0 ? named : usual).map((name) => join(root, 'dist/test', `${name}.test.js`))

const found = spawnSync('c++', ['-print-file-name=libasan.so'], { encoding: 'utf8' }).stdout?.trim() ?? ''
if (!found.includes('/')) {
  process.stderr.write('no libasan beside the compiler\n')
  process.exit(1)
}

const env = {
  ...process.env,
  LD_PRELOAD: found,
  // What Node itself leaves to the end of the process is no leak of ours.
  ASAN_OPTIONS: 'detect_leaks=0:abort_on_error=0:exitcode=99',
  UBSAN_OPTIONS: 'print_stacktrace=1:halt_on_error=1:exitcode=99',
  TAP_TIMEOUT: '300',
}
const report = /AddressSanitizer|runtime error:|UndefinedBehaviorSanitizer/

let wrong = 0
for (const file of files) {
  const startedMs = performance.now()
  const args = ['--conditions=sanitized', file]
  const run = spawnSync(process.execPath, args, { env, encoding: 'utf8', maxBuffer: 2 ** 28 })
  const reported = report.test(run.stderr)
  const good = run.status === 0 && !reported
  process.stdout.write(
    `${good ? 'ok' : 'not ok'} - ${file.slice(root.length)} (${Math.round(performance.now() - startedMs)} ms)\n`,
  )
  if (good) continue
  wrong += 1
  process.stdout.write(
    `${run.stdout
      .split('\n')
      .filter((line) => /not ok/.test(line))
      .join('\n')}\n`,
  )
  process.stdout.write(`${run.signal ?? run.status}\n${run.stderr.slice(-20_000)}\n`)
}
process.exitCode = wrong === 0 ? 0 : 1
