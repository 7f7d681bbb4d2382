/** The operator's page in a real browser: uploads on their way, wallets, corrections. */
import { readFileSync } from 'node:fs'
import t from 'tap'
import { ed25519Signer, signItem } from '../../src/proof/sign.js'
import { openBrowser, withoutBrowser as skip } from '../browser.js'
import { run } from './running.js'

const key = 'a-key-for-the-tests'

t.test('an operator looks after uploads and credits', { skip }, async (t) => {
  // No block: the bundle stays on its way.
  const { urls } = await run(t, t.testdir(), {
    DEVNET_SEED: 'false',
    ADMIN_API_KEY: key,
    DEVNET_BLOCK_MS: '600000',
  })
  const evil = '<img src=x onerror="document.title=1">'
  const item = signItem(ed25519Signer(Buffer.alloc(32, 21)), {}, Buffer.from('seen'))
  const taken = await fetch(`${urls.upload}/tx`, { method: 'POST', body: item })
  const { id } = (await taken.json()) as { id: string }
  await fetch(`${urls.upload}/upload`, {
    method: 'POST',
    headers: { 'upload-complete': '?0' },
    body: Buffer.alloc(50_000),
  })
  const wallet = '0x1111111111111111111111111111111111111111'
  const first = { key: 'first-one', address: wallet, winc: '5000000000000', note: evil }
  const headers = { authorization: `Bearer ${key}` }
  await fetch(`${urls.payment}/admin/corrections`, { method: 'POST', headers, body: JSON.stringify(first) })
  const opened = await openBrowser(t)
  const page = await opened.newPage({ viewport: { width: 375, height: 800 } })
  const wrong: string[] = []
  page.on('pageerror', (error) => wrong.push(error.message))
  page.on('dialog', (dialog) => void dialog.accept())
  await page.goto(urls.console ?? '')
  await page.fill('#key', key)
  await page.keyboard.press('Enter')

  await page.locator('#uploads-bundles td', { hasText: 'seeded' }).waitFor()
  t.match(await page.textContent('#uploads-open'), /resumable\s*open\s*48\.8 KiB/)
  t.match(await page.textContent('#uploads-facts'), /AR, \d+ s ago/)
  await page.fill('#upload-what', id)
  await page.press('#upload-what', 'Enter')
  await page.locator('#upload-found', { hasText: 'in a bundle that is not permanent' }).waitFor()
  await page.click('#uploads-bundles button:has-text("Repack")')
  await page.locator('#uploads-said', { hasText: 'wait for another one' }).waitFor()
  await page.locator('#uploads-bundles td', { hasText: 'dropped' }).waitFor()

  await page.locator('#credits-prices td').first().waitFor()
  t.match(await page.textContent('#credits-prices'), /1 AR\s*6\.25 USD/)
  await page.fill('#wallet-what', wallet)
  await page.press('#wallet-what', 'Enter')
  await page.locator('#wallet-found', { hasText: '5 credits' }).waitFor()
  t.ok((await page.textContent('#wallet-found'))?.includes(evil), 'what others wrote is text')
  t.equal(await page.title(), 'Sluice console')
  await page.fill('#correct-winc', '-1000000000000')
  await page.fill('#correct-note', 'too much')
  await page.press('#correct-note', 'Enter')
  await page.locator('#credits-said', { hasText: 'was corrected by -1000000000000 winc' }).waitFor()
  await page.locator('#wallet-found', { hasText: '4000000000000 winc' }).waitFor()
  const [saved] = await Promise.all([page.waitForEvent('download'), page.click('text=Save the statement')])
  t.match(readFileSync(await saved.path(), 'utf8'), /,-1000000000000,done,too much\r\n/)
  t.equal(await page.evaluate('document.documentElement.scrollWidth <= innerWidth'), true, 'fits a phone')
  t.same(wrong, [])
})
