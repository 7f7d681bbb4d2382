/** People upload in a browser: files, a folder, with a key that is made there, and a link that works at once. */
import { createPublicKey } from 'node:crypto'
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import type { Browser, CDPSession, Page } from 'playwright-core'
import t from 'tap'
import type { Hex } from 'viem'
import { privateKeyToAccount } from 'viem/accounts'
import { encodeBase58 } from '../../src/format/base58.js'
import { encodeBase64url } from '../../src/format/base64url.js'
import { sha256 } from '../../src/proof/digest.js'
import { ed25519Signer, rsaSigner, signItem } from '../../src/proof/sign.js'
import { openBrowser, withoutBrowser as skip } from '../browser.js'
import { fixtureJson } from '../fixture-file.js'
import { type Running, run } from './running.js'

/** Uploads what was chosen, and waits until that many lines are over. */
async function sent(page: Page, lines: number): Promise<void> {
  await page.click('#go')
  await page
    .locator('#list [role=status].good, #list [role=status].bad')
    .nth(lines - 1)
    .waitFor()
  // The last line is over a moment before the page takes other files.
  await page.locator('#go:not([disabled])').waitFor({ state: 'attached' })
}

/** Drags what lies at these paths from the desktop onto the page, and lets it go there. */
async function dropped(page: Page, onto: string, files: string[]): Promise<void> {
  const session: CDPSession = await page.context().newCDPSession(page)
  await page.locator(onto).scrollIntoViewIfNeeded()
  const box = await page.locator(onto).boundingBox()
  const [x, y] = [(box?.x ?? 0) + (box?.width ?? 0) / 2, (box?.y ?? 0) + 20]
  const data = { items: [], files, dragOperationsMask: 1 }
  for (const type of ['dragEnter', 'dragOver', 'drop'] as const)
    await session.send('Input.dispatchDragEvent', { type, x, y, data })
  await session.detach()
}

/** A picture of the page for people, where a folder is wanted. */
async function picture(page: Page, name: string): Promise<void> {
  const folder = process.env.SCREENSHOTS
  if (folder === undefined) return
  for (const colorScheme of ['light', 'dark'] as const) {
    await page.emulateMedia({ colorScheme })
    await page.screenshot({ path: `${folder}/${name}-${colorScheme}.png`, fullPage: true })
  }
}

const browser = skip === false ? openBrowser(t) : undefined
const running = skip === false ? run(t, t.testdir()) : undefined

/** One browser and one program for all tests here. */
async function opened(): Promise<{ browser: Browser; urls: Running['urls'] }> {
  const [one, program] = [await browser, await running]
  if (one === undefined || program === undefined) throw new Error('no browser here')
  return { browser: one, urls: program.urls }
}

