/** Every page of the program, in a browser: three widths, light and dark. */
import { randomBytes } from 'node:crypto'
import type { Page } from 'playwright-core'
import t from 'tap'
import { openBrowser, withoutBrowser } from '../browser.js'
import { type Look, lookAt } from '../page-looks.js'
import { run, seeded } from './running.js'
import { upstream } from './upstream.js'

const key = 'a-key-for-the-tests'
const unknown = `${'B'.repeat(42)}A`
/** The trusted gateway fails when it is asked for this. */
const failing = `${'C'.repeat(42)}A`

const at = (url: string) => (page: Page) => page.goto(url)

/** Filters the paths, follows the link to another one, which ends the filter, and sends a request. */
const tried =
  (gateway: string) =>
  async (page: Page): Promise<void> => {
    await page.goto(`${gateway}/api-docs#get-peers`)
    await page.fill('#filter', 'wallet balance')
    await page.waitForSelector('#get-peers', { state: 'hidden' })
    await page.evaluate('location.hash = "get-height"')
    await page.click('#get-height button')
    await page.waitForSelector('#get-height .answer:has-text("200")')
    await page.waitForSelector('#get-height .answer:has-text("content-type: ")')
    await page.waitForSelector(`#get-height .curl:has-text("curl -iL '${gateway}/height'")`)
  }

/** Runs a query with a header, folds and unfolds the answer, and takes the query out of the history of a new page. */
const queried =
  (gateway: string) =>
  async (page: Page): Promise<void> => {
    await page.goto(`${gateway}/graphql`)
    await page.fill('#headers', '{"X-Request-Id": "from-the-page"}')
    const [request] = await Promise.all([
      page.waitForRequest((one) => (one.postData() ?? '').includes('pageInfo')),
      page.click('#run'),
    ])
    if (request.headers()['x-request-id'] !== 'from-the-page') throw new Error('the header was not sent')
    await page.waitForSelector('#answer .field:has-text("edges")')
    await page.click('#fold')
    await page.locator('#answer .field', { hasText: 'edges' }).waitFor({ state: 'hidden' })
    await page.click('#unfold')
    JSON.parse((await page.textContent('#answer')) ?? '')
    await page.reload()
    await page.fill('#query', '')
    await page.selectOption('#history', { index: 1 })
    await page.click('#run')
    await page.waitForSelector('#answer .field:has-text("edges")')
  }

const options = { skip: withoutBrowser }

