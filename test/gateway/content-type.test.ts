import { randomBytes } from 'node:crypto'
import t from 'tap'
import { verifiedByFirst, verifiedBySecond } from '../attest/verifiers.js'
import { someId } from '../source/rig.js'
import { stage } from './rig.js'

/** What is stored, and what a gateway of the network says of it (observers compare the whole value). */
const types: readonly (readonly [stored: string, stated: string])[] = [
  ['text/html', 'text/html; charset=utf-8'],
  ['text/plain', 'text/plain; charset=utf-8'],
  ['application/json', 'application/json; charset=utf-8'],
  ['application/javascript', 'application/javascript; charset=utf-8'],
  ['text/css;x=y', 'text/css;x=y; charset=utf-8'],
  ['text/html; charset=ISO-8859-1', 'text/html; charset=ISO-8859-1'],
  ['text/html;Charset = utf-8', 'text/html;Charset = utf-8'],
  ['application/octet-stream', 'application/octet-stream'],
  ['image/svg+xml', 'image/svg+xml'],
  ['application/x.arweave-manifest', 'application/x.arweave-manifest'],
  ['html', 'text/html; charset=utf-8'],
  ['PNG', 'image/png'],
  ['rabbit', 'application/octet-stream'],
]

for (const vocabulary of ['neutral', 'ar-io'] as const) {
  t.test(`content types in the ${vocabulary} vocabulary`, async (t) => {
    const gateway = await stage({ vocabulary })
    t.teardown(() => gateway.close())
    for (const [stored, stated] of types) {
      const bare = stored.includes('/') ? stored : stated.replace('; charset=utf-8', '')
      const expected = vocabulary === 'ar-io' ? stated : bare
      const kept = someId()
      await gateway.keep(kept, randomBytes(2000), { contentType: stored })
      const fetched = someId()
      gateway.has.set(fetched, { body: randomBytes(2000), contentType: stored })
      for (const id of [kept, fetched]) {
        for (const [wish, status] of [
          [{}, 200],
          [{ method: 'HEAD' }, 200],
          [{ headers: { range: 'bytes=1-9' } }, 206],
        ] as const) {
          const answer = await gateway.ask(`/raw/${id}`, wish)
          t.equal(answer.status, status)
          t.equal(
            answer.headers['content-type'],
            expected,
            `${stored} of ${id === kept ? 'the store' : 'a source'}`,
          )
          const { method = 'GET' } = wish as { method?: string }
          const exchange = { method, url: `${gateway.url}/raw/${id}`, status, fields: answer.fields }
          t.ok(
            (await verifiedByFirst(exchange)) && (await verifiedBySecond(exchange)),
            'it is what was signed',
          )
        }
      }
    }
  })
}

t.test('a transaction names itself as its root, an item its own, and other content none', async (t) => {
  const gateway = await stage({ vocabulary: 'ar-io' })
  t.teardown(() => gateway.close())
  const [transaction, unknown] = [someId(), someId()]
  await gateway.keep(transaction, randomBytes(10), { isTransaction: true })
  await gateway.keep(unknown, randomBytes(10))
  t.match((await gateway.ask(`/raw/${transaction}`, { method: 'HEAD' })).headers, {
    'x-ar-io-root-transaction-id': transaction,
    'x-ar-io-root-data-item-offset': '0',
    'x-ar-io-root-data-offset': '0',
  })
  t.equal((await gateway.ask(`/raw/${unknown}`)).headers['x-ar-io-root-transaction-id'], undefined)
})
