import type { Browser, Page } from 'playwright-core'
import t, { type Test } from 'tap'
import { generatePrivateKey, type PrivateKeyAccount, privateKeyToAccount } from 'viem/accounts'
import { openBrowser, withoutBrowser } from '../browser.js'
import { type ScriptedFacilitator, scriptedFacilitator } from './scripted-facilitator.js'
import { get, openShop, type Shop, type ShopOptions } from './shop.js'

const asBrowser = { accept: 'text/html,*/*', 'user-agent': 'Mozilla/5.0 (X11; Linux x86_64)' }
const payee = privateKeyToAccount(generatePrivateKey()).address

/** A wallet in the page that signs outside of it: what an extension is to a page. */
interface Wallet {
  readonly account: PrivateKeyAccount
  readonly calls: string[]
  /** Declines to sign. */
  declines: boolean
}

interface Visit {
  readonly facilitator: ScriptedFacilitator
  readonly shop: Shop
  readonly wallet: Wallet
  readonly page: Page
  /** What the page complained of: errors, refused scripts, requests to other hosts. */
  readonly complaints: string[]
}

let browser: Browser | undefined
/** One for all tests of this file, closed at its end. */
const openShared = (): Promise<Browser> => openBrowser(t)

async function visit(t: Test, options: Partial<ShopOptions> = {}, withWallet = true): Promise<Visit> {
  browser ??= await openShared()
  const facilitator = await scriptedFacilitator(t)
  const shop = await openShop(t, { facilitatorUrl: facilitator.url, wallet: payee, ...options })
  const account = privateKeyToAccount(generatePrivateKey())
  facilitator.balances.set(account.address.toLowerCase(), 10_000_000n)
  const wallet: Wallet = { account, calls: [], declines: false }
  const context = await browser.newContext()
  t.teardown(() => context.close())
  const page = await context.newPage()
  const complaints: string[] = []
  page.on('pageerror', (error) => complaints.push(error.message))
  page.on('console', (word) => {
    if (word.type() === 'error' && !/status of (402|503)/.test(word.text())) complaints.push(word.text())
  })
  page.on('request', (request) => {
    if (!request.url().startsWith(shop.url)) complaints.push(request.url())
  })
  if (withWallet) await inject(page, wallet)
  return { facilitator, shop, wallet, page, complaints }
}

async function inject(page: Page, wallet: Wallet): Promise<void> {
  let chain = '0x1'
  await page.exposeFunction('walletCalled', async (method: string, params: readonly unknown[]) => {
    wallet.calls.push(method)
    if (method === 'eth_requestAccounts') return { result: [wallet.account.address] }
    if (method === 'eth_chainId') return { result: chain }
    if (method === 'wallet_switchEthereumChain' && chain === '0x1') {
      chain = '0x2'
      return { code: 4902, message: 'unknown chain' }
    }
    if (method === 'wallet_addEthereumChain') {
      chain = (params[0] as { chainId: string }).chainId
      return { result: null }
    }
    if (method !== 'eth_signTypedData_v4') return { code: 4200, message: `cannot ${method}` }
    if (wallet.declines) return { code: 4001, message: 'declined' }
    const { domain, types, primaryType, message } = JSON.parse(params[1] as string)
    const { EIP712Domain, ...rest } = types
    return { result: await wallet.account.signTypedData({ domain, types: rest, primaryType, message }) }
  })
  await page.addInitScript({
    content: `window.ethereum = { request: async ({ method, params }) => {
      const result = await window.walletCalled(method, params ?? []);
      if ('code' in result) throw Object.assign(new Error(result.message), { code: result.code });
      return result.result;
    } };`,
  })
}

