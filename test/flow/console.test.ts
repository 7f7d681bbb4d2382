/** A running devnet in a real browser: the seeded site, the operator's page; and the orders behind the same key. */
import { randomBytes } from 'node:crypto'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import type { Page } from 'playwright-core'
import t, { type Test } from 'tap'
import { parseId } from '../../src/format/id.js'
import { sandboxLabel } from '../../src/names/sandbox-host.js'
import { openBrowser, withoutBrowser } from '../browser.js'
import { eventually } from '../eventually.js'
import { askAt } from '../gateway/rig.js'
import { someId } from '../source/rig.js'
import { type Running, run, seeded } from './running.js'

const options = { skip: withoutBrowser }
const key = 'a-key-for-the-tests'

/** Everything that the browser complains about. */
function complaints(page: Page): string[] {
  const errors: string[] = []
  page.on('pageerror', (error) => errors.push(error.message))
  page.on('console', (message) => {
    if (message.type() === 'error') errors.push(message.text())
  })
  return errors
}

async function operatorsWork(t: Test, running: Running): Promise<void> {
  const { gateway = '', console = '' } = running.urls
  const { page: id = '', item = '' } = running.examples
  const opened = await openBrowser(t)
  const page = await opened.newPage({ viewport: { width: 390, height: 844 } })
  const errors = complaints(page)
  const answer = await page.goto(console)
  t.match(answer?.headers(), {
    'content-security-policy': /default-src 'none'; script-src 'self'.*frame-ancestors 'none'/,
    'cross-origin-opener-policy': 'same-origin',
    'cache-control': 'no-cache',
  })
  for (const path of ['/gateway/console/', '/']) {
    t.equal((await page.goto(new URL(path, console).href))?.url(), console)
  }
  await page.fill('#key', 'wrong-key')
  await page.keyboard.press('Enter')
  await page.locator('#login-said', { hasText: 'does not take this key' }).waitFor()
  // Refused as it should be: the browser says so too.
  t.ok(errors.splice(0).every((line) => line.includes('401')))

  await page.fill('#key', key)
  await page.keyboard.press('Enter')
  await page.waitForSelector('.tile')
  t.match(await page.textContent('#verdict'), /All is well|worth a look/)
  t.equal(await page.evaluate('document.documentElement.scrollWidth <= innerWidth'), true, 'fits a phone')
  t.match(await page.textContent('#payments'), /Limits\s*off/)
  t.equal(
    await page.evaluate('localStorage.length + document.cookie.length'),
    0,
    'the key is in this tab alone',
  )

  const evil = '<img src=x onerror="document.title=1">'
  await page.fill('#block-what', id)
  await page.fill('#block-source', evil)
  await page.press('#block-source', 'Enter')
  await page.waitForSelector(`button[aria-label="Release id ${id}"]`)
  t.equal((await askAt(gateway, `/${id}`)).status, 451)
  t.ok((await page.textContent('#blocked'))?.includes(evil), 'what others wrote is text')
  t.equal(await page.title(), 'Sluice console')
  await page.fill('#name-what', item)
  await page.press('#name-what', 'Enter')
  await page.waitForSelector('#name-said dd')
  t.match(await page.textContent('#name-said'), /Blocked\s*no.*200/)

  await page.fill('#find-what', id)
  await page.press('#find-what', 'Enter')
  await page.click(`button[aria-label="Release id ${id}"]`)
  await page.click('#sure button[value=no]')
  t.equal((await askAt(gateway, `/${id}`)).status, 451, 'not without being sure')
  await page.click(`button[aria-label="Release id ${id}"]`)
  await page.click('#sure-yes')
  await page.locator('#blocked', { hasText: 'is not blocked' }).waitFor()
  t.equal((await askAt(gateway, `/${id}`)).status, 200)

  await page.reload()
  await page.waitForSelector('.tile')
  await page.waitForSelector('#charts canvas')
  await page.waitForSelector('.chart[aria-label*="changes: "]')
  await page.locator('#changes', { hasText: `PUT unblock-data {"id":"${id}` }).waitFor()
  const missing = await askAt(gateway, `/raw/${someId()}`)
  const requestId = missing.headers['x-request-id'] ?? ''
  await page.fill('#log-find', requestId)
  await eventually('the request that was not answered is found by its id', async () => {
    await page.press('#log-find', 'Enter')
    return (await page.textContent('#log-lines'))?.includes('404 SLC_UNKNOWN') === true
  })
  await page.click('#sign-out')
  t.ok(await page.isVisible('#login'))
  t.equal(await page.evaluate('sessionStorage.length'), 0)
  t.strictSame(errors, [], 'no complaint of the browser')
}

