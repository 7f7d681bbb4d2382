/** The page at `/` for visitors of this machine and of others, as the operator has set it up. */
import t from 'tap'
import type { InfoParts } from '../../src/routes/about-gateway.js'
import { landingPage } from '../../src/routes/landing-page.js'
import { metricsParts } from './shown-metrics.js'

const plain: InfoParts = { ...metricsParts(), network: 'mainnet' }
const beside = { rootHosts: ['gate.test'], resolvers: ['file', 'gateway'] }
const page = (more: Partial<InfoParts>, host: string): string =>
  landingPage({ ...plain, ...more }, { header: (name) => (name === 'host' ? host : undefined) }).html

t.test('services of this program are linked for visitors of this machine alone', async (t) => {
  const parts = { beside: { ...beside, upload: 'http://127.0.0.1:3001', payment: 'http://127.0.0.1:3002' } }
  for (const host of ['localhost:3000', '127.0.0.1:3000', '[::1]:3000', 'LOCALHOST']) {
    const html = page(parts, host)
    t.match(html, 'href="http://127.0.0.1:3001/upload"', host)
    t.match(html, 'href="http://127.0.0.1:3002/credits"', host)
  }
  for (const host of ['gate.test', '127.0.0.1.gate.test', 'localhost.gate.test', '"><script>', ''])
    t.notMatch(page(parts, host), '127.0.0.1:300', `${host} is elsewhere`)
  const named = page({ ...parts, bundlers: ['https://up.gate.test'] }, 'gate.test')
  t.match(named, 'href="https://up.gate.test"', 'others get what the operator names')
})

t.test('the console is linked where it can be reached, else the page says how to reach it', async (t) => {
  const at = (address: string, port: number, host: string): string =>
    page({ beside: { ...beside, console: { address, port } } }, host)
  t.match(at('127.0.0.1', 3010, 'localhost:3000'), 'href="http://127.0.0.1:3010/gateway/console"')
  t.match(at('::1', 3010, 'localhost:3000'), 'href="http://[::1]:3010/gateway/console"')
  t.match(at('0.0.0.0', 3010, 'localhost:3000'), 'href="http://localhost:3010/gateway/console"')
  const elsewhere = at('127.0.0.1', 3010, 'gate.test')
  t.match(elsewhere, '<code>ssh -L 3010:127.0.0.1:3010 gate.test</code>')
  t.notMatch(elsewhere, 'href="http://127.0.0.1')
  t.notMatch(at('10.1.2.3', 3010, 'gate.test'), '10.1.2.3', 'an inner address is not told')
  t.match(at('127.0.0.1', 0, 'localhost:3000'), 'prints the address of the console')
  t.notMatch(page({ beside }, 'localhost'), /console/i, 'nothing where it is turned off')
})

t.test('what is served, and on which terms', async (t) => {
  const free = page({ beside }, 'gate.test')
  t.match(free, '<dt>Limits</dt><dd>clients are not limited')
  t.notMatch(free, '<dt>Price')
  t.match(free, '<code>{name}.gate.test</code>, resolved by file, gateway')
  t.match(page({}, 'gate.test'), 'no root host is set')
  const sold = page(
    {
      beside: {
        ...beside,
        allowance: { bytes: 100 * 2 ** 20, bytesPerSecond: 20 * 2 ** 10 },
        price: { perByte: '0.0000000001', minimum: '0.001', perGiB: '0.107375' },
      },
      sections: { indexes: { manifestUrl: '/gateway/indexes', names: [] } },
    },
    'gate.test',
  )
  t.match(sold, '100 MiB for each client, and 20 KiB more each second')
  t.match(sold, '0.0000000001 USDC a byte')
  t.match(sold, '1 GiB costs 0.107375 USDC')
  t.match(sold, 'href="/gateway/indexes"')
})
