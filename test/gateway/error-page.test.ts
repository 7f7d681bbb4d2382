/** Failures in two forms: words for programs, a page with the request's id and a way home for browsers. */
import t from 'tap'
import type { HostOptions } from '../../src/gateway/gateway-parts.js'
import { someId } from '../source/rig.js'
import { type Answered, stage } from './rig.js'

const browser = {
  accept: 'text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8',
  'sec-fetch-mode': 'navigate',
  'sec-fetch-dest': 'document',
}
const curl = { accept: '*/*', 'user-agent': 'curl/8.5.0' }
const id = someId()
const hosts: HostOptions = {
  rootHosts: ['gate.test'],
  protocol: 'http',
  ownPort: 3000,
  sandboxBareHosts: false,
  apexNames: [],
  apexMaxSeconds: 1,
  enforceUndernameLimit: true,
}
const names = {
  known: () => 'absent' as const,
  resolve: () => Promise.reject(new Error('all names are known')),
}
const naming = { names, hosts }

const pageOf = ({ body }: Answered): string => body.toString()

t.test('programs get the words alone, browsers a page, caches the same time for both', async (t) => {
  const on = await stage({ parts: { hostNames: naming } })
  t.teardown(() => on.close())
  for (const path of [`/raw/${id}`, '/nowhere', '/raw/not-an-id']) {
    const plain = await on.ask(path, { headers: curl })
    t.same([plain.status, pageOf(plain)], [404, 'Not found'], path)
    t.equal(plain.headers['content-type'], 'text/plain; charset=utf-8')
    const wish = { headers: { ...browser, 'x-request-id': 'asked-by-a-browser' } }
    const shown = await on.ask(path, wish)
    const page = pageOf(shown)
    t.equal(shown.status, 404)
    t.match(page, '<p class="status">404</p><h1>Not found</h1>')
    t.match(page, '<code class="whole">asked-by-a-browser</code>', 'the id to quote')
    t.match(page, /<a href="\/">Go to the first page<\/a>/)
    t.match(page, /<form class="search" action="\/"/)
    t.notMatch(page, /<script/)
    t.match(shown.headers['content-security-policy'], /default-src 'none'.*form-action 'self'/)
    t.equal(shown.headers['cache-control'], plain.headers['cache-control'], 'kept as long, not longer')
    for (const one of [plain, shown]) t.match(one.headers.vary, /\bAccept\b/, 'the forms are kept apart')
    const head = await on.ask(path, { ...wish, method: 'HEAD' })
    t.same(
      [head.status, head.headers['content-length'], head.body.length],
      [404, String(shown.body.length), 0],
      'HEAD has the head of the page',
    )
  }
  const own = pageOf(await on.ask('/nowhere', { headers: { ...browser, 'x-request-id': '<b>' } }))
  t.match(own, /<code class="whole">[\w-]{22}<\/code>/, 'an id of the client that is none is not shown')
})

t.test('from the host of a name the way home leads to the root host', async (t) => {
  const on = await stage({ parts: { hostNames: naming } })
  t.teardown(() => on.close())
  const shown = await on.ask('/', { headers: { ...browser, host: 'nobody.gate.test:3000' } })
  t.equal(shown.status, 404)
  t.match(pageOf(shown), '<header><a href="http://gate.test:3000/">')
  t.match(pageOf(shown), '<a href="http://gate.test:3000/">Go to the first page</a>')
  t.match(shown.headers['content-security-policy'], /form-action http:\/\/gate\.test:3000\//)
  const plain = await on.ask('/', { headers: { ...curl, host: 'nobody.gate.test:3000' } })
  t.equal(pageOf(plain), 'Not found')
})

t.test('no search is offered where content of the operator is the first page', async (t) => {
  const on = await stage({ parts: { hostNames: { names, hosts: { ...hosts, apexId: someId() } } } })
  t.teardown(() => on.close())
  const shown = await on.ask(`/raw/${id}`, { headers: { ...browser, host: 'gate.test' } })
  t.equal(shown.status, 404)
  t.notMatch(pageOf(shown), '<form')
  t.match(shown.headers['content-security-policy'], /form-action 'none'/)
})
