// Puts libraries that tests load into few files each: to read the 300 modules of `tap` takes a quarter of a second of processor
// time in each of nearly seven hundred test files, and the network's upload library takes four seconds. Libraries of
// package.json are put below dist/test/node_modules, where tests find them before those of node_modules; those of test/clients
// below dist/test/clients.
import { createHash } from 'node:crypto'
import { existsSync } from 'node:fs'
import { mkdir, readFile, rm, writeFile } from 'node:fs/promises'
import { dirname } from 'node:path'
import { fileURLToPath } from 'node:url'
import { latePackages } from './bundle-program.mjs'

const root = fileURLToPath(new URL('..', import.meta.url))
const modules = `${root}dist/test/node_modules`

/** Parts of `tap` that no test uses. With them, and with what only failures need, loading it took more than twice the time. */
const unusedParts =
  /^@tapjs\/(chdir|intercept|mock|node-serialize|snapshot|spawn|stdin|typescript|worker)$|react-element-to-jsx-string\.js$/
const withoutUnused = {
  name: 'without unused parts',
  setup({ onResolve, onLoad }) {
    onResolve({ filter: unusedParts }, ({ path }) => ({ path, namespace: 'unused' }))
    const contents = 'export const plugin = () => ({})\nexport const config = {}\nexport default undefined'
    onLoad({ filter: unusedParts, namespace: 'unused' }, () => ({ contents }))
  },
}
/** What `tap` needs to show a failure, or to remove a folder. */
const lateParts = ['tap-yaml', 'diff', 'rimraf', 'jackspeak']

/** What tests import of package.json, by package and path in it. All are built at once: what they share exists once. */
const libraries = {
  viem: ['.', './accounts', './chains'],
  arbundles: ['.'],
  '@x402/fetch': ['.'],
  '@x402/evm': ['.', './exact/client', './exact/facilitator'],
  '@x402/core': ['./facilitator'],
}

/** Entry points in test/clients/node_modules, each with its name below dist/test/clients. */
const clients = {
  turbo: '@ardrive/turbo-sdk/lib/esm/node/index.js',
  // It runs only below a name that ends so.
  'turbo-cli/cli': '@ardrive/turbo-sdk/lib/esm/cli/cli.js',
  'ardrive-core': 'ardrive-core-js/lib/exports.js',
}

/** What packages in the older form expect of their surroundings. */
const olderForm = `import { createRequire as requireOf } from 'node:module'
import { dirname as folderOf } from 'node:path'
import { fileURLToPath as pathOf } from 'node:url'
const require = requireOf(import.meta.url)
const __filename = pathOf(import.meta.url)
const __dirname = folderOf(__filename)`

/** Builds `entryPoints` below `outdir`, unless it holds them already, made of the same versions in the same way. */
async function bundle(outdir, lockFile, entryPoints, more = {}) {
  const parts = [lockFile, fileURLToPath(import.meta.url), `${root}bin/bundle-program.mjs`]
  const hash = createHash('sha256')
  for (const path of parts) hash.update(await readFile(path))
  const madeOf = hash.digest('hex')
  const note = `${outdir}/made-of`
  if (existsSync(note) && (await readFile(note, 'utf8')) === madeOf) return
  await rm(outdir, { recursive: true, force: true })
  const { build } = await import('esbuild')
  await build({
    entryPoints,
    outdir,
    absWorkingDir: root,
    bundle: true,
    splitting: true,
    format: 'esm',
    platform: 'node',
    target: 'node20',
    mainFields: ['module', 'main'],
    external: ['usb'],
    banner: { js: olderForm },
    logLevel: 'error',
    ...more,
  })
  await writeFile(`${outdir}/package.json`, '{ "type": "module" }\n')
  await writeFile(note, madeOf)
}

/** A package below dist/test/node_modules whose `exports` lead to the bundles. */
async function writePackage(name, exports) {
  const folder = `${modules}/${name}`
  await mkdir(folder, { recursive: true })
  const places = Object.fromEntries(Object.keys(exports).map((path) => [path, `./${fileOf(path)}.js`]))
  await writeFile(`${folder}/package.json`, JSON.stringify({ name, type: 'module', exports: places }))
  for (const [path, { bundle, hasDefault }] of Object.entries(exports)) {
    const file = `${name}/${fileOf(path)}.js`
    const from = `${'../'.repeat(file.split('/').length - 1)}${bundle}`
    const text = `export * from '${from}'\n${hasDefault ? `export { default } from '${from}'\n` : ''}`
    await mkdir(dirname(`${modules}/${file}`), { recursive: true })
    await writeFile(`${modules}/${file}`, text)
  }
}

const fileOf = (path) => (path === '.' ? 'index' : path.slice(2))

export async function bundleTestLibraries() {
  const lockFile = `${root}package-lock.json`
  // tap leaves files below this name out of the stacks that it shows.
  const tapParts = {
    plugins: [withoutUnused, latePackages(lateParts)],
    minifyWhitespace: true,
    minifySyntax: true,
  }
  await bundle(`${modules}/@tapjs`, lockFile, { bundled: 'tap' }, tapParts)
  await writePackage('tap', { '.': { bundle: '@tapjs/bundled.js', hasDefault: true } })

  const entryPoints = {}
  for (const [name, paths] of Object.entries(libraries))
    for (const path of paths) entryPoints[`${name}/${fileOf(path)}`] = name + path.slice(1)
  await bundle(`${modules}/.bundled`, lockFile, entryPoints)
  for (const [name, paths] of Object.entries(libraries)) {
    const bundled = (path) => ({ bundle: `.bundled/${name}/${fileOf(path)}.js`, hasDefault: false })
    await writePackage(name, Object.fromEntries(paths.map((path) => [path, bundled(path)])))
  }

  const installed = `${root}test/clients/node_modules/`
  const found = Object.entries(clients).filter(([, path]) => existsSync(installed + path))
  const places = Object.fromEntries(found.map(([name, path]) => [name, installed + path]))
  if (found.length > 0)
    await bundle(`${root}dist/test/clients`, `${root}test/clients/package-lock.json`, places)
}
