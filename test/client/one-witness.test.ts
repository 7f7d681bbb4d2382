/** A gateway that is named in several ways has one vote. */
import t from 'tap'
import { Gateways } from '../../src/client/fetch/gateways.js'
import { ProvingFetcher } from '../../src/client/fetch/index.js'
import { nameResolved } from '../../src/client/fetch/names.js'
import { codeOf } from './rig.js'

const [honest, forged] = ['A'.repeat(43), `${'B'.repeat(42)}A`]

/** Answers of resolvers, by host. */
function fetching(meaning: Readonly<Record<string, string>>): (url: string) => Promise<Response> {
  return async (url) => {
    const txId = meaning[new URL(url).hostname.replace(/\.$/, '')]
    return txId === undefined ? new Response('', { status: 404 }) : Response.json({ txId })
  }
}

const liar = [
  'https://liar.test',
  'https://liar.test/',
  'https://LIAR.test:443',
  'http://liar.test',
  'https://liar.test.:8443',
]

t.test('the same gateway named several ways fills no quorum', async (t) => {
  const fetch = fetching({ 'liar.test': forged })
  const gateways = new Gateways({ gatewayUrls: liar, fetch })
  t.same(gateways.witnesses, ['https://liar.test'])
  t.equal(gateways.urls.length, 4, 'each address is tried for what can be proven')
  t.equal(await codeOf(nameResolved(gateways, 'name', 2)), 'untrue')
  const proving = new ProvingFetcher({ gatewayUrls: liar, nameQuorum: 2, fetch })
  t.equal(await codeOf(proving.fetch('ar://name')), 'untrue')
})

t.test('nor does it outvote others', async (t) => {
  const fetch = fetching({ 'liar.test': forged, 'one.test': honest, 'two.test': honest })
  const gateways = new Gateways({ gatewayUrls: [...liar, 'https://one.test', 'https://two.test'], fetch })
  t.same(await nameResolved(gateways, 'name', 2), { value: honest, by: 2, of: 3 })
})

t.test('gateways on this machine are told apart by their ports', (t) => {
  const { witnesses } = new Gateways({
    gatewayUrls: ['http://127.0.0.1:1', 'http://127.0.0.1:2/', 'http://localhost:1'],
  })
  t.same(witnesses, ['http://127.0.0.1:1', 'http://127.0.0.1:2', 'http://localhost:1'])
  t.end()
})