t.test('a browser gets a page, a program gets JSON', async (t) => {
  const facilitator = await scriptedFacilitator(t)
  const appName = 'A & B <script>alert(1)</script>'
  const paywall = { appName, appLogo: 'https://logo.example/a.png?"><script>' }
  const shop = await openShop(t, { facilitatorUrl: facilitator.url, wallet: payee, paywall })
  const page = await get(`${shop.url}/a</script><script>alert(2)</script>?x='"`, asBrowser)
  t.equal(page.status, 402)
  t.equal(page.headers.get('content-type'), 'text/html; charset=utf-8')
  t.equal(page.headers.get('cache-control'), 'no-store')
  const policy = page.headers.get('content-security-policy') ?? ''
  t.match(
    policy,
    /default-src 'none'; script-src 'sha256-[^ ]+'; style-src 'sha256-[^ ]+'; img-src 'self' data: https:\/\/logo\.example;/,
  )
  t.notMatch(policy, /unsafe/)
  t.equal(page.text.match(/<script/g)?.length, 2, 'the data and the script, nothing else')
  t.equal(page.text.match(/<\/script/g)?.length, 2)
  t.ok(page.headers.get('payment-required'), 'clients of version 2 can pay all the same')
  for (const path of ['//[', '//[0', '/\\[', '//evil.example'])
    t.match(
      await get(`${shop.url}${path}`, asBrowser),
      { status: 402 },
      `${path}: no address, or none of this host`,
    )
  for (const headers of [{}, { accept: 'text/html' }, { 'user-agent': 'Mozilla/5.0' }]) {
    const got = await get(`${shop.url}/file`, headers)
    t.equal(got.headers.get('content-type'), 'application/json; charset=utf-8')
    t.match(JSON.parse(got.text), {
      x402Version: 1,
      accepts: [{ scheme: 'exact', maxAmountRequired: '1000' }],
    })
  }
})

t.test('the redirect after paying: only to own paths, and only where paid', async (t) => {
  const facilitator = await scriptedFacilitator(t)
  const shop = await openShop(t, { facilitatorUrl: facilitator.url, wallet: payee })
  const way = (target: string): string =>
    `${shop.url}/gateway/x402/browser-paywall-redirect/${Buffer.from(target).toString('base64url')}`
  for (const target of [
    'https://evil.example/',
    '//evil.example',
    'javascript:alert(1)',
    '/gateway/x402/test',
  ]) {
    t.match(await get(way(target)), { status: 400, error: 'Invalid redirect URL' }, target)
  }
  t.match(await get(`${way('/')}*`), { status: 400, error: 'Invalid encoded URL' })
  const unpaid = await get(way('/file'))
  t.equal(unpaid.status, 402)
  const sealed = (query: string): Promise<string> =>
    get(`${way('/file')}?${query}`).then(({ text }) => JSON.parse(text).accepts[0].maxAmountRequired)
  t.equal(
    await sealed(`bytes=999999999999&seal=${'0'.repeat(32)}`),
    '1000',
    'a size that we did not write does not count',
  )
  t.equal(await sealed('bytes=-5&seal='), '1000')
})

