/** People upload in a browser: files, a folder, with a key that is made there, and a link that works at once. */
import { createPublicKey } from 'node:crypto'
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { chromium, type Page } from 'playwright-core'
import t from 'tap'
import type { Hex } from 'viem'
import { privateKeyToAccount } from 'viem/accounts'
import { encodeBase58 } from '../../src/format/base58.js'
import { ed25519Signer } from '../../src/proof/sign.js'
import { run } from './running.js'

const browser = '/usr/bin/chromium'
const flags = [
  '--no-sandbox',
  '--disable-gpu',
  '--disable-quic',
  '--no-first-run',
  '--disable-sync',
  '--disable-background-networking',
  '--disable-component-update',
]
const skip = existsSync(browser) ? false : 'no Chromium here'

/** Uploads what was chosen, and waits until that many lines are over. */
async function sent(page: Page, lines: number): Promise<void> {
  await page.click('#go')
  await page
    .locator('#list [role=status].good, #list [role=status].bad')
    .nth(lines - 1)
    .waitFor()
}

t.test('files and a folder go up from a browser', { skip }, async (t) => {
  const folder = t.testdir()
  const { urls } = await run(t, `${folder}/data`, { DEVNET_SEED: 'false' })
  const address = `${urls.upload}/upload`
  t.match(await (await fetch(address)).json(), { protocol: 'draft-ietf-httpbis-resumable-upload' })
  mkdirSync(`${folder}/site/css`, { recursive: true })
  writeFileSync(`${folder}/site/index.html`, '<h1>a page</h1>')
  writeFileSync(`${folder}/site/css/style.css`, 'h1 { color: red }')
  const opened = await chromium.launch({ executablePath: browser, args: flags })
  t.teardown(() => opened.close())
  const context = await opened.newContext({ viewport: { width: 375, height: 800 }, acceptDownloads: true })
  const page = await context.newPage()
  page.setDefaultTimeout(120_000)
  const wrong: string[] = []
  page.on('pageerror', (error) => wrong.push(error.message))
  page.on('console', (message) => {
    if (message.type() === 'error' && !message.text().includes('402')) wrong.push(message.text())
  })
  const answer = await page.goto(address)
  t.match(
    answer?.headers()['content-security-policy'],
    /default-src 'none'.*script-src 'self'; connect-src 'self'/,
  )
  t.equal(await page.evaluate('document.documentElement.scrollWidth <= innerWidth'), true, 'fits a phone')
  await page.locator('#key', { hasText: 'is made in this browser' }).waitFor()

  const evil = '<img src=x onerror="document.title=1">.txt'
  const large = {
    name: 'large.bin',
    mimeType: 'application/octet-stream',
    buffer: Buffer.alloc(200_000, 'large'),
  }
  await page.setInputFiles('#files', [
    { name: evil, mimeType: 'text/plain', buffer: Buffer.from('from a browser') },
    large,
  ])
  await page.locator('#cost', { hasText: 'credits' }).waitFor()
  await sent(page, 2)
  t.match(await page.textContent('#list li:nth-child(2)'), `${evil} 14 bytes receipt verified`)
  t.match(await page.textContent('#list li:nth-child(1)'), /too few credits/, 'nobody pays for the large one')
  t.equal(await page.title(), 'Upload for good', 'names of files are texts')
  const link = (await page.getAttribute('#list li:nth-child(2) a', 'href')) ?? ''
  const served = await fetch(link)
  t.equal(await served.text(), 'from a browser')
  t.match(served.headers.get('content-type'), 'text/plain')

  const [saved] = await Promise.all([page.waitForEvent('download'), page.click('text=Save the receipt')])
  const receipt = JSON.parse(readFileSync(await saved.path(), 'utf8')) as { id: string; public: string }
  t.ok(link.endsWith(receipt.id))
  t.equal(
    createPublicKey({ key: { kty: 'RSA', n: receipt.public, e: 'AQAB' }, format: 'jwk' }).type,
    'public',
  )
  const [key] = await Promise.all([page.waitForEvent('download'), page.click('text=Save the key as a file')])
  const seed = Buffer.from(readFileSync(await key.path(), 'utf8').trim(), 'hex')
  const owner = await page.getAttribute('#key code', 'title')
  t.equal(owner, encodeBase58(ed25519Signer(seed).owner), 'the file is the key that was shown')

  await page.setInputFiles('#folder', `${folder}/site`)
  await page.locator('#what', { hasText: 'Folder site/ 2 files' }).waitFor()
  await sent(page, 3)
  const site = (await page.getAttribute('#list li:first-child a', 'href')) ?? ''
  t.equal(await (await fetch(site)).text(), '<h1>a page</h1>')
  t.equal(await (await fetch(`${site}css/style.css`)).text(), 'h1 { color: red }')

  await page.reload()
  t.equal(await page.locator('#key code').getAttribute('title'), owner, 'the key stays')
  await page.setInputFiles('#key input[type=file]', [
    { name: 'no.key', mimeType: 'text/plain', buffer: Buffer.from('no key at all') },
  ])
  await page.locator('#said', { hasText: 'This is no key' }).waitFor()
  const next = '5a'.repeat(32)
  await page.setInputFiles('#key input[type=file]', [
    { name: 'my.key', mimeType: 'text/plain', buffer: Buffer.from(next) },
  ])
  await page.locator(`#key code:not([title="${owner}"])`).waitFor()
  t.same(wrong, [])
})

t.test('a wallet of the browser signs instead', { skip }, async (t) => {
  const { urls } = await run(t, t.testdir(), { DEVNET_SEED: 'false' })
  const account = privateKeyToAccount(`0x${'5b'.repeat(32)}`)
  const opened = await chromium.launch({ executablePath: browser, args: flags })
  t.teardown(() => opened.close())
  const page = await opened.newPage()
  page.setDefaultTimeout(120_000)
  await page.exposeFunction('signRaw', (raw: Hex) => account.signMessage({ message: { raw } }))
  await page.addInitScript(`globalThis.ethereum = {
    request: async ({ method, params }) => {
      if (method === 'eth_requestAccounts') return ['${account.address}']
      if (method === 'personal_sign') return globalThis.signRaw(params[0])
      throw new Error(method)
    },
  }`)
  await page.goto(`${urls.upload}/upload`)
  await page.click('text=Use the Ethereum wallet')
  await page.locator(`#key code[title="${account.address}"]`).waitFor()
  await page.setInputFiles('#files', [
    { name: 'a.txt', mimeType: 'text/plain', buffer: Buffer.from('by a wallet') },
  ])
  await sent(page, 1)
  const link = (await page.getAttribute('#list a', 'href')) ?? ''
  const served = await fetch(link)
  t.equal(await served.text(), 'by a wallet')
  const owner = Buffer.from(served.headers.get('x-chain-owner') ?? '', 'base64url')
  t.equal(owner.toString('hex'), account.publicKey.slice(2), 'the item is of the wallet')
  t.equal(await page.evaluate('localStorage.getItem("sluice-upload-key")'), null, 'no key was made')
})