async function orders(t: Test, running: Running, path: string): Promise<void> {
  const { gateway = '' } = running.urls
  const order = async (
    method: string,
    path: string,
    body?: unknown,
  ): Promise<{ status: number; body: unknown }> => {
    const answer = await fetch(`${gateway}/gateway/admin/${path}`, {
      method,
      headers: { authorization: `Bearer ${key}` },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    })
    const text = await answer.text()
    return { status: answer.status, body: text.startsWith('{') ? JSON.parse(text) : text }
  }
  const endMs = 1_700_000_000_000
  t.match(await order('GET', `history?minutes=5&endMs=${endMs}`), {
    status: 200,
    body: { fromMs: endMs - 300_000, stepMs: 60_000, covered: [0, 0, 0, 0, 0] },
  })
  t.match(await order('GET', `history?minutes=5&endMs=${Date.now() * 2}`), {
    body: { covered: { length: 30 } },
  })
  t.match(await order('GET', 'history?endMs=soon'), { status: 400, body: /endMs must be a time/ })
  const base64url = (bytes: number): string => randomBytes(bytes).toString('base64url')
  const text = (word: string): string => Buffer.from(word).toString('base64url')
  const [id, stranger] = [base64url(32), base64url(32)]
  const tags = [{ name: text('App-Name'), value: text('announced') }]
  const header = {
    id,
    owner: base64url(512),
    signature: base64url(512),
    owner_address: base64url(32),
    data_size: 5,
    tags,
  }
  t.match(await order('POST', 'queue-data-item', [header]), {
    status: 200,
    body: { message: 'Data item(s) queued' },
  })
  const query =
    '{ transactions(tags: [{name: "App-Name", values: ["announced"]}]) { edges { node { id bundledIn { id } block { id } } } } }'
  const found = await fetch(`${gateway}/graphql`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ query }),
  })
  t.strictSame(await found.json(), {
    data: { transactions: { edges: [{ node: { id, bundledIn: null, block: null } }] } },
  })
  t.match(await order('POST', 'forget-data-item', [stranger, id, running.examples.item]), {
    status: 200,
    body: { message: 'Data item(s) forgotten' },
  })
  const forgotten = await fetch(`${gateway}/graphql`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ query }),
  })
  t.strictSame(await forgotten.json(), { data: { transactions: { edges: [] } } })
  const { rootTxId } = JSON.parse(
    (await askAt(gateway, `/gateway/offsets/${running.examples.item}`)).body.toString(),
  )
  await eventually('the bundle is opened', async () => {
    const { body } = await order('GET', `bundle-status/${rootTxId}`)
    return (body as { state?: string }).state === 'unbundled'
  })
  t.match(await order('POST', 'queue-bundle', { id: rootTxId }), {
    status: 200,
    body: { message: 'Bundle queued' },
  })
  t.match(await order('POST', 'queue-bundle', { id: stranger }), { status: 200 })
  t.match(await order('GET', `bundle-status/${stranger}`), {
    status: 200,
    body: { state: 'queued', dataItemCount: 0 },
  })
  t.match(await order('GET', `bundle-status/${rootTxId}`), {
    body: { formatId: 1, rootTransactionId: rootTxId, dataItemCount: Number, firstQueuedAt: null },
  })
  t.match(
    await order('GET', `bundle-status/${running.examples.item}`),
    { status: 404, body: 'Bundle not found' },
    'an item that is indexed, and never was a bundle',
  )
  t.match(await order('POST', 'queue-tx', { id: stranger }), { status: 200, body: { message: 'TX queued' } })
  const rubbish: [string, unknown, string][] = [
    ['queue-data-item', {}, 'Must provide array of data item headers'],
    ['queue-data-item', [{ ...header, id: 'x' }], 'Must provide array of data item headers'],
    ['queue-data-item', Array(10_001).fill(1), 'Too many data item headers: 10000 at most'],
    ['forget-data-item', {}, 'Must provide array of ids'],
    ['forget-data-item', ['short'], "Must provide 'id'"],
    ['queue-bundle', {}, "Must provide 'id'"],
    ['queue-bundle', { id: 'short' }, "Must provide 'id'"],
    ['queue-bundle', { id, bypassFilter: 'yes' }, "'bypassFilter' must be a boolean"],
    ['queue-tx', { id: 7 }, "Must provide 'id'"],
    ['export-parquet', undefined, 'Invalid or missing required parameters'],
    [
      'export-parquet',
      { outputDir: 'a', startHeight: 2, endHeight: 1 },
      'Invalid or missing required parameters',
    ],
    [
      'prune-stable-data-items',
      { indexedAtThreshold: 'x' },
      'Invalid indexedAtThreshold - must be a positive integer',
    ],
    [
      'prune-stable-data-items',
      { indexedAtThreshold: 1, startHeight: 0 },
      'Invalid endHeight - must be a positive integer',
    ],
  ]
  for (const [path, body, errors] of rubbish)
    t.strictSame(await order('POST', path, body), { status: 400, body: errors })
  t.strictSame(await order('GET', 'bundle-status/x'), { status: 400, body: 'Must provide a valid bundle id' })
  t.strictSame(await order('GET', `bundle-status/${base64url(32)}`), {
    status: 404,
    body: 'Bundle not found',
  })

  const { page = '' } = running.examples
  const cached = async (): Promise<string | undefined> =>
    (await askAt(gateway, `/${page}`)).headers['x-cache']
  t.equal(await cached(), 'HIT')
  t.match(await order('GET', 'cache'), {
    status: 200,
    body: { blobs: Number, bytes: Number, maxBytes: Number },
  })
  t.match(await order('DELETE', `cache/${page}`), { status: 200, body: { message: 'Content evicted' } })
  t.match(await order('DELETE', `cache/${page}`), { status: 404 })
  t.match(await order('GET', 'debug'), {
    status: 200,
    body: { db: { counts: { rows: Number }, errors: [] } },
  })
  const { db } = (await order('GET', 'debug')).body as {
    db: { counts: Record<string, number>; heights: Record<string, number> }
  }
  const { minStable = 0, maxStable = -1, minNew = 0, maxNew = 0 } = db.heights
  t.equal(db.counts.stableBlocks, maxStable - minStable + 1, 'as many as there are heights')
  t.equal(db.counts.newBlocks, maxNew - minNew + 1)
  t.match(await order('GET', 'overview'), {
    status: 200,
    body: { health: { status: String }, cache: {}, resources: {} },
  })
  await eventually('the gateway is healthy', async () => {
    const { body } = await order('GET', 'overview')
    return (body as { health: { status: string } }).health.status === 'ok'
  })

  t.strictSame(await order('GET', 'export-parquet/status'), { status: 200, body: { status: 'not_started' } })
  t.strictSame(await order('GET', 'export-parquet/status/x'), {
    status: 404,
    body: { error: 'Unknown or expired jobId', code: 'SLC_UNKNOWN' },
  })
  const wanted = { outputDir: 'first', startHeight: 0, endHeight: 1000 }
  t.match(await order('POST', 'export-parquet', { ...wanted, outputDir: '../keys' }), {
    status: 400,
    body: /outputDir must be a folder in/,
  })
  const begun = await order('POST', 'export-parquet', wanted)
  t.match(begun, { status: 200, body: { message: 'Parquet export started', jobId: String } })
  const { jobId } = begun.body as { jobId: string }
  const state = async (): Promise<{ status?: string }> =>
    (await order('GET', `export-parquet/status/${jobId}`)).body as { status?: string }
  await eventually('the order has ended', async () => (await state()).status !== 'running')
  t.match(await state(), {
    status: 'completed',
    outputDir: join(path, 'parquet', 'first'),
    startHeight: 0,
  })
  t.ok(existsSync(join(path, 'parquet', 'first', 'transactions', 'data', 'height=0-999')))
  t.match(await order('DELETE', 'export-parquet'), { status: 200 }, 'too late')
  const old = { indexedAtThreshold: 4_000_000_000, startHeight: 0, endHeight: 1000 }
  t.match(await order('POST', 'prune-stable-data-items', old), {
    status: 200,
    body: { message: 'Stable data items pruned successfully', pruned: Number },
  })
  t.match(await order('GET', `bundle-status/${rootTxId}`), { body: { dataItemCount: 0 } })
}

