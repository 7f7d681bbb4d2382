// Runs tests over addons that were built with sanitizers (`node native/build.mjs --sanitize`): those that are named, else all that
// touch the addons. The first fault that a sanitizer reports ends its test, and this with code 1.
import { spawnSync } from 'node:child_process'
import { existsSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { inTurns, ran } from './processes.mjs'

const root = fileURLToPath(new URL('..', import.meta.url))
/** The longest first: the others run beside it. */
const usual = [
  ...[
    'fuzz/gateway',
    'native/rubbish',
    'native/mapped',
    'native/cache-table',
    'admission/native-buckets',
    'native/digest',
    'native/ed25519',
    'native/secp256k1',
    'native/words',
    'native/client',
    'native/client-tls',
    'store/mapped',
    'fuzz/parsers',
  ],
  ...readdirSync(join(root, 'test/http'))
    .filter((name) => name.endsWith('.test.ts'))
    .map((name) => `http/${name.replace('.test.ts', '')}`),
]
const named = process.argv.slice(2)
const files = (named.length > 0 ? named : usual).map((name) => join(root, 'dist/test', `${name}.test.js`))
const absent = files.filter((file) => !existsSync(file))
if (absent.length > 0) {
  process.stderr.write(`no such test: ${absent.join(', ')}\n`)
  process.exit(1)
}

const found = spawnSync('c++', ['-print-file-name=libasan.so'], { encoding: 'utf8' }).stdout?.trim() ?? ''
if (!found.includes('/')) {
  process.stderr.write('no libasan beside the compiler\n')
  process.exit(1)
}

const env = {
  LD_PRELOAD: found,
  // What Node itself leaves to the end of the process is no leak of ours.
  ASAN_OPTIONS: 'detect_leaks=0:abort_on_error=0:exitcode=99',
  UBSAN_OPTIONS: 'print_stacktrace=1:halt_on_error=1:exitcode=99',
  // What is computed is compared without sanitizers, with more numbers; here it counts that all of the code runs.
  SECP256K1_ROUNDS: '0.25',
}
const report = /AddressSanitizer|runtime error:|UndefinedBehaviorSanitizer/

let wrong = 0

/** Runs a file, and says how it went. */
async function act(file) {
  const { code, signal, stdout, stderr, ms, seconds } = await ran(['--conditions=sanitized', file], env)
  const good = code === 0 && !report.test(stderr)
  const times = `${(ms / 1000).toFixed(1)} s, ${seconds.toFixed(1)} s of processor time`
  process.stdout.write(`${good ? 'ok' : 'not ok'} - ${file.slice(root.length)} # ${times}\n`)
  if (good) return
  wrong += 1
  const failed = stdout.split('\n').filter((line) => /not ok/.test(line))
  process.stdout.write(`${failed.join('\n')}\n${signal ?? code}\n${stderr.slice(-20_000)}\n`)
}

await inTurns(files, 2, act)
process.exitCode = wrong === 0 ? 0 : 1
