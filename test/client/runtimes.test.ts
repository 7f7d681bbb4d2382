/** The packed client elsewhere: bundled by three bundlers as they come, in Chromium, in Deno and in Bun. */
import { execFile } from 'node:child_process'
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { promisify } from 'node:util'
import { build as esbuild } from 'esbuild'
import t from 'tap'
import { openBrowser, withoutBrowser } from '../browser.js'
import { type Running, run } from '../flow/running.js'
import { installPacked } from './packed.js'
import { serving } from './rig.js'

const clients = fileURLToPath(new URL('../../../test/clients/node_modules/', import.meta.url))
const vitePath = join(clients, 'vite/dist/node/index.js')
const arm = process.arch === 'arm64'
const runtimes = {
  deno: [
    join(clients, `@deno/linux-${arm ? 'arm64' : 'x64'}-glibc/deno`),
    'run',
    '-A',
    '--node-modules-dir=manual',
  ],
  bun: [join(clients, `@oven/bun-linux-${arm ? 'aarch64' : 'x64'}/bin/bun`)],
}

/** Uploads, looks at prices, fetches with proof, by keys of three kinds: all that a page or program does. */
const program = `
import { ClientError, signerOfEd25519, signerOfEthereum, signerOfSolana, SluiceClient, uploadFolder } from 'sluice-client'
import { ProvingFetcher } from 'sluice-client/fetch'

export async function use(places) {
  const seed = crypto.getRandomValues(new Uint8Array(32))
  const lines = []
  for (const make of [signerOfEthereum, signerOfEd25519, signerOfSolana]) {
    const client = new SluiceClient({ ...places, signer: await make(seed) })
    const { id } = await client.upload({ data: 'hello from here', dataItemOpts: { tags: [{ name: 'A', value: 'ß' }] } })
    const fetcher = new ProvingFetcher({ gatewayUrls: places.gatewayUrls })
    const response = await fetcher.fetch(id)
    const { winc } = await client.getBalance()
    lines.push([await response.text(), response.headers.get('x-verified'), winc].join(' '))
  }
  const client = new SluiceClient({ ...places, signer: await signerOfEthereum(seed) })
  const source = { size: 3, async *open(from) { yield new Uint8Array([60, 112, 62]).subarray(from) } }
  const { folderIndexSummary } = await uploadFolder(client, { files: [{ path: 'a.html', source }] })
  lines.push(String(folderIndexSummary.uploadedFiles))
  const refused = await client.getWincForToken({ tokenAmount: 0 }).catch((error) => error instanceof ClientError)
  lines.push(String(refused))
  return lines.join('; ')
}
`
const expected = `${Array.from({ length: 3 }, () => 'hello from here owner 0').join('; ')}; 1; true`

const entry = `import { use } from './program.js'\nglobalThis.use = use\n`

type Bundle = (folder: string, outdir: string) => Promise<unknown>

type Webpack = (
  options: object,
  done: (error: Error | null, stats: { hasErrors(): boolean; toString(): string }) => void,
) => void

/** Each bundler with no settings but where to read and where to write. */
const bundlers: Readonly<Record<string, Bundle>> = {
  esbuild: (folder, outdir) =>
    esbuild({
      entryPoints: [join(folder, 'main.js')],
      outdir,
      absWorkingDir: folder,
      bundle: true,
      splitting: true,
      format: 'esm',
      logLevel: 'silent',
    }),
  vite: async (folder, outDir) => {
    const { build } = (await import(pathToFileURL(vitePath).href)) as {
      build(options: object): Promise<unknown>
    }
    const input = join(folder, 'main.js')
    const options = { outDir, rollupOptions: { input, output: { entryFileNames: 'main.js' } } }
    return build({ root: folder, configFile: false, logLevel: 'silent', build: options })
  },
  webpack: (folder, path) => {
    const webpack = createRequire(join(clients, 'x.js'))('webpack') as Webpack
    const options = { mode: 'production', context: folder, entry: join(folder, 'main.js'), output: { path } }
    return new Promise<void>((resolve, reject) => {
      webpack(options, (error, stats) => {
        if (error !== null || stats.hasErrors()) reject(error ?? new Error(stats.toString()))
        else resolve()
      })
    })
  },
}

interface Shared {
  readonly folder: string
  readonly running: Running
}

let shared: Promise<Shared> | undefined

/** One packed client in a folder, and one program, for all tests here; with the first that wants them. */
function packedAndRunning(): Promise<Shared> {
  shared ??= (async () => {
    const folder = t.testdir({ 'program.js': program, 'main.js': entry, 'package.json': '{"type":"module"}' })
    installPacked(folder)
    return { folder, running: await run(t, join(folder, 'data')) }
  })()
  return shared
}

function placesOf({ urls }: Running): object {
  return { uploadUrl: urls.upload, paymentUrl: urls.payment, gatewayUrls: [urls.gateway] }
}

const missing = [vitePath, join(clients, 'webpack')].filter((path) => !existsSync(path))
const skip = missing.length > 0 ? `not here: ${missing.join(', ')}` : withoutBrowser

t.test(
  'Vite, esbuild and webpack bundle it unmodified, and Chromium runs what they made',
  { skip },
  async (t) => {
    const { folder, running } = await packedAndRunning()
    for (const [name, bundle] of Object.entries(bundlers)) await bundle(folder, join(folder, 'out', name))
    const shop = await serving(t, ({ path }) => {
      const [, name = '', ...rest] = (path.split('?')[0] ?? '').split('/')
      if (rest.length === 0)
        return {
          headers: { 'content-type': 'text/html' },
          text: `<script type="module" src="/${name}/main.js"></script>`,
        }
      const file = join(folder, 'out', name, rest.join('/'))
      if (!existsSync(file)) return undefined
      return { headers: { 'content-type': 'text/javascript' }, bytes: readFileSync(file) }
    })
    const browser = await openBrowser(t)
    for (const name of Object.keys(bundlers)) {
      const page = await browser.newPage()
      const errors: string[] = []
      page.on('pageerror', (error) => errors.push(String(error)))
      await page.goto(`${shop.url}/${name}`)
      await page.waitForFunction('globalThis.use !== undefined')
      const output = await page.evaluate(`use(${JSON.stringify(placesOf(running))})`)
      t.equal(output, expected, name)
      t.strictSame(errors, [], name)
      t.comment(`${name}: ${readdirSync(join(folder, 'out', name), { recursive: true }).length} files`)
      await page.close()
    }
  },
)

for (const [name, [binary = '', ...words]] of Object.entries(runtimes)) {
  const skip = existsSync(binary) ? false : `no ${name} here: install test/clients`
  t.test(`it runs in ${name}`, { skip }, async (t) => {
    const { folder, running } = await packedAndRunning()
    const home = join(folder, `home-of-${name}`)
    mkdirSync(home)
    const places = JSON.stringify(placesOf(running))
    const main = `import { use } from './program.js'\nconsole.log(await use(${places}))\n`
    writeFileSync(join(folder, 'main.mjs'), main)
    const environment = {
      PATH: process.env.PATH ?? '',
      HOME: home,
      DENO_DIR: home,
    }
    const done = await promisify(execFile)(binary, [...words, join(folder, 'main.mjs')], {
      cwd: folder,
      env: environment,
    })
    t.equal(done.stdout.trim(), expected, done.stderr)
  })
}

t.test('the program ends when it is told to, if one was started', async (t) => {
  t.equal((await (await shared)?.running.stop()) ?? 0, 0)
})