/** The seeded site by its name, and each id in an origin of its own. */
async function siteByName(t: Test, running: Running): Promise<void> {
  const { site, page: pageId } = running.examples
  const names = (running.log.find(({ msg }) => msg === 'ready')?.names ?? {}) as Record<string, string>
  const { port } = new URL(running.urls.gateway ?? '')
  t.equal(names.site, `http://site.localhost:${port}/`)
  const opened = await openBrowser(t)
  const page = await opened.newPage()
  const failed: string[] = []
  page.on('response', (response) => {
    if (response.status() >= 400 && !response.url().endsWith('favicon.ico')) failed.push(response.url())
  })
  const first = await page.goto(names.site ?? '')
  t.equal(first?.headers()['x-ns-resolved-id'], site)
  t.equal(await page.textContent('h1'), 'It flows.')
  t.equal(await page.evaluate("document.querySelector('img').naturalWidth"), 640, 'its picture, too')
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
}

t.test('a running devnet, in a browser and by orders', async (t) => {
  const path = t.testdir()
  const running = await run(t, path, { ...seeded, ADMIN_API_KEY: key, CHAIN_FORK_DEPTH_MAX: '1' })
  await t.test('it shows its site by name; each id has an origin of its own', options, (t) =>
    siteByName(t, running),
  )
  await t.test('an operator signs in, sees what is, blocks, finds, releases and signs out', options, (t) =>
    operatorsWork(t, running),
  )
  await t.test('items are announced, bundles queued and looked after, content is evicted', (t) =>
    orders(t, running, path),
  )
})
