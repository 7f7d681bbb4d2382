/** The two forms of what this program says: a page for browsers, words or JSON for programs; and the code of a failure. */
import { readFileSync } from 'node:fs'
import { get, type OutgoingHttpHeaders } from 'node:http'
import { text } from 'node:stream/consumers'
import t from 'tap'
import { errorCodes } from '../../src/http/error-codes.js'
import { run } from '../flow/running.js'

/** Asks under a host of its own, which `fetch` does not do. */
function textOf(url: string, headers: OutgoingHttpHeaders): Promise<string> {
  return new Promise((resolve, reject) => {
    get(url, { headers }, (answer) => void text(answer).then(resolve, reject)).on('error', reject)
  })
}

const unknown = `${'B'.repeat(42)}A`

t.test('the table for operators names every code', async (t) => {
  const table = readFileSync(new URL('../../../deploy/OPERATING.md', import.meta.url), 'utf8')
  t.same(
    Object.entries(errorCodes).filter(
      ([code, { status }]) => !new RegExp(`\`${code}\` *\\| ${status} `).test(table),
    ),
    [],
  )
  const named = [...table.matchAll(/`(SLC_\w+)`/g)].map(([, code = '']) => code)
  t.same(
    named.filter((code) => !(code in errorCodes)),
    [],
    'and no other',
  )
})

t.test('programs and browsers', async (t) => {
  const publicPayment = 'https://pay.example.com'
  const { urls } = await run(t, t.testdir(), { DEVNET_SEED: 'false', PAYMENT_PUBLIC_URL: publicPayment })
  const { gateway = '', payment = '', upload = '' } = urls
  const program = await fetch(`${gateway}/${unknown}`)
  t.equal(await program.text(), 'Not found', 'programs get the words alone')
  t.equal(program.headers.get('x-error-code'), 'SLC_UNKNOWN')
  t.match(await (await fetch(`${gateway}/`)).json(), { release: String }, 'and JSON at the root')
  t.equal((await fetch(`${gateway}/favicon.ico`)).headers.get('content-type'), 'image/svg+xml')
  const browser = { headers: { accept: 'text/html,*/*' } }
  const page = await fetch(`${gateway}/${unknown}`, browser)
  t.equal(page.status, 404)
  t.match(page.headers.get('content-security-policy'), /default-src 'none'.*form-action 'self'/)
  t.match(await page.text(), /<p class="status">404<\/p><h1>Not found/)
  const locked = await (await fetch(`${gateway}/gateway/admin/overview`, browser)).text()
  t.match(locked, '<code>Authorization: Bearer {key}</code>', 'what is to be typed is shown as code')
  t.notMatch(locked, '`')
  t.match(await (await fetch(payment)).json(), { addresses: {} }, 'the payment service says it in JSON')
  for (const service of [upload, payment]) {
    t.equal(await (await fetch(`${service}/nowhere`)).text(), 'Not found')
    const lost = await fetch(`${service}/nowhere`, browser)
    const id = lost.headers.get('x-request-id') ?? 'none'
    const text = await lost.text()
    t.match(text, `<code class="whole">${id}</code>`, 'the page has the id of the request')
    t.match(text, '<a href="/">Go to the first page</a>')
    t.notMatch(text, '<form', 'nothing can be searched there')
    t.equal(lost.headers.get('cache-control'), 'no-store')
  }
  const landing = await (await fetch(gateway, browser)).text()
  for (const part of [
    `href="${upload}/upload"`,
    `href="${payment}/credits"`,
    'href="/graphql"',
    'href="/api-docs"',
  ])
    t.match(landing, part, 'the first page leads on')
  const elsewhere = await textOf(gateway, { ...browser.headers, host: 'ar.example.com' })
  t.match(
    elsewhere,
    `href="${publicPayment}/credits"`,
    'visitors from elsewhere are led to the public address',
  )
  t.notMatch(elsewhere, payment)
  const uploading = await fetch(`${upload}/upload`, browser)
  t.match(uploading.headers.get('content-security-policy'), `connect-src 'self' ${publicPayment};`)
  t.match(landing, '<dt>Uploads</dt><dd>an upload service runs in this program')
  t.match(landing, '<code>{name}.localhost</code>')
  const docs = await (await fetch(`${gateway}/api-docs`, browser)).text()
  const ids = [...docs.matchAll(/<li id="([^"]+)"/g)].map(([, one = '']) => one)
  t.equal(new Set(ids).size, ids.length, 'each path has a link of its own')
  t.match(docs, '<li id="get-chunk-offset"', 'which says method and path')
  const front = await fetch(payment, browser)
  t.match(front.headers.get('content-type'), 'text/html')
  t.equal(front.headers.get('vary'), 'Accept')
})
