// Packs the client alone as the npm package sluice-client, library and commands, without addons and install scripts:
// node bin/pack-client.mjs [FOLDER]. Needs a build. Prints the path of the tarball.
import { spawnSync } from 'node:child_process'
import { cpSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import { dirname, join, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { bundleClientCommands } from './bundle-program.mjs'

const root = fileURLToPath(new URL('..', import.meta.url))
const out = resolve(process.argv[2] ?? root)
const manifest = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'))
const compiler = join(dirname(createRequire(import.meta.url).resolve('typescript/package.json')), 'bin/tsc')

function run(program, words, cwd) {
  const { status, stdout, stderr } = spawnSync(program, words, { cwd, encoding: 'utf8' })
  if (status !== 0) throw new Error(`${program} ${words.join(' ')}: ${stdout}${stderr}`)
  return stdout
}

/** Compiled files of `src/`: those of the client, and those of other rooms that they import. */
function filesOfClient() {
  const own = readdirSync(join(root, 'dist/src/client'), { recursive: true, encoding: 'utf8' })
  const found = new Set(own.filter((path) => path.endsWith('.js')).map((path) => join('client', path)))
  for (const path of found) {
    const code = readFileSync(join(root, 'dist/src', path), 'utf8')
    for (const [, target] of code.matchAll(/\b(?:from|import)\s*\(?\s*'(\.[^']+)'/g))
      if (!target.startsWith('./no-addon')) found.add(join(dirname(path), target))
  }
  return found
}

const folder = mkdtempSync(join(tmpdir(), 'sluice-client-'))
try {
  const types = join(folder, 'types')
  run(process.execPath, [compiler, '-p', 'tsconfig.client.json', '--outDir', types], root)
  for (const path of filesOfClient()) {
    const declared = path.replace(/\.js$/, '.d.ts')
    cpSync(join(root, 'dist/src', path), join(folder, 'package/lib', path))
    cpSync(join(types, 'src', declared), join(folder, 'package/lib', declared))
  }
  // A browser without a bundler, where an import map says what the libraries are, would know nothing of a name of the package's own.
  const evm = join(folder, 'package/lib/client/evm.js')
  const [head, tail, ...more] = readFileSync(evm, 'utf8').split("'#addon-signer'")
  if (tail === undefined || more.length > 0) throw new Error('evm.js imports something else than was thought')
  writeFileSync(evm, `${head}'./no-addon.js'${tail}`)
  await bundleClientCommands(join(folder, 'package/bin/sluice-client.js'))
  cpSync(join(root, 'LICENSE'), join(folder, 'package/LICENSE'))
  cpSync(join(root, 'src/client/README.md'), join(folder, 'package/README.md'))
  const { version, license, repository, dependencies } = manifest
  const entry = (path) => ({ types: `./lib/client/${path}.d.ts`, default: `./lib/client/${path}.js` })
  const own = {
    name: 'sluice-client',
    version,
    description: 'Upload, deploy, fetch and verify on permanent storage.',
    license,
    ...(repository === undefined ? {} : { repository }),
    type: 'module',
    sideEffects: ['./lib/client/fetch/service-worker.js'],
    engines: { node: '>=20.19' },
    exports: {
      '.': entry('index'),
      './fetch': entry('fetch/index'),
      './fs': entry('fs/index'),
      './node': entry('node/index'),
      './service-worker': entry('fetch/service-worker'),
    },
    bin: { 'sluice-client': 'bin/sluice-client.js' },
    files: ['bin', 'lib'],
    publishConfig: { access: 'public', provenance: true },
    dependencies: Object.fromEntries(
      ['@noble/curves', '@noble/hashes', '@noble/secp256k1', 'ignore'].map((name) => [
        name,
        dependencies[name],
      ]),
    ),
  }
  writeFileSync(join(folder, 'package/package.json'), `${JSON.stringify(own, undefined, 2)}\n`)
  mkdirSync(out, { recursive: true })
  const [packed] = JSON.parse(
    run('npm', ['pack', '--json', '--pack-destination', out], join(folder, 'package')),
  )
  process.stdout.write(`${join(out, packed.filename)}\n`)
} finally {
  rmSync(folder, { recursive: true, force: true })
}
