/** The two forms of what this program says: a page for browsers, words or JSON for programs; and the code of a failure. */
import { readFileSync } from 'node:fs'
import t from 'tap'
import { errorCodes } from '../../src/http/error-codes.js'
import { run } from './running.js'

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
  const { urls } = await run(t, t.testdir(), { DEVNET_SEED: 'false' })
  const { gateway = '', payment = '' } = urls
  const program = await fetch(`${gateway}/${unknown}`)
  t.equal(await program.text(), 'Not found', 'programs get the words alone')
  t.equal(program.headers.get('x-error-code'), 'SLC_UNKNOWN')
  t.match(await (await fetch(`${gateway}/`)).json(), { release: String }, 'and JSON at the root')
  t.equal((await fetch(`${gateway}/favicon.ico`)).headers.get('content-type'), 'image/svg+xml')
  const browser = { headers: { accept: 'text/html,*/*' } }
  const page = await fetch(`${gateway}/${unknown}`, browser)
  t.equal(page.status, 404)
  t.match(page.headers.get('content-security-policy'), /default-src 'none'.*form-action 'none'/)
  t.match(await page.text(), /<p class="status">404<\/p><h1>Not found/)
  const locked = await (await fetch(`${gateway}/gateway/admin/overview`, browser)).text()
  t.match(locked, '<code>Authorization: Bearer {key}</code>', 'what is to be typed is shown as code')
  t.notMatch(locked, '`')
  t.match(await (await fetch(payment)).json(), { addresses: {} }, 'the payment service says it in JSON')
  const front = await fetch(payment, browser)
  t.match(front.headers.get('content-type'), 'text/html')
  t.equal(front.headers.get('vary'), 'Accept')
})
