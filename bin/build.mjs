// Builds the program into dist/: TypeScript and the native addons at the same time.
//
// node bin/build.mjs        everything, tests and benches too
// node bin/build.mjs --run  only what runs, without a check of its types: a fifth of the compiler's time
import { spawn } from 'node:child_process'
import { rm } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { fileURLToPath } from 'node:url'
import { bundleDemo } from './bundle-demo.mjs'
import { bundleProgram } from './bundle-program.mjs'
import { bundleTestLibraries } from './bundle-test-libraries.mjs'

const root = fileURLToPath(new URL('..', import.meta.url))
const isRun = process.argv.includes('--run')
const startedMs = performance.now()

/** Runs one Node program to its end. Resolves with its exit code and all that it printed. */
function run(name, words) {
  return new Promise((resolve, reject) => {
    const child = spawn(process.execPath, words, { cwd: root, stdio: ['ignore', 'pipe', 'pipe'] })
    const printed = []
    for (const stream of [child.stdout, child.stderr]) stream.on('data', (bytes) => printed.push(bytes))
    child.once('error', reject)
    child.once('close', (code) => resolve({ name, code, text: Buffer.concat(printed).toString() }))
  })
}

/** The compiler's own program: `npx` would cost half a second more. Undefined where it is not installed. */
function compiler() {
  try {
    const manifest = createRequire(import.meta.url).resolve('typescript/package.json')
    return fileURLToPath(new URL('bin/tsc', `file://${manifest}`))
  } catch (error) {
    if (error.code === 'MODULE_NOT_FOUND') return undefined
    throw error
  }
}

/**
 * Puts together the scripts of pages that use the client's library: browsers load them as they are, the rare parts when they are
 * wanted.
 */
async function bundlePages() {
  const { build } = await import('esbuild')
  await build({
    entryPoints: [`${root}src/upload/page/page.js`],
    outdir: `${root}dist/pages/upload`,
    alias: {
      'sluice/client': `${root}dist/src/client/index.js`,
      'sluice/client/folder-rule': `${root}dist/src/client/folder-rule.js`,
    },
    bundle: true,
    splitting: true,
    minify: true,
    format: 'esm',
    platform: 'browser',
    target: 'es2022',
    logLevel: 'warning',
  })
}

/** One line on a terminal that is drawn again until `work` ends; elsewhere a line before it and one behind it. */
async function shown(what, work) {
  const tookSeconds = () => ((performance.now() - startedMs) / 1000).toFixed(0)
  if (!process.stderr.isTTY) {
    process.stderr.write(`Building ${what}\n`)
    const result = await work
    process.stderr.write(`Compiled in ${tookSeconds()} s\n`)
    return result
  }
  const draw = () => {
    process.stderr.write(`\r\x1b[2KBuilding ${what}, ${tookSeconds()} s`)
  }
  draw()
  const timer = setInterval(draw, 250)
  try {
    return await work
  } finally {
    clearInterval(timer)
    process.stderr.write('\r\x1b[2K')
  }
}

const tsc = compiler()
if (tsc === undefined) {
  process.stderr.write('The TypeScript compiler is not installed here. Run first: npm ci\n')
  process.exit(1)
}
const project = isRun ? 'tsconfig.run.json' : 'tsconfig.json'
const jobs = [run('TypeScript', [tsc, '-p', project]), run('native addons', ['native/build.mjs'])]
const done = await shown('TypeScript and native addons', Promise.all(jobs))
// The pages are made of what the compiler wrote; it writes in spite of errors.
await rm(`${root}dist/pages`, { recursive: true, force: true })
await Promise.all([bundlePages(), bundleDemo(), bundleProgram(), ...(isRun ? [] : [bundleTestLibraries()])])
for (const { name, code, text } of done) {
  if (text !== '') process.stderr.write(text)
  if (code === 0) continue
  process.stderr.write(`The build failed: ${name}\n`)
  process.exitCode = 1
}
