import { isIP } from 'node:net'
import t from 'tap'
import { limits } from '../../config/limits.js'
import { type ClientOptions, Clients } from '../../src/admission/clients.js'
import { formatIp, isInRange, parseIp, parseIpRange } from '../../src/format/ip.js'
import type { Request } from '../../src/http/exchange.js'
import { fc } from '../property.js'

const secret = { low: 1, high: 2 }
const usual: ClientOptions = {
  trustedProxies: limits.trustedProxies.fallback,
  exempt: ['203.0.113.200', '198.51.100.0/24', '2001:db8:7::/48'],
  ipv6PrefixBits: 64,
}

function request(remoteAddress: string, headers: Record<string, string> = {}): Request {
  return {
    method: 'GET',
    path: '/',
    query: '',
    remoteAddress,
    header: (name: string) => headers[name],
    headersUnder: () => [],
    body: () => Promise.reject(new Error('none')),
    stream: () => ({ pause: () => undefined, resume: () => undefined }),
  }
}

function addressOf(
  remote: string,
  headers: Record<string, string> = {},
  options: Partial<ClientOptions> = {},
): string {
  return new Clients({ ...usual, ...options }, secret).of(request(remote, headers)).address
}

const forwarded = (text: string): Record<string, string> => ({ 'x-forwarded-for': text })

t.test('whose bucket it is', async (t) => {
  const rows: [string, string, Record<string, string>, string][] = [
    ['a client that comes straight', '203.0.113.1', {}, '203.0.113.1'],
    ['and lies about it', '203.0.113.1', { ...forwarded('1.1.1.1'), 'x-real-ip': '1.1.1.1' }, '203.0.113.1'],
    ['behind a proxy', '10.0.0.1', forwarded('203.0.113.1'), '203.0.113.1'],
    ['what it wrote itself lies to the left', '127.0.0.1', forwarded('1.1.1.1, 203.0.113.1'), '203.0.113.1'],
    ['behind several', '10.0.0.1', forwarded('1.1.1.1, 203.0.113.1, 192.168.0.9 ,100.64.0.1'), '203.0.113.1'],
    ['nobody but proxies: the farthest', '10.0.0.1', forwarded('192.168.1.5, 10.0.0.2'), '192.168.1.5'],
    ['a port', '::1', forwarded('203.0.113.1:55000'), '203.0.113.1'],
    ['IPv6 with port and brackets', '::1', forwarded('[2001:db8:1:2:3::4]:443'), '2001:db8:1:2::'],
    ['IPv6 in brackets', '::1', forwarded('[2001:db8:1:2:3::4]'), '2001:db8:1:2::'],
    ['plain IPv6', 'fe80::1', forwarded('2001:DB8:1:2:3:4:5:6'), '2001:db8:1:2::'],
    ['IPv4 in IPv6', '::ffff:127.0.0.1', forwarded('::ffff:203.0.113.1'), '203.0.113.1'],
    [
      'the same in hexadecimal',
      '0000:0000:0000:0000:0000:ffff:7f00:0001',
      forwarded('::ffff:cb00:7101'),
      '203.0.113.1',
    ],
    [
      'rubbish next to the proxy: nothing left of it counts',
      '10.0.0.1',
      forwarded('203.0.113.1, unknown'),
      '10.0.0.1',
    ],
    ['rubbish behind a known hop', '10.0.0.1', forwarded('203.0.113.1, unix:, 10.0.0.7'), '10.0.0.7'],
    ['an octal number is none', '10.0.0.1', forwarded('0203.0.113.1'), '10.0.0.1'],
    ['a zone is none', '10.0.0.1', forwarded('fe80::1%eth0'), '10.0.0.1'],
    ['empty places', '10.0.0.1', forwarded(' , 203.0.113.1,, '), '203.0.113.1'],
    ['nothing at all', '10.0.0.1', forwarded(''), '10.0.0.1'],
    ['X-Real-IP from a proxy', '10.0.0.1', { 'x-real-ip': '203.0.113.1' }, '203.0.113.1'],
    [
      'X-Real-IP counts only alone',
      '10.0.0.1',
      { ...forwarded('203.0.113.1'), 'x-real-ip': '1.1.1.1' },
      '203.0.113.1',
    ],
    ['X-Real-IP of rubbish', '10.0.0.1', { 'x-real-ip': 'localhost' }, '10.0.0.1'],
    ['no other header', '10.0.0.1', { forwarded: 'for=1.1.1.1', 'cf-connecting-ip': '1.1.1.1' }, '10.0.0.1'],
    ['a socket without an address', '', {}, 'unknown'],
  ]
  for (const [name, remote, headers, wanted] of rows) t.equal(addressOf(remote, headers), wanted, name)
  t.equal(
    addressOf('127.0.0.1', forwarded('203.0.113.1'), { trustedProxies: [] }),
    '127.0.0.1',
    'none: nobody is believed',
  )
  t.equal(addressOf('2001:db8::9', {}, { ipv6PrefixBits: 128 }), '2001:db8::9')
  t.throws(() => new Clients({ ...usual, trustedProxies: ['10.0.0.0/33'] }, secret), {
    message: /10\.0\.0\.0\/33/,
  })
})

