/** A running devnet in a real browser that shows pages of strangers: what they can do, and what they cannot. */
import { createHash } from 'node:crypto'
import type { Browser } from 'playwright-core'
import t, { type Test } from 'tap'
import { sandboxLabel } from '../../src/names/sandbox-host.js'
import { openBrowser, withoutBrowser } from '../browser.js'
import { askAt } from '../gateway/rig.js'
import { someId, upstream } from '../source/rig.js'
import { type Running, run, seeded } from './running.js'

const options = { skip: withoutBrowser }

const [hostile, worker, script, site] = [someId(), someId(), someId(), someId()]

/** Tries whatever would harm an operator, and says how it went. */
const attack = `<!doctype html><title>trying</title><p id=p>static</p><script type=module>
import { word } from '/raw/${script}'
const tried = async (act) => { try { return String(await act()) } catch (error) { return 'refused: ' + error.name } }
const ask = new URLSearchParams(location.search).get('console')
const result = {
  ran: word,
  origin: self.origin,
  storage: await tried(() => { localStorage.setItem('a', 'b'); return 'stored' }),
  cookie: await tried(() => { document.cookie = 'a=b'; return 'set' }),
  worker: await tried(async () => {
    await navigator.serviceWorker.register('/raw/${worker}', { scope: '/' })
    return 'registered'
  }),
  console: await tried(async () => (await fetch(ask)).text()),
  admin: await tried(async () => {
    const place = new URL('/gateway/admin/overview', ask)
    return (await fetch(place, { headers: { authorization: 'Bearer x' } })).text()
  }),
  framed: await tried(() => new Promise((resolve) => {
    const frame = document.createElement('iframe')
    frame.onload = () => {
      try { resolve(frame.contentDocument?.title ?? 'nothing to see') } catch (error) { resolve(error.name) }
    }
    frame.src = ask
    document.body.append(frame)
  })),
}
document.title = JSON.stringify(result)
</script>`

const contents = new Map<string, { readonly type: string; readonly body: string }>([
  [hostile, { type: 'text/html', body: attack }],
  [worker, { type: 'text/javascript', body: 'self.onfetch = () => undefined' }],
  [script, { type: 'text/javascript', body: 'export const word = "a script of the page ran"' }],
  [site, { type: 'text/html', body: '<title>before</title><script>document.title = "it runs"</script>' }],
])

async function started(t: Test): Promise<Running> {
  const source = await upstream((request, response) => {
    const found = contents.get((request.url ?? '').replace(/^\/raw\//, ''))
    if (found === undefined) response.writeHead(404).end()
    else {
      const { type, body } = found
      response.writeHead(200, { 'content-type': type, 'content-length': Buffer.byteLength(body) }).end(body)
    }
  })
  t.teardown(() => source.close())
  const settings = {
    ...seeded,
    SERVICES: 'gateway',
    TRUSTED_GATEWAYS_URLS: JSON.stringify({ [source.url]: 1 }),
    ADMIN_API_KEY: 'a-key-for-tests',
  }
  return run(t, t.testdir(), settings)
}

async function attacked(opened: Browser, url: string, console: string): Promise<Record<string, string>> {
  const page = await opened.newPage()
  const answer = await page.goto(`${url}?console=${encodeURIComponent(console)}`)
  if (answer?.status() !== 200) throw new Error(`${url}: ${answer?.status()}`)
  await page.waitForFunction('document.title.startsWith("{")')
  const result = JSON.parse(await page.title()) as Record<string, string>
  await page.close()
  return result
}

async function harmless(t: Test, { urls }: Running, opened: Browser): Promise<void> {
  const { gateway = '', console = '' } = urls
  const digest = createHash('sha256').update(attack).digest('base64url')
  const paths = [`/raw/${hostile}`, `/${hostile}`, `/local/farcaster/frame/${hostile}`]
  for (const path of [...paths, `/gateway/digest/${digest}`, `/tx/${hostile}/data.html`]) {
    const result = await attacked(opened, gateway + path, console)
    t.match(result, { ran: 'a script of the page ran', origin: 'null' }, path)
    t.match(result.storage, /^refused/, `${path}: no storage`)
    t.match(result.cookie, /^refused/, `${path}: no cookies`)
    t.match(result.worker, /^refused/, `${path}: no service worker`)
    t.match(result.console, /^refused/, `${path}: the console cannot be read`)
    t.match(result.admin, /^refused/, `${path}: nor what it asks`)
    t.notMatch(result.framed, /console/i, `${path}: nor framed`)
  }
  const page = await opened.newPage()
  await page.goto(`${gateway}/gateway/info`)
  const workers = `navigator.serviceWorker.getRegistrations().then((all) => all.length)`
  t.equal(await page.evaluate(workers), 0, 'no service worker stands at the origin')
  const registering = `navigator.serviceWorker.register('/raw/${worker}', { scope: '/' }).then(() => 'yes', (e) => e.name)`
  t.not(await page.evaluate(registering), 'yes', 'not even for a page of our own')
  await page.close()
}

async function working(t: Test, { urls }: Running, opened: Browser): Promise<void> {
  const { gateway = '' } = urls
  const { port } = new URL(gateway)
  const page = await opened.newPage()
  await page.goto(`${gateway}/raw/${site}`)
  t.equal(await page.title(), 'it runs')
  const own = `http://${sandboxLabel(site)}.localhost:${port}`
  await page.goto(`${own}/${site}`)
  t.equal(await page.title(), 'it runs')
  t.equal(await page.evaluate('self.origin'), own, 'an origin of its own')
  t.equal(await page.evaluate('localStorage.setItem("a", "b"), localStorage.getItem("a")'), 'b')
  const result = await attacked(
    opened,
    `http://${sandboxLabel(hostile)}.localhost:${port}/${hostile}`,
    urls.console ?? '',
  )
  t.match(result.console, /^refused/)
  t.match(result.admin, /^refused/)
  await page.goto(`http://site.localhost:${port}/`)
  t.equal(await page.textContent('h1'), 'It flows.')
  await page.close()
}

t.test('pages of strangers beside the console', options, async (t) => {
  const running = await started(t)
  const { gateway = '', console = '' } = running.urls
  t.equal(new URL(console).hostname, '127.0.0.1')
  t.not(new URL(console).port, new URL(gateway).port)
  t.equal((await askAt(gateway, '/gateway/console')).status, 404)
  t.equal(
    (await askAt(gateway, '/gateway/admin/overview')).status,
    401,
    'the admin routes stay where they are',
  )
  t.equal((await askAt(console, `/${site}`)).status, 404, 'no content on the port of the console')
  t.equal((await askAt(console, `/raw/${site}`)).status, 404)
  t.notOk('access-control-allow-origin' in (await askAt(console, '/gateway/console')).headers)
  const opened = await openBrowser(t)
  await t.test("they run, and cannot reach the gateway's own pages", (t) => harmless(t, running, opened))
  await t.test('usual pages work, by their own host with all that an origin has', (t) =>
    working(t, running, opened),
  )
})
