/** A slash at the end of a path changes nothing, at no service: clients put their addresses together out of parts. */
import t from 'tap'
import { ed25519Signer, signItem } from '../../src/proof/sign.js'
import { run } from './running.js'

const json = { 'content-type': 'application/json' }

t.test('paths with a slash at their end', async (t) => {
  const program = await run(t, t.testdir(), {
    DEVNET_SEED: 'false',
    ENABLE_RATE_LIMITER: 'true',
    INDEX_PUBLISH: 'true',
  })
  const { gateway, upload, payment } = program.urls
  const same = [
    '/gateway/info',
    '/gateway/healthcheck',
    '/gateway/peers',
    '/gateway/indexes',
    '/info',
    '/height',
    '/openapi.json',
    '/gateway/rate-limit/ip/192.0.2.1',
    '/gateway/resolver/nobody',
    '/price/1000',
  ].map((path) => `${gateway}${path}`)
  same.push(...['/info', '/v1/info', '/v1/price/arweave/1000', '/health'].map((path) => `${upload}${path}`))
  same.push(
    ...['/v1/info', '/v1/rates', '/v1/price/bytes/1000', '/v1/currencies'].map((path) => `${payment}${path}`),
  )
  for (const url of same) {
    const [bare, slashed] = [await fetch(url), await fetch(`${url}/`)]
    t.equal(slashed.status, bare.status, url)
    t.equal(slashed.headers.get('content-type'), bare.headers.get('content-type'), url)
    const known = bare.status === 200 || (await slashed.text()) !== 'Not found' || url.includes('/resolver/')
    t.ok(known, `${url} is known`)
  }
  const query = { method: 'POST', headers: json, body: JSON.stringify({ query: '{ __typename }' }) }
  t.same(await (await fetch(`${gateway}/graphql/`, query)).json(), { data: { __typename: 'Query' } })
  const item = signItem(ed25519Signer(Buffer.alloc(32, 6)), {}, Buffer.from('a slash'))
  for (const [at, path] of ['/v1/tx/', '/tx/'].entries()) {
    const answer = await fetch(`${upload}${path}`, { method: 'POST', body: item })
    t.equal(answer.status, at === 0 ? 200 : 202, path)
  }
  t.equal(await program.stop(), 0)
})