t.test('only the own address makes a client exempt', async (t) => {
  const clients = new Clients(usual, secret)
  const isExempt = (remote: string, text?: string): boolean =>
    clients.of(request(remote, text === undefined ? {} : forwarded(text))).exempt
  t.ok(isExempt('203.0.113.200'))
  t.ok(isExempt('10.0.0.1', '198.51.100.77'))
  t.ok(isExempt('2001:db8:7:1::5'))
  t.notOk(isExempt('203.0.113.1'))
  t.notOk(isExempt('10.0.0.1', '203.0.113.200, 203.0.113.1'), 'not one that it claims to have come through')
  t.notOk(isExempt('203.0.113.1', '203.0.113.200'))
})

t.test('of a thousand entries only a few are read', async (t) => {
  const clients = new Clients(usual, secret)
  const many = new Array<string>(1000).fill('10.0.0.9').join(', ')
  t.equal(clients.of(request('10.0.0.1', forwarded(`${many}, 203.0.113.1`))).address, '203.0.113.1')
  t.equal(
    clients.of(request('10.0.0.1', forwarded(`203.0.113.1, ${many}`))).address,
    '10.0.0.9',
    'too far to be believed',
  )
  t.equal(clients.of(request('10.0.0.1', forwarded(','.repeat(1000)))).address, '10.0.0.1')
  t.equal(clients.of(request('10.0.0.1', forwarded('9'.repeat(16_000)))).address, '10.0.0.1')
  for (let at = 0; at < 50_000; at += 1) clients.of(request(`10.${at >> 16}.${(at >> 8) & 255}.${at & 255}`))
  t.equal(
    clients.of(request('203.0.113.1')).address,
    '203.0.113.1',
    'and many addresses are not all remembered',
  )
})

const numRuns = 3000
const group = fc.integer({ min: 0, max: 0xffff }).map((number) => number.toString(16))
const addressText = fc.oneof(
  fc.ipV4(),
  fc.ipV6(),
  fc.ipV4().map((text) => `::ffff:${text}`),
  fc.array(group, { minLength: 1, maxLength: 8 }).map((groups) => groups.join(':')),
  fc.stringMatching(/^[0-9a-f:.]{0,45}$/),
  fc.stringMatching(/^[0-9.]{0,16}$/),
  fc.string({ maxLength: 50 }),
)

t.test('fuzz: what is an address here is one for the platform too, and the other way round', async (t) => {
  fc.assert(
    fc.property(addressText, (text) => {
      const found = parseIp(text)
      if ((isIP(text) !== 0 && !text.includes('%')) !== (found !== undefined)) throw new Error(text)
      if (found === undefined) return
      const again = parseIp(formatIp(found.words))
      if (again === undefined || again.words.join() !== found.words.join())
        throw new Error(formatIp(found.words))
      // The platform's own canonical form (RFC 5952), which writes mapped IPv4 in hexadecimal.
      if (!found.v4) {
        const canonical = new URL(`http://[${text}]`).hostname.slice(1, -1)
        if (formatIp(found.words) !== canonical) throw new Error(`${formatIp(found.words)} is ${canonical}`)
      }
    }),
    { numRuns },
  )
  t.pass('they agree')
})

t.test('fuzz: ranges that the settings take are ranges, and hold what begins like them', async (t) => {
  const range = fc.oneof(
    fc.tuple(fc.ipV4(), fc.nat(40)).map(([text, bits]) => `${text}/${bits}`),
    fc.tuple(fc.ipV6(), fc.nat(140)).map(([text, bits]) => `${text}/${bits}`),
    addressText,
    fc.tuple(addressText, fc.string({ maxLength: 4 })).map(([text, bits]) => `${text}/${bits}`),
  )
  fc.assert(
    fc.property(range, addressText, (text, address) => {
      if (/[,\s]/.test(text) || text === '') return
      const found = parseIpRange(text)
      const taken = 'value' in limits.trustedProxies.read(text)
      if (taken !== (found !== undefined || text === 'none')) throw new Error(text)
      const inner = parseIp(address)
      if (found === undefined || inner === undefined) return
      const bitsOf = (words: Int32Array): string =>
        [...words].map((word) => (word >>> 0).toString(2).padStart(32, '0')).join('')
      const begins = bitsOf(inner.words).startsWith(bitsOf(found.words).slice(0, found.bits))
      if (isInRange(found, inner.words) !== begins) throw new Error(`${text} ${address}`)
      if (!isInRange(found, found.words)) throw new Error(text)
    }),
    { numRuns },
  )
  t.pass('they agree')
})

t.test('fuzz: any header gives a client, and never one that only the client itself wrote', async (t) => {
  const clients = new Clients(usual, secret)
  const junk = fc.oneof(
    addressText,
    fc.constantFrom('10.0.0.1', '[::1]:80', 'unknown', '', ' '),
    fc.string({ maxLength: 80 }),
  )
  fc.assert(
    fc.property(fc.array(junk, { maxLength: 40 }), (entries) => {
      const client = clients.of(request('10.0.0.1', forwarded([...entries, '203.0.113.1'].join(','))))
      if (client.address !== '203.0.113.1') throw new Error(client.address)
      const other = clients.of(request('10.0.0.1', forwarded(entries.join(','))))
      if (parseIp(other.address) === undefined) throw new Error(other.address)
    }),
    { numRuns },
  )
  t.pass('the nearest hop that is no proxy counts')
})
