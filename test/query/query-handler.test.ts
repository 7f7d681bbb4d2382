import { serverAudits } from 'graphql-http'
import t from 'tap'
import { openRig } from './rig.js'

t.test('the audit suite of GraphQL over HTTP passes', async (t) => {
  const rig = await openRig([])
  for (const audit of serverAudits({ url: rig.url, fetchFn: fetch })) {
    const result = await audit.fn()
    t.equal(result.status, 'ok', `${audit.name}: ${'reason' in result ? result.reason : ''}`)
  }
  t.same(rig.thrown, [])
  await rig.close()
})

t.test('a query may come by GET, by POST, or several in one list', async (t) => {
  const rig = await openRig([])
  const query = '{ block(id: "nothing") { id } }'
  const got = await fetch(`${rig.url}?query=${encodeURIComponent(query)}`)
  t.equal(got.status, 200)
  t.equal(got.headers.get('x-first'), 'line')
  t.match(got.headers.get('cache-control'), /max-age=30/)
  t.same(await got.json(), { data: { block: null } })
  const posted = await rig.post({ query })
  t.same(await posted.json(), { data: { block: null } })
  const batch = await rig.post([{ query }, { query: '{ nothing }' }, 5])
  t.equal(batch.status, 200)
  const answers = (await batch.json()) as { data?: unknown; errors?: unknown[] }[]
  t.same(answers[0], { data: { block: null } })
  t.equal(answers[1]?.errors?.length, 1)
  t.equal(answers[2]?.errors?.length, 1)
  await rig.close()
})

t.test('a browser gets a page that loads nothing from elsewhere', async (t) => {
  const rig = await openRig([])
  const page = await fetch(rig.url, { headers: { accept: 'text/html,application/xhtml+xml,*/*;q=0.8' } })
  t.match(page.headers.get('content-type'), /^text\/html/)
  t.match(page.headers.get('content-security-policy'), /default-src 'none'/)
  const links = (await page.text()).replaceAll(/<a [^>]*href="\/(?!\/)[^>]*>/g, '')
  t.notMatch(links, /(src|href)=(?!"data:)/, 'links lead to other pages of this host')
  const result = await fetch(`${rig.url}?query={__typename}`, { headers: { accept: 'text/html,*/*' } })
  t.same(await result.json(), { data: { __typename: 'Query' } })
  await rig.close()
})

t.test('what is no query is refused with the status that says why', async (t) => {
  const rig = await openRig([], { limits: { sizeMaxBytes: 2000 } })
  const status = async (answer: Promise<Response>): Promise<number> => (await answer).status
  t.equal(await status(rig.post('{')), 400)
  t.equal(await status(rig.post('null')), 400)
  t.equal(await status(rig.post([])), 400)
  t.equal(await status(rig.post(Array.from({ length: 11 }, () => ({ query: '{ __typename }' })))), 400)
  t.equal(await status(rig.post({ query: 5 })), 400)
  t.equal(await status(rig.post({ query: '{ __typename }', variables: [] })), 400)
  t.equal(await status(rig.post({ query: `{ __typename ${' '.repeat(3000)} }` })), 413)
  t.equal(
    await status(rig.post('query={__typename}', { 'content-type': 'application/x-www-form-urlencoded' })),
    415,
  )
  t.equal(await status(rig.post({ query: '{ __typename }' }, { accept: 'image/png' })), 406)
  t.equal(await status(fetch(rig.url, { method: 'DELETE' })), 405)
  t.equal(await status(fetch(rig.url)), 400)
  const strict = { accept: 'application/graphql-response+json' }
  t.equal(await status(rig.post({ query: '{' }, strict)), 400)
  t.equal(await status(rig.post({ query: '{ nothing }' }, strict)), 400)
  t.equal(await status(rig.post({ query: '{' }, { accept: 'application/json' })), 200)
  t.same(rig.thrown, [])
  await rig.close()
})
