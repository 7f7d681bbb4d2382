// Puts together the demonstration that the devnet's site carries: a page, its script and a service worker, into dist/demo/.
// They are made of what the compiler wrote.
import { mkdir, readFile, writeFile } from 'node:fs/promises'
import { fileURLToPath } from 'node:url'

const root = fileURLToPath(new URL('..', import.meta.url))

export async function bundleDemo() {
  const { build } = await import('esbuild')
  await mkdir(`${root}dist/demo`, { recursive: true })
  const { palette } = await import(`${root}dist/src/http/palette.js`)
  const page = await readFile(`${root}src/client/demo/verify.html`, 'utf8')
  const coloured = page.replace('<style>\n', () => `<style>\n${palette}`)
  await writeFile(`${root}dist/demo/verify.html`, coloured)
  for (const [module, name, format] of [
    ['./page.js', 'verify', 'esm'],
    // The worker is that of the client's package, as it is.
    ['../fetch/service-worker.js', 'verify-worker', 'iife'],
  ]) {
    await build({
      stdin: {
        contents: `import '${module}'`,
        resolveDir: `${root}src/client/demo`,
      },
      // The scripts name the modules beside them, which the compiler has written elsewhere.
      plugins: [
        {
          name: 'compiled',
          setup: ({ onResolve }) =>
            onResolve({ filter: /^\.\.\/fetch\// }, ({ path }) => ({
              path: `${root}dist/src/client/${path.slice(3)}`,
            })),
        },
      ],
      outfile: `${root}dist/demo/${name}.js`,
      bundle: true,
      minify: true,
      format,
      platform: 'browser',
      target: 'es2022',
      logLevel: 'warning',
    })
  }
}
