import { spawnSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { gzipSync } from 'node:zlib'
import { build, type Metafile } from 'esbuild'
import type { Browser } from 'playwright-core'
import t, { type Test } from 'tap'
import { openBrowser, withoutBrowser } from '../browser.js'
import { eventually } from '../eventually.js'
import { run, seeded } from '../flow/running.js'
import { installPacked } from './packed.js'
import { serving } from './rig.js'

const options = { skip: withoutBrowser }

/** The packed client in a folder of its own. */
function unpacked(t: Test): string {
  const folder = t.testdir({})
  const { size } = statSync(installPacked(folder).tarball)
  t.ok(size < 300_000, `${size} bytes packed`)
  return folder
}

interface Sizes {
  /** Gzipped bytes of what is loaded at once, put together, and of that with the part for Ethereum's keys. */
  readonly atOnce: number
  readonly withEvm: number
}

/** Bundles for browsers as it is, without polyfills. */
async function bundled(folder: string, source: string, name: string): Promise<Sizes> {
  const outdir = join(folder, 'out', name)
  const { metafile } = await build({
    stdin: { contents: source, resolveDir: folder, sourcefile: `${name}.js` },
    bundle: true,
    minify: true,
    splitting: true,
    format: 'esm',
    platform: 'browser',
    target: 'es2022',
    outdir,
    metafile: true,
    absWorkingDir: folder,
    logLevel: 'silent',
  })
  // Parts that are loaded later are entry points, too.
  const [entry = '', ...others] = Object.entries(metafile.outputs).flatMap(([path, { entryPoint = '' }]) =>
    entryPoint.endsWith(`${name}.js`) && !entryPoint.includes('node_modules') ? [path] : [],
  )
  if (entry === '' || others.length > 0) throw new Error(`the entry of ${name} is not known`)
  const first = loadedAtOnce(metafile, entry)
  const evm = Object.entries(metafile.outputs).flatMap(([path, { inputs }]) => {
    return Object.keys(inputs).some((input) => input.endsWith('/evm.js'))
      ? [...loadedAtOnce(metafile, path)]
      : []
  })
  // Most bundlers put what is loaded at once into one file; esbuild shares more of it between parts, each with its own gzip.
  const size = (paths: Iterable<string>): number =>
    gzipSync(Buffer.concat([...paths].map((path) => readFileSync(join(folder, path))))).length
  return { atOnce: size(first), withEvm: size(new Set([...first, ...evm])) }
}

function loadedAtOnce(metafile: Metafile, entry: string): Set<string> {
  const found = new Set<string>([entry])
  for (const path of found)
    for (const { path: next, kind } of metafile.outputs[path]?.imports ?? [])
      if (kind === 'import-statement') found.add(next)
  return found
}

t.test('the packed client is small, typed, and bundles as it is', async (t) => {
  const folder = unpacked(t)
  const lib = join(folder, 'node_modules/sluice-client')
  const manifest = JSON.parse(readFileSync(join(lib, 'package.json'), 'utf8')) as {
    exports: Record<string, { types: string }>
    scripts?: object
  }
  t.equal(manifest.scripts, undefined)
  const code = readdirSync(join(lib, 'lib'), { recursive: true, encoding: 'utf8' }).filter((path) =>
    path.endsWith('.js'),
  )
  const imports = /^(?:import|export) .*\bfrom '(.+)'|^import '(.+)'|\bimport\('([^']+)'\)/gm
  const imported = code.flatMap((path) =>
    [...readFileSync(join(lib, 'lib', path), 'utf8').matchAll(imports)].map(
      ([, named = '', plain = '', late = '']) => named || plain || late,
    ),
  )
  t.ok(imported.includes('./no-addon.js'))
  const others = imported.filter((name) => !/^(\.{1,2}\/|node:|@noble\/|ignore$)/.test(name))
  t.strictSame(others, [], 'nothing but its own files, libraries that it names, and what Node has')
  for (const { types } of Object.values(manifest.exports)) t.ok(existsSync(join(lib, types)), types)
  const commands = join(lib, 'bin/sluice-client.js')
  const named = /^import (?:.*from )?['"]([^'"]+)['"]/gm
  const packages = [...readFileSync(commands, 'utf8').matchAll(named)].map(([, name = '']) => name)
  t.strictSame(
    packages.filter((name) => !/^(node:)?[a-z_]+(\/[a-z]+)?$/.test(name)),
    [],
    'the commands need no other package',
  )
  const help = spawnSync(process.execPath, [commands, 'put', '--help'], { encoding: 'utf8' })
  t.equal(help.status, 0, help.stderr)
  t.match(help.stdout, /^sluice-client put: /)
  t.notMatch(help.stdout, /\bsluice (put|deploy|key|get)\b/, 'by the name that they have here')
  t.match(readFileSync(join(lib, 'README.md'), 'utf8'), /^# sluice-client/)
  const core = "export { SluiceClient, signerOfArweave, signerOfEthereum } from 'sluice-client'"
  const { atOnce, withEvm } = await bundled(folder, core, 'core')
  t.ok(atOnce <= 20_000, `the core is ${atOnce} bytes gzipped`)
  t.ok(withEvm <= 40_000, `with keys of Ethereum it is ${withEvm} bytes gzipped`)
  t.comment(`core ${atOnce}, with secp256k1 and keccak ${withEvm} bytes gzipped`)
  const fetching = await bundled(folder, "export * from 'sluice-client/fetch'", 'fetch')
  const drives = await bundled(folder, "export * from 'sluice-client/fs'", 'fs')
  t.comment(`fetch ${fetching.atOnce}, fs ${drives.atOnce} bytes gzipped`)
  t.ok(fetching.atOnce <= 20_000 && drives.atOnce <= 20_000)
  t.ok(readdirSync(join(folder, 'out/core')).length > 1, 'what few need is loaded later')
})

t.test(
  'a service worker shows only proven content, and names the gateway that sent wrong bytes',
  options,
  async (t) => {
    const folder = unpacked(t)
    const running = await run(t, join(folder, 'data'), { ...seeded, SERVICES: 'gateway' })
    const honest = running.urls.gateway as string
    const { image = '', site = '', item = '', large = '' } = running.examples
    const outdir = join(folder, 'out')
    await build({
      stdin: { contents: "import 'sluice-client/service-worker'", resolveDir: folder },
      bundle: true,
      minify: true,
      format: 'iife',
      platform: 'browser',
      target: 'es2022',
      logLevel: 'silent',
      outfile: join(outdir, 'worker.js'),
    })
    await bundled(folder, signingPage, 'keys')
    /** A gateway at an address of its own that hands on what the real one says, but for this. */
    const liar = (
      bend: (request: { path: string; range?: string }) => { path: string; range?: string },
      flip = false,
    ) =>
      serving(t, async ({ path, method, headers, body }) => {
        const given = typeof headers.range === 'string' ? { path, range: headers.range } : { path }
        const { path: bent, range } = bend(given)
        const type = { 'content-type': String(headers['content-type'] ?? 'text/plain') }
        const response = await fetch(honest + bent, {
          method,
          headers: { ...type, ...(range === undefined ? {} : { range }) },
          ...(method === 'POST' ? { body } : {}),
        })
        const bytes = Buffer.from(await response.arrayBuffer())
        if (flip && path.startsWith('/raw/') && response.status === 200) bytes[5] = (bytes[5] ?? 0) ^ 1
        const lines = [...response.headers].filter(([name]) => name !== 'content-length')
        return { status: response.status, headers: Object.fromEntries(lines), bytes }
      })
    const flips = await liar((request) => request, true)
    const swaps = await liar((request) => ({
      ...request,
      path: request.path.replace(/^\/raw\/.*/, `/raw/${item}`),
    }))
    const shifts = await liar(({ path, range }) => ({
      path: path.replace(/^\/chunk\/(\d+)/, (_, offset) => `/chunk/${Number(offset) + 262_144}`),
      ...(range === undefined
        ? {}
        : { range: range.replace(/\d+/g, (digits) => String(Number(digits) + 1)) }),
    }))
    const delays = await serving(t, async ({ path }) => {
      const headers = { 'access-control-allow-origin': '*' }
      return path.includes('/resolver/') ? { json: { txId: item }, headers } : { status: 404, headers }
    })
    const shop = await serving(t, ({ path }) => {
      const script = { headers: { 'content-type': 'text/javascript' } }
      if (path.startsWith('/worker.js'))
        return { ...script, text: readFileSync(join(outdir, 'worker.js'), 'utf8') }
      if (path === '/')
        return { headers: { 'content-type': 'text/html' }, text: '<!doctype html><title>x</title>' }
      const name = path.slice(1)
      if (/^[\w.-]+\.js$/.test(name))
        return { ...script, text: readFileSync(join(outdir, 'keys', name), 'utf8') }
      return undefined
    })
    const browser = await openBrowser(t)
    const plain = createHash('sha256')
      .update(Buffer.from(await (await fetch(`${honest}/raw/${image}`)).arrayBuffer()))
      .digest('hex')

    const honestly = [flips.url, swaps.url, honest]
    const good = await shownBy(browser, shop.url, honestly, [image, `${site}/style.css`, large])
    t.equal(good.shown[image]?.digest, plain)
    t.match(
      good.policy,
      /^sandbox (?!.*allow-same-origin)/,
      'a document of a stranger has no origin of the app',
    )
    t.strictSame(
      Object.values(good.shown).map(({ status }) => status),
      [200, 200, 200],
    )
    t.match(
      new Set(good.messages.map((message) => JSON.stringify(message).replace(/,"message.*/, ''))),
      new Set([flips, swaps].map(({ url }) => `{"sluice":"untrue","gateway":"${url}"`)),
    )
    const range = 'bytes=300000-300999'
    const part = await shownBy(browser, shop.url, [shifts.url, honest], [large], range)
    const right = await fetch(`${honest}/raw/${large}`, { headers: { range } })
    const digest = createHash('sha256')
      .update(Buffer.from(await right.arrayBuffer()))
      .digest('hex')
    t.match(part.shown[large], { status: 206, digest })
    t.match(part.messages, [{ sluice: 'untrue', gateway: shifts.url }])
    for (const { url } of [flips, swaps]) {
      const bad = await shownBy(browser, shop.url, [url], [image])
      t.match(Object.values(bad.shown), [{ status: 502, text: /^Not shown: / }])
    }
    // The head has left when the first chunk turns out to be another one: the body breaks off.
    await t.rejects(
      shownBy(browser, shop.url, [shifts.url], [large], range),
      /Failed to fetch|network error/i,
    )

    const page = await browser.newPage()
    await page.goto(shop.url)
    const entry =
      readdirSync(join(outdir, 'keys')).find((name) => name.startsWith('stdin') || name.startsWith('keys')) ??
      ''
    const ids = await page.evaluate(async (url) => {
      await import(url)
      return (globalThis as unknown as { made(): Promise<string[]> }).made()
    }, `${shop.url}/${entry}`)
    t.match(ids, [/^[\w-]{43}$/, /^[\w-]{43}$/], 'items are signed in the browser')
    // The same gateway by two addresses: what more than half of three say counts.
    const agreed = [delays.url, honest, honest.replace('127.0.0.1', 'localhost')]
    const named = await page.evaluate(
      (urls) => (globalThis as unknown as { named(urls: string[]): Promise<object> }).named(urls),
      agreed,
    )
    t.match(named, { text: /It flows/, found: [{ gateway: delays.url, code: 'untrue' }] })
  },
)

/** A page's script that signs an item by two kinds of keys, and reads a name. */
const signingPage = `import { ProvingFetcher } from 'sluice-client/fetch'
import { signedItem, signerOfEd25519, signerOfEthereum } from 'sluice-client'
const idBy = async (signer) => (await signedItem(new Uint8Array(9), { tags: [] }, signer)).id
const seed = new Uint8Array(32).fill(1)
globalThis.named = async (gatewayUrls) => {
  const found = []
  const onFinding = ({ gateway, error }) => found.push({ gateway, code: error.code })
  const response = await new ProvingFetcher({ gatewayUrls, onFinding }).fetch('ar://site/')
  return { text: await response.text(), found }
}
globalThis.made = async () => [await idBy(await signerOfEthereum(seed)), await idBy(await signerOfEd25519(seed))]
`

interface Shown {
  readonly shown: Record<string, { status: number; digest: string; text: string }>
  readonly messages: object[]
  /** Of the first text, opened as a document. */
  readonly policy: string | undefined
}

/** What a page sees behind a service worker over these gateways. */
async function shownBy(
  browser: Browser,
  url: string,
  gateways: readonly string[],
  references: readonly string[],
  range?: string,
): Promise<Shown> {
  const context = await browser.newContext()
  const page = await context.newPage()
  await page.goto(url)
  await page.evaluate(async (query) => {
    const target = globalThis as unknown as {
      messages: unknown[]
      navigator: {
        serviceWorker: EventTarget & { register(url: string): Promise<unknown>; ready: Promise<unknown> }
      }
    }
    target.messages = []
    target.navigator.serviceWorker.addEventListener('message', (event) =>
      target.messages.push((event as MessageEvent).data),
    )
    await target.navigator.serviceWorker.register(`/worker.js?gateways=${query}`)
    await target.navigator.serviceWorker.ready
  }, gateways.map(encodeURIComponent).join(','))
  await eventually('the service worker controls the page', () =>
    page.evaluate(
      () =>
        (globalThis as unknown as { navigator: { serviceWorker: { controller: unknown } } }).navigator
          .serviceWorker.controller !== null,
    ),
  )
  const shown = await page.evaluate(
    async ({ list, range }) => {
      const found: Record<string, { status: number; digest: string; text: string }> = {}
      for (const reference of list) {
        const response = await fetch(`/${reference}`, range === undefined ? {} : { headers: { range } })
        const bytes = await response.arrayBuffer()
        const digest = Array.from(new Uint8Array(await crypto.subtle.digest('SHA-256', bytes)), (byte) =>
          byte.toString(16).padStart(2, '0'),
        ).join('')
        found[reference] = {
          status: response.status,
          digest,
          text: new TextDecoder().decode(bytes.slice(0, 200)),
        }
      }
      return found
    },
    { list: [...references], range },
  )
  const messages = await page.evaluate(() => (globalThis as unknown as { messages: object[] }).messages)
  const text = references.find((reference) => reference.endsWith('.css'))
  const opened = text === undefined ? undefined : await page.goto(`${url}/${text}`)
  const policy = opened?.headers()['content-security-policy']
  await context.close()
  return { shown, messages, policy }
}
