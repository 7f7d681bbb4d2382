import t from 'tap'
import { readHints, readProvenance } from '../../src/gateway/hints.js'
import { LocalOnly } from '../../src/gateway/local-only.js'
import type { Request } from '../../src/http/exchange.js'
import { readHops } from '../../src/serving/hops.js'
import { requestId } from '../../src/serving/request-id.js'
import { someId } from '../source/rig.js'

function request(headers: Record<string, string>): Request {
  const body = (): Promise<Uint8Array> => Promise.resolve(new Uint8Array())
  return {
    method: 'GET',
    path: '/',
    query: '',
    remoteAddress: '127.0.0.1',
    body,
    header: (name) => headers[name],
    headersUnder: (start) => Object.entries(headers).filter(([name]) => name.startsWith(start)),
    stream: () => ({ pause: () => undefined, resume: () => undefined }),
  }
}

const [root, parent] = [someId(), someId()]
const rules = {
  headers: ['ao-peer-port'],
  emptyUserAgent: true,
  userAgents: ['crawler'],
  origins: ['greedy.example'],
}
const self = {
  ownHosts: ['own.example', 'other.example'],
  release: 'r1',
  hopsMax: 3,
  localOnly: new LocalOnly(rules),
}

for (const prefix of ['x-gateway-', 'x-ar-io-']) {
  for (const item of ['data-item', 'root-item']) {
    t.test(`hints are read as ${prefix}${item}-*`, async (t) => {
      const headers = {
        [`${prefix}root-transaction-id`]: root,
        [`${prefix}root-path`]: `${root}, ${parent}`,
        [`${prefix}${item}-offset`]: '0',
        [`${prefix}${item}-size`]: ' 1234 ',
      }
      t.same(readHints(request(headers)), {
        rootId: root,
        path: [root, parent],
        itemOffset: 0,
        itemSize: 1234,
      })
    })
  }
}

t.test('a malformed hint is dropped, and the others are used', async (t) => {
  const id = { 'x-gateway-root-transaction-id': root }
  const table: [Record<string, string>, object][] = [
    [{}, {}],
    [id, { rootId: root }],
    [{ 'x-gateway-root-transaction-id': `${'A'.repeat(42)}B` }, {}],
    [{ ...id, 'x-gateway-data-item-offset': '5' }, { rootId: root }],
    [{ ...id, 'x-gateway-data-item-size': '5' }, { rootId: root }],
    [{ 'x-gateway-data-item-offset': '5', 'x-gateway-data-item-size': '5' }, {}],
    [{ 'x-gateway-root-path': `${root},${parent}` }, { rootId: root, path: [root, parent] }],
    [{ 'x-ar-io-root-path': root }, { rootId: root, path: [root] }],
    [
      { 'x-gateway-root-path': root, 'x-gateway-data-item-offset': '5', 'x-gateway-data-item-size': '6' },
      { rootId: root, path: [root], itemOffset: 5, itemSize: 6 },
    ],
    [{ ...id, 'x-gateway-root-path': `${root},short` }, { rootId: root }],
    [{ ...id, 'x-gateway-root-path': Array.from({ length: 17 }, () => root).join(',') }, { rootId: root }],
  ]
  for (const bad of ['-1', '1.5', '1e3', '0x10', '', '99999999999999999', '1 2']) {
    table.push([
      { ...id, 'x-gateway-data-item-offset': bad, 'x-gateway-data-item-size': '5' },
      { rootId: root },
    ])
  }
  for (const [headers, expected] of table)
    t.same(readHints(request(headers)), expected, JSON.stringify(headers))
})

t.test('a request is passed on to other gateways, but not in loops', async (t) => {
  const forward = (headers: Record<string, string>): boolean => readProvenance(request(headers), self).forward
  t.equal(forward({}), true)
  t.equal(forward({ 'x-ar-io-hops': '2' }), true)
  t.equal(forward({ 'x-ar-io-hops': '3' }), false)
  t.equal(forward({ 'x-gateway-hops': '99' }), false)
  t.equal(forward({ 'x-gateway-via': 'a.example, OTHER.example' }), false)
  t.equal(forward({ 'x-gateway-via': 'a.example, notown.example' }), true)
  t.equal(forward({ 'x-gateway-via': Array.from({ length: 80 }, (_, at) => `h${at}`).join(',') }), false)
  t.equal(forward({ 'ao-peer-port': '1' }), false)
  t.equal(forward({ 'user-agent': '' }), false)
  t.equal(forward({ 'user-agent': 'curl' }), true)
  t.equal(forward({ 'user-agent': 'A-CRAWLER/1' }), false)
  t.equal(forward({ 'x-ar-io-origin': 'Greedy.example' }), false)
  t.equal(forward({ 'x-ar-io-origin': 'other-greedy.example' }), true)
  const client = ({ remoteAddress }: Request): boolean => remoteAddress === '127.0.0.1'
  self.localOnly.use({ ...rules, origins: [], client })
  t.equal(forward({}), false, 'rules may change')
  self.localOnly.use({ ...rules, origins: [] })
  t.equal(forward({ 'x-ar-io-origin': 'Greedy.example' }), true)
  self.localOnly.use(rules)
  t.equal(readHops(request({ 'x-gateway-hops': 'many' })), 0)
})

t.test('the origin of a request is kept, or is this gateway', async (t) => {
  t.match(readProvenance(request({}), self), { hops: 0, via: [], origin: 'own.example', originRelease: 'r1' })
  t.same(readProvenance(request({}), { ...self, ownHosts: [] }), { hops: 0, via: [], forward: true })
  const headers = { 'x-ar-io-origin': 'first.example', 'x-ar-io-hops': '1', 'x-ar-io-via': 'First.example' }
  t.same(readProvenance(request(headers), self), {
    hops: 1,
    via: ['first.example'],
    forward: true,
    origin: 'first.example',
  })
})

t.test('only well-formed hosts of a via list are sent on', async (t) => {
  const bad = ['caf\u00e9', '\u20ac', 'a b', 'x'.repeat(300), '<script>', 'a\tb']
  for (const host of bad) {
    const headers = {
      'x-ar-io-via': `${host},b.example:8080,[::1]`,
      'x-ar-io-origin': host,
      'x-ar-io-hops': '1',
    }
    const read = readProvenance(request({ ...headers, 'x-ar-io-origin-node-release': '\u20ac' }), self)
    t.same(read.via, ['b.example:8080', '[::1]'], host)
    t.notOk(read.origin?.includes(host))
  }
  const long = Array.from({ length: 15 }, (_, at) => `${'h'.repeat(250)}${at}`).join(',')
  const { via } = readProvenance(request({ 'x-ar-io-via': long }), self)
  t.ok(via.join(',').length < 8192, 'servers take heads of so many bytes')
})

t.test('request ids are echoed where they are well-formed', async (t) => {
  const echoed = (id: string): boolean => requestId(request({ 'x-request-id': id })) === id.trim()
  for (const id of ['a', 'A.b_c:d-9', ' padded ', 'x'.repeat(128)]) t.equal(echoed(id), true, id)
  for (const id of ['', 'a b', 'x'.repeat(129), 'a/b', 'a\u00e9', '<script>']) t.equal(echoed(id), false, id)
  const made = new Set(Array.from({ length: 1000 }, () => requestId(request({}))))
  t.equal(made.size, 1000)
  for (const id of made) t.match(id, /^[A-Za-z0-9_-]{22}$/)
})
