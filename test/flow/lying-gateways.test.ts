/** The demonstration page of the devnet's site, as people see it: in Chromium, under its name. */
import { existsSync, mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { chromium } from 'playwright-core'
import t from 'tap'
import { run } from './running.js'

/** Everything here takes minutes on a busy machine. */
t.setTimeout(600_000)

const chromiumPath = '/usr/bin/chromium'
const skip = existsSync(chromiumPath) ? false : 'no Chromium here'

const looks = [
  { name: 'light', colorScheme: 'light', width: 1200 },
  { name: 'dark', colorScheme: 'dark', width: 1200 },
  { name: 'narrow', colorScheme: 'light', width: 375 },
] as const

t.test('four kinds of lying gateways are caught before the eyes of a reader', { skip }, async (t) => {
  const { urls } = await run(t, join(t.testdir(), 'data'), { SERVICES: 'gateway' })
  const { port } = new URL(urls.gateway ?? '')
  const browser = await chromium.launch({
    executablePath: chromiumPath,
    args: ['--no-sandbox', '--disable-gpu'],
  })
  t.teardown(() => browser.close())
  for (const { name, colorScheme, width } of looks) {
    const context = await browser.newContext({ colorScheme, viewport: { width, height: 900 } })
    const page = await context.newPage()
    const errors: string[] = []
    page.on('pageerror', (error) => errors.push(String(error)))
    await page.goto(`http://site.localhost:${port}/verify.html`)
    await page.waitForSelector('body[data-done]', { timeout: 120_000 })
    t.strictSame(errors, [])
    t.equal(await page.getAttribute('body', 'data-done'), 'yes', (await page.textContent('#worker')) ?? '')
    for (const kind of ['flips', 'swaps', 'shifts', 'delays'])
      t.equal(
        await page.getAttribute(`#${kind}`, 'class'),
        'caught',
        (await page.textContent(`#${kind}`)) ?? '',
      )
    t.match((await page.textContent('#worker')) ?? '', /the picture is right/)
    t.ok((await page.locator('#told li').count()) >= 2, 'the worker told of both liars')
    const wide = await page.evaluate('document.documentElement.scrollWidth')
    t.ok(Number(wide) <= width, `${name}: nothing is wider than the window`)
    const shots = process.env.SCREENSHOTS
    if (shots !== undefined) {
      mkdirSync(shots, { recursive: true })
      await page.screenshot({ path: join(shots, `lying-gateways-${name}.png`), fullPage: true })
    }
    await context.close()
  }
})
