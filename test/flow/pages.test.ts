/** The pages that a browser gets: they load nothing from elsewhere, fit a phone, and say the code of a failure. */
import { readFileSync } from 'node:fs'
import t from 'tap'
import { errorCodes } from '../../src/http/error-codes.js'
import { openBrowser, withoutBrowser } from '../browser.js'
import { run } from './running.js'
import { upstream } from './upstream.js'

const unknown = `${'B'.repeat(42)}A`
/** The trusted gateway fails when it is asked for this. */
const failing = `${'C'.repeat(42)}A`

t.test('the table for operators names every code', async (t) => {
  const table = readFileSync(new URL('../../../deploy/OPERATING.md', import.meta.url), 'utf8')
  t.same(
    Object.entries(errorCodes).filter(
      ([code, { status }]) => !new RegExp(`\`${code}\` *\\| ${status} `).test(table),
    ),
    [],
  )
  const named = [...table.matchAll(/`(SLC_\w+)`/g)].map(([, code = '']) => code)
  t.same(
    named.filter((code) => !(code in errorCodes)),
    [],
    'and no other',
  )
})

t.test('pages in a browser', { skip: withoutBrowser }, async (t) => {
  const trusted = await upstream(t, (id, _request, response) =>
    response.writeHead(id === failing ? 500 : 404).end(),
  )
  const { urls, examples } = await run(t, t.testdir(), {
    ADMIN_API_KEY: 'a-key-for-tests',
    TRUSTED_GATEWAYS_URLS: JSON.stringify({ [trusted.url]: 1 }),
    // Enough for all pages, and for the large file once.
    ENABLE_RATE_LIMITER: 'true',
    RATE_LIMITER_IP_TOKENS_PER_BUCKET: '40000',
    RATE_LIMITER_IP_REFILL_PER_SEC: '40000',
    RATE_LIMITER_RESOURCE_TOKENS_PER_BUCKET: '25000',
    RATE_LIMITER_RESOURCE_REFILL_PER_SEC: '1',
  })
  const gateway = urls.gateway ?? ''
  const blocked = await fetch(`${gateway}/gateway/admin/block-data`, {
    method: 'PUT',
    headers: { authorization: 'Bearer a-key-for-tests', 'content-type': 'application/json' },
    body: JSON.stringify({ id: examples.image, notes: 'not wanted', source: 'a test' }),
  })
  t.equal(blocked.status, 200)
  // Whether this is served or refused already: afterwards the large file is refused until tokens have come back.
  await (await fetch(`${gateway}/raw/${examples.large}`)).arrayBuffer()
  const shell = await openBrowser(t)
  for (const colorScheme of ['light', 'dark'] as const) {
    for (const width of [375, 1200]) {
      const context = await shell.newContext({ colorScheme, viewport: { width, height: 800 } })
      const page = await context.newPage()
      const faults: string[] = []
      page.on('console', (said) => {
        // A browser reports the status of the page itself as an error of loading.
        if (said.type() === 'error' && !said.text().startsWith('Failed to load resource'))
          faults.push(said.text())
      })
      page.on('pageerror', (error) => faults.push(String(error)))
      for (const [path, status, words] of [
        ['/', 200, 'Newest in the index'],
        ['/api-docs', 200, '/chunk/{offset}'],
        ['/graphql', 200, 'transactions'],
        [`/${unknown}`, 404, 'SLC_UNKNOWN'],
        [`/gateway/offsets/${unknown}`, 404, 'SLC_UNKNOWN'],
        ['/gateway/admin/overview', 401, 'SLC_UNAUTHORIZED'],
        ['/nowhere', 404, 'SLC_UNKNOWN'],
        [`/raw/${examples.image}`, 451, 'SLC_BLOCKED'],
        [`/raw/${examples.large}`, 429, /SLC_THROTTLED.*in \d+ seconds/s],
        [`/raw/${failing}`, 502, 'SLC_UPSTREAM'],
      ] as const) {
        const answer = await page.goto(gateway + path)
        t.equal(answer?.status(), status, path)
        t.match(await page.textContent('body'), words, path)
        const wide = await page.evaluate<number>('document.documentElement.scrollWidth')
        t.ok(wide <= width, `${path} is ${wide} wide at ${width}`)
        const folder = process.env.SCREENSHOTS
        const name = `${status}-${path.replace(/\W/g, '').slice(0, 12)}-${colorScheme}-${width}`
        if (folder !== undefined) await page.screenshot({ path: `${folder}/page-${name}.png` })
      }
      await page.goto(`${gateway}/`)
      await page.waitForSelector('#newest a')
      t.match(await page.textContent('#newest'), /bytes/)
      t.same(faults, [])
      await context.close()
    }
  }
  const program = await fetch(`${gateway}/${unknown}`)
  t.equal(await program.text(), 'Not found', 'programs get the words alone')
  t.equal(program.headers.get('x-error-code'), 'SLC_UNKNOWN')
  t.match(await (await fetch(`${gateway}/`)).json(), { release: String }, 'and JSON at the root')
  t.equal((await fetch(`${gateway}/favicon.ico`)).headers.get('content-type'), 'image/svg+xml')
  t.ok(examples.page)
})
