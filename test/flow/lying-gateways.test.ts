/** Gateways of the devnet that lie: asked from Node, and by the demonstration page of its site in Chromium, under its name. */
import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { type Finding, ProvingFetcher } from '../../src/client/fetch/index.js'
import { openBrowser, withoutBrowser } from '../browser.js'
import { type Running, run, seeded } from './running.js'

const looks = [
  { name: 'light', colorScheme: 'light', width: 1200 },
  { name: 'dark', colorScheme: 'dark', width: 1200 },
  { name: 'narrow', colorScheme: 'light', width: 375 },
] as const

let running: Running
async function liarsUrl(): Promise<string> {
  const info = await fetch(`${running.urls.gateway}/gateway/info`)
  const { devnet } = (await info.json()) as { devnet: { liars: string } }
  return devnet.liars
}

async function bytesOf(url: string, headers: Record<string, string> = {}): Promise<Buffer> {
  return Buffer.from(await (await fetch(url, { headers })).arrayBuffer())
}

t.test('gateways that lie', async (t) => {
  running = await run(t, join(t.testdir(), 'data'), { ...seeded, SERVICES: 'gateway' })
  await t.test('four kinds of liars lie, and are caught', async (t) => {
    const { urls, examples } = running
    const [truth, liars] = [urls.gateway ?? '', await liarsUrl()]
    const { image = '', large = '', site = '', page = '' } = examples
    const range = { range: 'bytes=300000-300999' }
    const [right, part] = await Promise.all([
      bytesOf(`${truth}/raw/${image}`),
      bytesOf(`${truth}/raw/${large}`, range),
    ])
    const flips = await bytesOf(`${liars}/flips/raw/${image}`)
    t.equal(flips.length, right.length)
    t.equal(flips.filter((byte, at) => byte !== right[at]).length, 1)
    t.strictSame(await bytesOf(`${liars}/swaps/raw/${image}`), await bytesOf(`${truth}/raw/${page}`))
    const shifts = await fetch(`${liars}/shifts/raw/${large}`, { headers: range })
    t.equal(shifts.status, 206)
    t.match(shifts.headers.get('content-range'), /^bytes 300000-300999\//)
    t.strictSame(Buffer.from(await shifts.arrayBuffer()).subarray(0, -1), part.subarray(1))
    const [resolved, old] = await Promise.all(
      [truth, `${liars}/delays`].map(async (url) => (await fetch(`${url}/gateway/resolver/site`)).json()),
    )
    t.match(resolved, { txId: site })
    t.match(old, { txId: page })
    const cases = [
      { kind: 'flips', reference: image, expected: right },
      { kind: 'swaps', reference: image, expected: right },
      { kind: 'shifts', reference: large, expected: part, range: { start: 300_000, end: 300_999 } },
      { kind: 'delays', reference: 'ar://site/image.png', expected: right },
    ]
    for (const { kind, reference, expected, range } of cases) {
      const liar = `${liars}/${kind}`
      const findings: Finding[] = []
      const fetcher = new ProvingFetcher({
        // Two that agree on a name outvote the one that shows another content; they are one gateway here.
        gatewayUrls: [liar, truth, truth.replace('127.0.0.1', 'localhost')],
        onFinding: (finding) => findings.push(finding),
      })
      const response = await fetcher.fetch(reference, { range })
      t.strictSame(Buffer.from(await response.arrayBuffer()), expected, kind)
      t.ok(
        findings.some(({ gateway, error }) => gateway === liar && error.code === 'untrue'),
        `${kind}: ${findings.map(({ error }) => error.message).join('; ')}`,
      )
      const alone = new ProvingFetcher({ gatewayUrls: [liar] })
      if (kind !== 'delays')
        await t.rejects(
          alone.fetch(reference, { range }).then((answer) => answer.arrayBuffer()),
          { code: 'untrue' },
          `${kind} alone`,
        )
    }
  })

  await t.test('liars answer nothing but what a gateway is asked', async (t) => {
    const liars = await liarsUrl()
    const status = async (path: string, init: RequestInit = {}): Promise<number> => {
      const response = await fetch(liars + path, init)
      await response.body?.cancel()
      return response.status
    }
    const headers = { 'content-type': 'application/json' }
    const question = { method: 'POST', headers, body: '{"query":"{ __typename }"}' }
    t.equal(await status('/honest/gateway/info'), 404)
    t.equal(await status('/flips'), 404)
    t.equal(await status('/flips/graphql', question), 200)
    t.equal(await status('/flips/graphql', { method: 'POST', body: 'a'.repeat(100_000) }), 413)
    t.equal(await status('/flips/raw/x', { method: 'DELETE' }), 405)
    t.equal(await status(`/flips/raw/${running.examples.image}`, { method: 'HEAD' }), 200)
  })

  await t.test(
    'four kinds of lying gateways are caught before the eyes of a reader',
    { skip: withoutBrowser },
    async (t) => {
      const { port } = new URL(running.urls.gateway ?? '')
      const browser = await openBrowser(t)
      for (const { name, colorScheme, width } of looks) {
        const context = await browser.newContext({ colorScheme, viewport: { width, height: 900 } })
        const page = await context.newPage()
        const errors: string[] = []
        page.on('pageerror', (error) => errors.push(String(error)))
        await page.goto(`http://site.localhost:${port}/verify.html`)
        await page.waitForSelector('body[data-done]')
        t.strictSame(errors, [])
        t.equal(
          await page.getAttribute('body', 'data-done'),
          'yes',
          (await page.textContent('#worker')) ?? '',
        )
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
    },
  )
})