t.test('files and a folder go up from a browser', { skip }, async (t) => {
  const folder = t.testdir()
  const { browser, urls } = await opened()
  const address = `${urls.upload}/upload`
  t.match(await (await fetch(address)).json(), { protocol: 'draft-ietf-httpbis-resumable-upload' })
  for (const name of ['css', '.git']) mkdirSync(`${folder}/site/${name}`, { recursive: true })
  for (const name of ['.env', '.git/config', '.git/HEAD', 'draft.txt', 'Thumbs.db'])
    writeFileSync(`${folder}/site/${name}`, 'not for everybody')
  writeFileSync(`${folder}/site/.sluiceignore`, 'draft*')
  writeFileSync(`${folder}/site/index.html`, '<h1>a page</h1>')
  writeFileSync(`${folder}/site/css/style.css`, 'h1 { color: red }')
  const context = await browser.newContext({ viewport: { width: 375, height: 800 }, acceptDownloads: true })
  const page = await context.newPage()
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
  await page
    .locator('#cost', { hasText: /^At most [\d.]+ credits \(\$[\d.]+\), of the key below\.$/ })
    .waitFor()
  await sent(page, 2)
  t.match(await page.textContent('#list li:nth-child(2)'), `${evil} 14 bytes receipt verified`)
  t.match(await page.textContent('#list li:nth-child(1)'), /too few credits/, 'nobody pays for the large one')
  const buying = (await page.getAttribute('#list li:nth-child(1) a.button', 'href')) ?? ''
  t.match(buying, `${urls.payment}/credits?address=`)
  t.match(await (await fetch(buying)).text(), /Buy credits/)
  t.equal(await page.title(), 'Upload permanently', 'names of files are texts')
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
  const leftOut = await page.locator('#leftnames li').allTextContents()
  t.strictSame(leftOut.sort(), [
    '.env: hidden, because its name begins with a dot',
    '.git/: hidden, because its name begins with a dot',
    'Thumbs.db: hidden, because a file manager made it',
    'draft.txt: by .sluiceignore',
  ])
  await picture(page, 'upload-left-out')
  await page.check('#hidden')
  await page.locator('#what', { hasText: 'Folder site/ 6 files' }).waitFor()
  await page.uncheck('#hidden')
  await page.locator('#what', { hasText: 'Folder site/ 2 files' }).waitFor()
  await sent(page, 3)
  const site = (await page.getAttribute('#list li:first-child a', 'href')) ?? ''
  t.equal(await (await fetch(site)).text(), '<h1>a page</h1>')
  t.equal(await (await fetch(`${site}css/style.css`)).text(), 'h1 { color: red }')
  const manifest = (await (await fetch(site.replace(/([\w-]{43})\/$/, 'raw/$1'))).json()) as { paths: object }
  t.strictSame(Object.keys(manifest.paths).sort(), ['css/style.css', 'index.html'])

  writeFileSync(`${folder}/dropped.txt`, 'let go over the page')
  await dropped(page, '#drop', [`${folder}/dropped.txt`])
  await page.locator('#names', { hasText: 'dropped.txt, 20 bytes' }).waitFor()
  await picture(page, 'upload-375')
  await sent(page, 4)
  const fallen = (await page.getAttribute('#list li:first-child a', 'href')) ?? ''
  t.equal(await (await fetch(fallen)).text(), 'let go over the page')
  await dropped(page, '#drop', [`${folder}/site`])
  await page.locator('#what', { hasText: 'Folder site/ 2 files' }).waitFor()
  await page.click('#clear')
  await page.setInputFiles('#files', [{ name: '.env', mimeType: 'text/plain', buffer: Buffer.from('x') }])
  await page.locator('#leftnames', { hasText: '.env' }).waitFor()
  t.equal(await page.isDisabled('#go'), true, 'nothing is left to upload')
  await page.check('#hidden')
  await page.locator('#what', { hasText: '1 file' }).waitFor()
  await page.locator('#go:not([disabled])').waitFor()
  await page.click('#clear')

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

interface Wallet {
  readonly name: string
  /** Under which the page shows it. */
  readonly address: string
  /** Public key, as it stands in items. */
  readonly owner: Uint8Array
  /** What the browser's extension puts into the page; `sign...` are the functions below. */
  readonly script: string
}

t.test('wallets of the browser sign instead', { skip }, async (t) => {
  const { browser, urls } = await opened()
  const account = privateKeyToAccount(`0x${'5b'.repeat(32)}`)
  const solana = ed25519Signer(Buffer.alloc(32, 0x5c))
  const arweave = rsaSigner(fixtureJson<Record<string, string>>('rsa-4096.jwk.json'))
  const context = await browser.newContext()
  await context.exposeFunction('signRaw', (raw: Hex) => account.signMessage({ message: { raw } }))
  await context.exposeFunction('signBytes', (bytes: number[]) => [...solana.sign(Buffer.from(bytes))])
  await context.exposeFunction('signWhole', (data: number[], tags: { name: string; value: string }[]) => {
    const encoded = tags.map(({ name, value }) => ({ name: Buffer.from(name), value: Buffer.from(value) }))
    return [...signItem(arweave, { tags: encoded }, Buffer.from(data))]
  })
  const wallets: Wallet[] = [
    {
      name: 'Ethereum',
      address: account.address,
      owner: Buffer.from(account.publicKey.slice(2), 'hex'),
      script: `globalThis.ethereum = {
        request: async ({ method, params }) => {
          if (method === 'eth_requestAccounts') return ['${account.address}']
          if (method === 'personal_sign') return globalThis.signRaw(params[0])
          throw new Error(method)
        },
      }`,
    },
    {
      name: 'Solana',
      address: encodeBase58(solana.owner),
      owner: solana.owner,
      script: `globalThis.solana = {
        connect: async () => {
          globalThis.solana.publicKey = { toBytes: () => Uint8Array.from([${[...solana.owner].join()}]) }
        },
        signMessage: async (bytes) => ({ signature: Uint8Array.from(await globalThis.signBytes([...bytes])) }),
      }`,
    },
    {
      name: 'Arweave',
      address: encodeBase64url(sha256(arweave.owner)),
      owner: arweave.owner,
      script: `let permissions = []
      globalThis.arweaveWallet = {
        connect: async (wanted) => { permissions = wanted },
        getActivePublicKey: async () => {
          if (!permissions.includes('ACCESS_PUBLIC_KEY')) throw new Error('not permitted')
          return '${encodeBase64url(arweave.owner)}'
        },
        signDataItem: async ({ data, tags }) => {
          if (!permissions.includes('SIGN_TRANSACTION')) throw new Error('not permitted')
          return Uint8Array.from(await globalThis.signWhole([...data], tags)).buffer
        },
      }`,
    },
  ]
  for (const { name, address, owner, script } of wallets) {
    const page = await context.newPage()
    const wrong: string[] = []
    page.on('pageerror', (error) => wrong.push(error.message))
    await page.addInitScript(script)
    await page.goto(`${urls.upload}/upload`)
    await page.click(`text=Use the ${name} wallet`)
    await page.locator(`#key code[title="${address}"]`).waitFor()
    const text = `by the ${name} wallet`
    await page.setInputFiles('#files', [{ name: 'a.txt', mimeType: 'text/plain', buffer: Buffer.from(text) }])
    await sent(page, 1)
    t.match(await page.textContent('#list li'), 'receipt verified')
    await picture(page, `upload-${name}`)
    const link = (await page.getAttribute('#list a', 'href')) ?? ''
    const served = await fetch(link)
    t.equal(await served.text(), text)
    t.match(served.headers.get('content-type'), 'text/plain')
    const signed = Buffer.from(served.headers.get('x-chain-owner') ?? '', 'base64url')
    t.same(signed, Buffer.from(owner), 'the item is of the wallet')
    t.equal(await page.evaluate('localStorage.getItem("sluice-upload-key")'), null, 'no key was made')
    t.same(wrong, [])
    await page.close()
  }
})

t.test('the program ends when it is told to', { skip }, async (t) => {
  await (await browser)?.close()
  t.equal(await (await running)?.stop(), 0)
})
