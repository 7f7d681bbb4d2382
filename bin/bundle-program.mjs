// Puts each thread of the program into one file of its own (dist/workers/*.js), and its commands into dist/sluice.js and few parts
// beside it. A start then reads some twenty files, where it would read a module of the sources more than a thousand times over.
import { mkdir, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { basename, dirname, relative, sep } from 'node:path'
import { fileURLToPath } from 'node:url'

const root = fileURLToPath(new URL('..', import.meta.url))

/** Packages that stay where they are, because they carry addons, threads or scripts of their own. */
const external = ['node-sqlite3-wasm', 'piscina']
/**
 * Packages of many files that most threads never use: they stay where they are, too, and each is read when one of its exports is
 * first used. An import of a package is otherwise read at the start of the file, also where only a part that is loaded later has it.
 */
const late = ['lmdb', 'pg', 'ioredis', 'stripe', 'nodemailer', 'undici']

/** Replaces each of these packages by an object whose getters load it; a bundle with them has a `require`. */
export const latePackages = (packages) => ({
  name: 'late packages',
  setup({ onResolve, onLoad }) {
    const names = new RegExp(`^(${packages.join('|')})$`)
    onResolve({ filter: names }, ({ path, namespace, kind }) =>
      namespace === 'late' || kind === 'dynamic-import'
        ? { path, external: true }
        : { path, namespace: 'late' },
    )
    onLoad({ filter: names, namespace: 'late' }, ({ path }) => ({
      contents: Object.keys(createRequire(import.meta.url)(path))
        .map(
          (key) =>
            `Object.defineProperty(exports, '${key}', { enumerable: true, get: () => require('${path}')['${key}'] })\n`,
        )
        .join(''),
      resolveDir: root,
    }))
  },
})

/** What bundled packages in the older form find Node's parts and the late packages with. */
const withRequire = `import { createRequire as requireOf } from 'node:module'\nconst require = requireOf(import.meta.url)`

/** Modules find files of the package from their own place. In a bundle each keeps the place that the compiler gave it. */
const ownPlaces = (outdir) => ({
  name: 'own places',
  setup: ({ onLoad }) =>
    onLoad({ filter: /\.ts$/ }, async ({ path }) => {
      const text = await readFile(path, 'utf8')
      if (/import\.meta(?!\.url)/.test(text))
        throw new Error(`${path}: only import.meta.url, as these words, is known in a bundle`)
      const compiled = `${root}dist/${relative(root, path).replace(/\.ts$/, '.js')}`
      const place = relative(outdir, compiled).replaceAll(sep, '/')
      return {
        contents: text.replaceAll('import.meta.url', `new URL('${place}', import.meta.url).href`),
        loader: 'ts',
        resolveDir: dirname(path),
      }
    }),
})

/** Puts the client's commands into one file that needs no package beside it. */
export async function bundleClientCommands(outfile) {
  const { build } = await import('esbuild')
  await build({
    entryPoints: [`${root}src/cli/sluice-client.ts`],
    outfile,
    plugins: [ownPlaces(`${root}dist`)],
    // What the commands call their program (src/cli/program-name.ts).
    define: { SLUICE_PROGRAM: '"sluice-client"' },
    // An install without a compiler is what this package is for.
    alias: { '#addon-signer': `${root}src/client/no-addon.ts` },
    bundle: true,
    minify: true,
    format: 'esm',
    platform: 'node',
    mainFields: ['module', 'main'],
    target: 'node20',
    logLevel: 'warning',
  })
}

export async function bundleProgram() {
  const { build } = await import('esbuild')
  const workers = (await readdir(`${root}workers`)).map((name) => `${root}workers/${name}`)
  // A command reads its own parts only; a thread reads nearly all of its file.
  const parts = [
    [[`${root}src/cli/sluice.ts`], `${root}dist`, true],
    [workers, `${root}dist/workers`, false],
  ]
  const builds = parts.map(([entryPoints, outdir, splitting]) =>
    build({
      entryPoints,
      outdir,
      splitting,
      chunkNames: 'sluice-[hash]',
      plugins: [latePackages(late), ownPlaces(outdir)],
      external,
      banner: { js: withRequire },
      // The package's own imports name what is compiled already, whose places would be others.
      alias: { '#addon-signer': `${root}native/secp256k1/secp256k1.ts` },
      bundle: true,
      format: 'esm',
      platform: 'node',
      // Packages that come in both forms: as modules, because Node cannot load a `require` of its own parts from a bundled one.
      mainFields: ['module', 'main'],
      target: 'node20',
      logLevel: 'warning',
      write: false,
    }),
  )
  const written = (await Promise.all(builds)).flatMap(({ outputFiles }) => outputFiles)
  // A program may start while this is written: parts of the commands come before the file that names them, and old ones go last.
  const isPart = (path) => /^sluice-\w+\.js$/.test(basename(path))
  for (const { path, text } of [...written].sort((a, b) => Number(isPart(b.path)) - Number(isPart(a.path)))) {
    await mkdir(dirname(path), { recursive: true })
    await writeFile(path, narrow(text))
  }
  const current = new Set(written.map(({ path }) => basename(path)))
  for (const name of await readdir(`${root}dist`))
    if (isPart(name) && !current.has(name)) await rm(`${root}dist/${name}`)
}

/**
 * The text in characters of one byte. esbuild escapes all others in code, and leaves them in comments of packages; with a single
 * one of them V8 keeps two bytes for each character of the file, in every thread that runs it.
 */
const narrow = (text) => text.replaceAll(/[\u0080-\uffff]/g, '?')
