/** The page of the embedded card provider, as people see it: in a browser. */
import { randomBytes } from 'node:crypto'
import type { Page } from 'playwright-core'
import t, { type Test } from 'tap'
import { openBrowser, withoutBrowser } from '../browser.js'
import { eventually } from '../eventually.js'
import { run } from '../flow/running.js'

const options = { skip: withoutBrowser }

const stranger = (): string => randomBytes(32).toString('base64url')

/** Waits for the answer to a form, because its page is another one. */
async function press(page: Page): Promise<number> {
  const [answer] = await Promise.all([page.waitForNavigation(), page.click('button')])
  return answer?.status() ?? 0
}

async function fits(t: Test, page: Page, width: number): Promise<void> {
  const wide = await page.evaluate<number>('document.documentElement.scrollWidth')
  t.ok(wide <= width, `${wide} wide at ${width}`)
}

t.test('a test card is charged once, and a gift is redeemed', options, async (t) => {
  const { urls } = await run(t, t.testdir(), { DEVNET_SEED: 'false', SERVICES: 'gateway,payment' })
  const { payment = '', gateway = '' } = urls
  const shell = await openBrowser(t)
  const opened = async (address: string, query = ''): Promise<{ url: string; winc: string }> => {
    const answer = await fetch(`${payment}/v1/top-up/checkout-session/${address}/usd/1000?${query}`)
    const { paymentSession, topUpQuote } = (await answer.json()) as {
      paymentSession: { url: string }
      topUpQuote: { winstonCreditAmount: string }
    }
    return { url: paymentSession.url, winc: topUpQuote.winstonCreditAmount }
  }
  const wincOf = async (address: string): Promise<string> => {
    const answer = await fetch(`${payment}/v1/balance?address=${address}`)
    return answer.status === 404 ? '0' : ((await answer.json()) as { winc: string }).winc
  }
  for (const colorScheme of ['light', 'dark'] as const) {
    for (const width of [375, 1200]) {
      const context = await shell.newContext({ colorScheme, viewport: { width, height: 800 } })
      const page = await context.newPage()
      const faults: string[] = []
      page.on('pageerror', (error) => faults.push(String(error)))
      const wallet = stranger()
      const { url, winc } = await opened(wallet)
      await page.goto(url)
      t.match(await page.textContent('button'), 'Pay 10.00 USD')
      await fits(t, page, width)
      const folder = process.env.SCREENSHOTS
      if (folder !== undefined)
        await page.screenshot({ path: `${folder}/checkout-${colorScheme}-${width}.png` })
      await page.fill('input[name=card]', '4000 0000 0000 0002')
      t.equal(await press(page), 402)
      t.match(await page.textContent('[role=alert]'), 'declined')
      t.equal(await wincOf(wallet), '0')
      await page.fill('input[name=card]', '4242 4242 4242 4242')
      t.equal(await press(page), 200)
      t.match(await page.textContent('[role=status]'), 'Paid')
      t.equal(await wincOf(wallet), winc)
      // The browser sends the form again.
      await page.reload()
      t.match(await page.textContent('[role=status]'), 'Paid')
      t.equal(await wincOf(wallet), winc, 'once')
      await fits(t, page, width)

      const gift = await opened('friend%40example.org', 'destinationAddressType=email&giftMessage=For%20you')
      await page.goto(gift.url)
      t.equal(await press(page), 200)
      await fits(t, page, width)
      if (folder !== undefined) await page.screenshot({ path: `${folder}/gift-${colorScheme}-${width}.png` })
      const friend = stranger()
      await page.fill('input[name=destinationAddress]', friend)
      t.equal(await press(page), 200)
      t.match(await page.textContent('body'), `Payment receipt redeemed for ${gift.winc} winc!`)
      t.equal(await wincOf(friend), gift.winc)
      await page.reload()
      t.match(await page.textContent('body'), 'Gift has already been redeemed!')
      t.equal(await wincOf(friend), gift.winc, 'once')

      const name = `shown-${colorScheme}-${width}`
      const target = stranger()
      const quoteAnswer = await fetch(
        `${payment}/v1/arns/quote/checkout-session/${friend}/usd/Buy-Name/${name}?type=lease&years=1&processId=${target}`,
      )
      const { purchaseQuote, paymentSession } = (await quoteAnswer.json()) as {
        purchaseQuote: { nonce: string }
        paymentSession: { url: string }
      }
      await page.goto(paymentSession.url)
      t.match(await page.textContent('body'), `the name ${name}`)
      await fits(t, page, width)
      t.equal(await press(page), 200)
      t.match(await page.textContent('[role=status]'), 'Paid')
      const bought = await fetch(`${payment}/v1/arns/purchase/${purchaseQuote.nonce}`)
      t.match(await bought.json(), { status: 'success', name, processId: target })
      // The gateway tells what the name means, whether or not it has the content.
      const host = new URL(gateway)
      host.hostname = `${name}.localhost`
      const resolved = async (): Promise<string | undefined> =>
        (await page.goto(host.href))?.headers()['x-ns-resolved-id']
      t.ok(
        await eventually('the name has its target', async () => (await resolved()) === target),
        `${name} is served`,
      )
      t.same(faults, [])
      await context.close()
    }
  }
})