t.test('pages of what is not sold', options, async (t) => {
  const trusted = await upstream(t, (id, _request, response) =>
    response.writeHead(id === failing ? 500 : 404).end(),
  )
  const { urls, examples } = await run(t, t.testdir(), {
    ...seeded,
    ADMIN_API_KEY: key,
    TRUSTED_GATEWAYS_URLS: JSON.stringify({ [trusted.url]: 1 }),
    // Enough for all pages, and never for the large file.
    ENABLE_RATE_LIMITER: 'true',
    RATE_LIMITER_IP_TOKENS_PER_BUCKET: '3000',
    RATE_LIMITER_IP_REFILL_PER_SEC: '40000',
  })
  const { gateway = '', upload = '', payment = '', console = '' } = urls
  const { port } = new URL(gateway)
  const site = `http://site.localhost:${port}`
  await fetch(`${gateway}/gateway/admin/block-data`, {
    method: 'PUT',
    headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
    body: JSON.stringify({ id: examples.item, notes: 'not wanted', source: 'a test' }),
  })
  const checkout = async (to: string, query = ''): Promise<string> => {
    const answer = await fetch(`${payment}/v1/top-up/checkout-session/${to}/usd/1000?${query}`)
    return ((await answer.json()) as { paymentSession: { url: string } }).paymentSession.url
  }
  const wallet = (): string => randomBytes(32).toString('base64url')
  const signedIn = async (page: Page): Promise<void> => {
    await page.goto(console)
    await page.fill('#key', key)
    await page.keyboard.press('Enter')
    await page.waitForSelector('#uploads-facts dd')
    await page.waitForSelector('#credits-prices td')
    await page.waitForSelector('#charts canvas')
  }
  const looks: Look[] = [
    {
      name: 'landing',
      words: 'Newest in the index',
      open: async (page) => {
        await page.goto(gateway)
        await page.waitForSelector('#newest a')
      },
    },
    {
      name: 'landing-search',
      // The page of an id asks for files beside it, which are there below a manifest alone.
      statuses: [404],
      words: 'The index knows no content',
      open: async (page) => {
        const find = async (text: string): Promise<void> => {
          await page.goto(gateway)
          await page.fill('#search input', text)
          await page.keyboard.press('Enter')
        }
        await find(examples.page ?? '')
        await page.waitForURL(`**/${examples.page}*`)
        // Again from a page of a failure, on the host of a name that nobody knows.
        await page.goto(`http://nobody.localhost:${port}/`)
        await page.fill('.search input', 'nobody at all')
        await page.keyboard.press('Enter')
        await page.waitForURL(`http://localhost:${port}/?find=*`)
        await page.waitForSelector('text=The index knows no content')
      },
    },
    { name: 'api-docs', open: tried(gateway), words: '/chunk/{offset}' },
    { name: 'graphql', open: queried(gateway), words: 'HTTP headers' },
    { name: '404-id', open: at(`${gateway}/${unknown}`), words: 'SLC_UNKNOWN', statuses: [404] },
    { name: '404-path', open: at(`${gateway}/nowhere`), words: 'SLC_UNKNOWN', statuses: [404] },
    { name: '404-name', open: at(`http://nobody.localhost:${port}/`), words: 'SLC_', statuses: [404] },
    {
      name: '401',
      open: at(`${gateway}/gateway/admin/overview`),
      words: 'SLC_UNAUTHORIZED',
      statuses: [401],
    },
    { name: '429', open: at(`${gateway}/raw/${examples.large}`), words: 'SLC_THROTTLED', statuses: [429] },
    { name: '451', open: at(`${gateway}/raw/${examples.item}`), words: 'SLC_BLOCKED', statuses: [451] },
    { name: '502', open: at(`${gateway}/raw/${failing}`), words: 'SLC_UPSTREAM', statuses: [502] },
    { name: 'console-login', open: at(console), words: 'Admin key' },
    { name: 'console', open: signedIn, words: 'Uploads' },
    { name: 'site', open: at(site), words: '4 MB' },
    { name: 'site-404', open: at(`${site}/missing`), words: 'Not here', statuses: [404] },
    {
      name: 'verify',
      open: async (page) => {
        await page.goto(`${site}/verify.html`)
        await page.waitForSelector('body[data-done]')
      },
      statuses: [404, 502, 503],
    },
    { name: 'upload-service', open: at(upload), words: 'signed data items' },
    { name: 'upload', open: at(`${upload}/upload`), words: 'Choose files' },
    { name: 'upload-docs', open: at(`${upload}/api-docs`), words: '/tx' },
    { name: 'upload-404', open: at(`${upload}/nowhere`), words: 'SLC_', statuses: [404] },
    { name: 'payment-service', open: at(payment), words: 'credits' },
    { name: 'payment-docs', open: at(`${payment}/api-docs`), words: '/v1/rates' },
    { name: 'payment-404', open: at(`${payment}/v1/nowhere`), words: 'SLC_', statuses: [404] },
    { name: 'checkout', open: async (page) => page.goto(await checkout(wallet())), words: 'Pay 10.00 USD' },
    {
      name: 'checkout-declined',
      open: async (page) => {
        await page.goto(await checkout(wallet()))
        await page.fill('input[name=card]', '4000 0000 0000 0002')
        await Promise.all([page.waitForNavigation(), page.click('button')])
      },
      words: 'declined',
      statuses: [402],
    },
    {
      name: 'checkout-paid',
      open: async (page) => {
        await page.goto(await checkout(wallet()))
        await Promise.all([page.waitForNavigation(), page.click('button')])
      },
      words: 'Paid',
    },
    {
      name: 'gift-bought',
      open: async (page) => {
        await page.goto(await checkout('friend%40example.org', 'destinationAddressType=email'))
        await Promise.all([page.waitForNavigation(), page.click('button')])
      },
      words: 'Redeem the gift',
    },
    {
      name: 'gift',
      open: at(`${payment}/gift?id=an-id-of-a-gift&email=friend%40example.org`),
      words: 'Redeem the gift',
    },
  ]
  await lookAt(t, await openBrowser(t), looks)
})

t.test('the page that sells', options, async (t) => {
  const { urls } = await run(t, t.testdir(), {
    SERVICES: 'gateway',
    ENABLE_RATE_LIMITER: 'true',
    ENABLE_X_402_USDC_DATA_EGRESS: 'true',
    X_402_USDC_NETWORK: 'base-sepolia',
    X_402_USDC_WALLET_ADDRESS: `0x${'ab'.repeat(20)}`,
    X_402_USDC_FACILITATOR_URL: 'http://127.0.0.1:9',
    X_402_USDC_RPC_URL: 'http://127.0.0.1:9',
  })
  const paywall = {
    name: '402',
    open: at(`${urls.gateway}/gateway/x402/test`),
    words: 'Connect and pay',
    statuses: [402],
  }
  await lookAt(t, await openBrowser(t), [paywall])
})
