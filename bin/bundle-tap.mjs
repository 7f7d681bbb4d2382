// Puts `tap` into one file below dist/test, where the tests find it before that of node_modules: to read its 300 modules takes a
// quarter of a second of processor time in each of more than four hundred test files.
import { mkdir, writeFile } from 'node:fs/promises'
import { fileURLToPath } from 'node:url'

const root = fileURLToPath(new URL('..', import.meta.url))
const place = `${root}dist/test/node_modules`

export async function bundleTap() {
  const { build } = await import('esbuild')
  await build({
    stdin: { contents: "export * from 'tap'\nexport { default } from 'tap'\n", resolveDir: root },
    // tap leaves files below this name out of the stacks that it shows.
    outfile: `${place}/@tapjs/bundled.js`,
    bundle: true,
    format: 'esm',
    platform: 'node',
    target: 'node20',
    mainFields: ['module', 'main'],
    banner: {
      js: "import { createRequire as requireOf } from 'node:module'\nconst require = requireOf(import.meta.url)",
    },
    logLevel: 'warning',
  })
  await writeFile(`${place}/@tapjs/package.json`, '{ "type": "module" }\n')
  await mkdir(`${place}/tap`, { recursive: true })
  await writeFile(
    `${place}/tap/package.json`,
    '{ "name": "tap", "type": "module", "exports": "./index.js" }\n',
  )
  await writeFile(
    `${place}/tap/index.js`,
    "export * from '../@tapjs/bundled.js'\nexport { default } from '../@tapjs/bundled.js'\n",
  )
}
