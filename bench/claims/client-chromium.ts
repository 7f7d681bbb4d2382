import { existsSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { fileURLToPath } from 'node:url'
import { build } from 'esbuild'
import { chromium } from 'playwright-core'
import { say } from '../kit/say.js'

const chromiumPath = '/usr/bin/chromium'
const entry = fileURLToPath(new URL('../../src/client/fetch/index.js', import.meta.url))

const page = (script: string): string =>
  `<!doctype html><title>bench</title><script type="module">${script}</script>`

/** MiB a second that a page in Chromium fetches, plain and proven, in turns. */
export async function chromiumFetch(gateway: string, id: string, sizeMib: number): Promise<void> {
  if (!existsSync(chromiumPath)) return say('no Chromium here')
  const { outputFiles } = await build({
    stdin: {
      contents: `import { ProvingFetcher } from ${JSON.stringify(entry)}; globalThis.ProvingFetcher = ProvingFetcher`,
      resolveDir: fileURLToPath(new URL('.', import.meta.url)),
    },
    bundle: true,
    minify: true,
    write: false,
    format: 'esm',
    platform: 'browser',
    target: 'es2022',
  })
  const html = page((outputFiles[0]?.text ?? '').replaceAll('</script', '<\\/script'))
  const server = createServer((_, response) => response.setHeader('content-type', 'text/html').end(html))
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const browser = await chromium.launch({
    executablePath: chromiumPath,
    args: ['--no-sandbox', '--disable-gpu'],
  })
  try {
    const tab = await browser.newPage()
    await tab.goto(`http://127.0.0.1:${(server.address() as AddressInfo).port}/`)
    await tab.waitForFunction('globalThis.ProvingFetcher !== undefined')
    const { plain, proven } = (await tab.evaluate(`(async () => {
      const fetcher = new ProvingFetcher({ gatewayUrls: [${JSON.stringify(gateway)}] })
      const best = { plain: 1e9, proven: 1e9 }
      for (let round = 0; round < 6; round++) {
        let start = performance.now()
        await (await fetch(${JSON.stringify(`${gateway}/raw/${id}`)}, { cache: 'no-store' })).arrayBuffer()
        best.plain = Math.min(best.plain, performance.now() - start)
        start = performance.now()
        await (await fetcher.fetch(${JSON.stringify(id)})).arrayBuffer()
        best.proven = Math.min(best.proven, performance.now() - start)
      }
      return best
    })()`)) as { plain: number; proven: number }
    const rate = (ms: number): string => `${((sizeMib * 1.048576 * 1000) / ms).toFixed(0)} MB/s`
    say(
      `Chromium, ${sizeMib} MiB, best of six: fetch ${rate(plain)}, verifiedFetch ${rate(proven)} (wanted: 200 MB/s)`,
    )
  } finally {
    await browser.close()
    server.close()
  }
}
