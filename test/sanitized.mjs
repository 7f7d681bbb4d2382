// Runs tests over addons that were built with sanitizers (`node native/build.mjs --sanitize`): those that are named, else all that
// touch the addons. The first fault that a sanitizer reports ends its test, and this with code 1.
import { spawn, spawnSync } from 'node:child_process'
import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

const root = fileURLToPath(new URL('..', import.meta.url))
/** The longest first: the others run beside it. */
const usual = [
  ...[
    'fuzz/gateway',
    'native/rubbish',
    'native/mapped',
    'native/repeats',
    'admission/native-buckets',
    'native/digest',
    'native/ed25519',
    'native/secp256k1',
    'store/mapped',
    'fuzz/door',
    'native/client',
  ],
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

/** Resolves with what the test of a file said once it has ended. */
function ran(file) {
  return new Promise((resolve, reject) => {
    const child = spawn(process.execPath, ['--conditions=sanitized', file], { env })
    let stdout = ''
    let stderr = ''
    child.stdout.setEncoding('utf8').on('data', (text) => {
      stdout += text
    })
    child.stderr.setEncoding('utf8').on('data', (text) => {
      stderr += text
    })
    child.on('error', reject)
    child.on('close', (code, signal) => resolve({ code, signal, stdout, stderr }))
  })
}

let wrong = 0

/** Runs what is left of the files, one after the other. */
async function work() {
  for (let file = files.shift(); file !== undefined; file = files.shift()) {
    const startedMs = performance.now()
    const { code, signal, stdout, stderr } = await ran(file)
    const good = code === 0 && !report.test(stderr)
    process.stdout.write(
      `${good ? 'ok' : 'not ok'} - ${file.slice(root.length)} (${Math.round(performance.now() - startedMs)} ms)\n`,
    )
    if (good) continue
    wrong += 1
    process.stdout.write(
      `${stdout
        .split('\n')
        .filter((line) => /not ok/.test(line))
        .join('\n')}\n`,
    )
    process.stdout.write(`${signal ?? code}\n${stderr.slice(-20_000)}\n`)
  }
}

await Promise.all([work(), work()])
process.exitCode = wrong === 0 ? 0 : 1