t.test('in a browser', { skip: withoutBrowser }, async (t) => {
  t.test('paying with a wallet leads to the requested content, and pays once', async (t) => {
    const { facilitator, shop, wallet, page, complaints } = await visit(t)
    const path = '/20000000?a=%22%3E%3Cimg%20src=x%20onerror=alert(1)%3E'
    await page.goto(shop.url + path)
    t.equal(await page.title(), 'Payment required · Test gateway')
    t.match(await page.textContent('main'), /0\.002 USDC.*19\.1 MiB.*Base Sepolia/s)
    await page.click('#pay')
    await page.getByText('the bytes', { exact: true }).waitFor()
    t.equal(page.url(), shop.url + path)
    t.same(wallet.calls, [
      'eth_requestAccounts',
      'eth_chainId',
      'wallet_switchEthereumChain',
      'wallet_addEthereumChain',
      'eth_signTypedData_v4',
    ])
    t.equal(facilitator.count('settle'), 1)
    t.equal(facilitator.balances.get(payee.toLowerCase()), 2000n)
    t.same(complaints, [])
  })

  t.test('the paid echo shows its answer', async (t) => {
    const { shop, page, complaints } = await visit(t)
    await page.goto(`${shop.url}/gateway/x402/test`)
    await page.click('#pay')
    await page.waitForSelector('#shown:not([hidden])')
    t.match(JSON.parse((await page.textContent('#shown')) ?? ''), { success: true })
    t.same(complaints, [])
  })

  t.test('a visitor who opens the redirect address itself pays there and is redirected', async (t) => {
    const { shop, page } = await visit(t)
    await page.goto(
      `${shop.url}/gateway/x402/browser-paywall-redirect/${Buffer.from('/file').toString('base64url')}`,
    )
    await page.click('#pay')
    await page.getByText('the bytes', { exact: true }).waitFor()
    t.equal(page.url(), `${shop.url}/file`)
  })

  t.test('a settlement that takes long is waited for, signed once, even over a reload', async (t) => {
    const { facilitator, shop, wallet, page } = await visit(t, { cashier: { waitMs: 50 } })
    facilitator.settle = ({ json }) => {
      json(200, { success: false, errorReason: 'settlement_pending', transaction: '' })
      return true
    }
    await page.goto(`${shop.url}/file`)
    await page.click('#pay')
    await page.getByText('being settled').waitFor()
    await page.reload()
    facilitator.settle = undefined
    await page.click('#pay')
    await page.getByText('the bytes', { exact: true }).waitFor()
    t.equal(wallet.calls.filter((method) => method === 'eth_signTypedData_v4').length, 1)
    t.equal(facilitator.balances.get(payee.toLowerCase()), 1000n)
  })

  t.test('a visitor who declines, or has no money, is told so and can try again', async (t) => {
    const { facilitator, shop, wallet, page } = await visit(t)
    wallet.declines = true
    await page.goto(`${shop.url}/file`)
    await page.click('#pay')
    await page.waitForSelector('#word.bad')
    t.match(await page.textContent('#word'), 'declined')
    wallet.declines = false
    facilitator.balances.clear()
    await page.click('#pay')
    await page.getByText('insufficient_funds').waitFor()
    facilitator.balances.set(wallet.account.address.toLowerCase(), 5000n)
    await page.click('#pay')
    await page.getByText('the bytes', { exact: true }).waitFor()
    t.equal(facilitator.count('settle'), 1)
  })

  t.test('without a wallet the page says what is missing', async (t) => {
    const { shop, page, complaints } = await visit(t, {}, false)
    await page.goto(`${shop.url}/file`)
    t.match(await page.textContent('#word'), 'No wallet')
    t.ok(await page.isDisabled('#pay'))
    t.same(complaints, [])
  })

  t.test('the page fits a phone, light and dark', async (t) => {
    const { shop, page, complaints } = await visit(t)
    const folder = process.env.SCREENSHOTS
    for (const colorScheme of ['light', 'dark'] as const) {
      for (const [width, height] of [
        [1280, 800],
        [320, 640],
      ] as const) {
        await page.emulateMedia({ colorScheme })
        await page.setViewportSize({ width, height })
        await page.goto(`${shop.url}/file`)
        const wide = await page.evaluate('document.documentElement.scrollWidth')
        t.ok(Number(wide) <= width, `${wide} of ${width} pixels`)
        if (folder !== undefined)
          await page.screenshot({ path: `${folder}/paywall-${colorScheme}-${width}.png` })
      }
    }
    t.same(complaints, [])
  })
})

t.test(
  'who has no USDC is led to where it is sold, by a token for one visit',
  { skip: withoutBrowser },
  async (t) => {
    const paywall = { appName: 'Shop', sessionsAt: '/sessions', onrampKey: 'not-needed' }
    const { page, shop, wallet, complaints } = await visit(t, { network: 'base', paywall })
    const bodies: unknown[] = []
    let status = 503
    await page.route('**/sessions', (route) => {
      bodies.push(route.request().postDataJSON())
      return route.fulfill({ status, json: status === 200 ? { token: 'a token&' } : {} })
    })
    await page.context().route('https://pay.coinbase.com/**', (route) => route.fulfill({ body: 'a shop' }))
    await page.goto(`${shop.url}/file`)
    await page.click('#buy')
    await page.locator('#word', { hasText: 'cannot be bought here now: it answered 503' }).waitFor()
    t.ok(complaints.splice(0).every((line) => line.includes('503')))
    status = 200
    const opening = page.context().waitForEvent('page')
    await page.click('#buy')
    const opened = await opening
    t.equal(
      opened.url(),
      'https://pay.coinbase.com/buy/select-asset?sessionToken=a+token%26&defaultAsset=USDC&defaultNetwork=base',
    )
    const { address } = wallet.account
    t.same(bodies.at(-1), { addresses: [{ address, blockchains: ['base'] }], assets: ['USDC'] })
    t.ok(await page.isVisible('text=Go on to buy USDC'), 'a browser that opens no tab has a link')
    t.ok(await page.isEnabled('#pay'))
    t.same(complaints, [])
    const far = await get(`${shop.url}/file`, asBrowser)
    t.match(far.headers.get('content-security-policy'), "connect-src 'self';")
  },
)
