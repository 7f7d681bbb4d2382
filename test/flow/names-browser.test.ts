import { existsSync } from 'node:fs'
import { chromium } from 'playwright-core'
import t from 'tap'
import { parseId } from '../../src/format/id.js'
import { sandboxLabel } from '../../src/names/sandbox.js'
import { someId } from '../source/rig.js'
import { run } from './running.js'

const browser = '/usr/bin/chromium'
const flags = [
  ...['--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run', '--disable-sync'],
  ...['--disable-background-networking', '--disable-component-update'],
]
const options = { skip: existsSync(browser) ? false : 'no Chromium here' }

t.test(
  'the devnet shows its site by name, in a browser; each id has an origin of its own',
  options,
  async (t) => {
    const running = await run(t, t.testdir())
    const { site, page: pageId } = running.examples
    const names = (running.log.find(({ msg }) => msg === 'ready')?.names ?? {}) as Record<string, string>
    const { port } = new URL(running.urls.gateway ?? '')
    t.equal(names.site, `http://site.localhost:${port}/`)
    const opened = await chromium.launch({ executablePath: browser, args: flags })
    t.teardown(() => opened.close())
    const page = await opened.newPage()
    const failed: string[] = []
    page.on('response', (response) => {
      if (response.status() >= 400 && !response.url().endsWith('favicon.ico')) failed.push(response.url())
    })
    const first = await page.goto(names.site ?? '')
    t.equal(first?.headers()['x-ns-resolved-id'], site)
    t.equal(await page.textContent('h1'), 'It flows.')
    t.equal(await page.evaluate("document.querySelector('img').naturalWidth"), 320, 'its picture, too')
    t.not(
      await page.evaluate("getComputedStyle(document.querySelector('main')).maxWidth"),
      'none',
      'and its style',
    )
    await page.goto(`http://site.localhost:${port}/${site}`)
    const label = sandboxLabel(parseId(site ?? '') ?? someId())
    t.equal(page.url(), `http://${label}.localhost:${port}/${site}/`)
    t.equal(await page.textContent('h1'), 'It flows.')
    t.strictSame(failed, [])
    await page.goto(`http://site.localhost:${port}/${pageId}`)
    t.notMatch(page.url(), label, 'another id is another origin')
  },
)
