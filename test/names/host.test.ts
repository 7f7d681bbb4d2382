import t from 'tap'
import { idOfBytes } from '../../src/format/id.js'
import { type HostPlace, Hosts } from '../../src/names/host.js'
import { parseName } from '../../src/names/name.js'
import { sandboxLabel, sandboxUrl } from '../../src/names/sandbox-host.js'
import { fc } from '../property.js'

const roots = ['gw.example', 'deep.gw.example', 'other.example', 'localhost']
const hosts = new Hosts(roots)

/** `root label name record basename port` of a place, `-` for what is not there. */
function shown({ root, label, name, port }: HostPlace): string {
  const spelled = name === undefined ? '-' : name === 'malformed' ? name : `${name.record}/${name.basename}`
  return [root ?? '-', label ?? '-', spelled, port === '' ? '-' : port].join(' ')
}

const long = 'a'.repeat(52)

t.test('a Host header is read against the root hosts', async (t) => {
  const rows: [host: string, shown: string][] = [
    ['gw.example', 'gw.example - - -'],
    ['GW.Example:8080', 'gw.example - - :8080'],
    ['gw.example.', 'gw.example - - -'],
    ['name.gw.example', 'gw.example name @/name -'],
    ['NAME.gw.example:3000', 'gw.example name @/name :3000'],
    // The longest root that fits counts.
    ['name.deep.gw.example', 'deep.gw.example name @/name -'],
    ['deep.gw.example', 'deep.gw.example - - -'],
    ['name.localhost:3000', 'localhost name @/name :3000'],
    // Only the leftmost label counts.
    ['a.b.gw.example', 'gw.example a @/a -'],
    ['a_b_name.gw.example', 'gw.example a_b_name a_b/name -'],
    ['under_name.gw.example', 'gw.example under_name under/name -'],
    ['www.gw.example', 'gw.example www - -'],
    [`${'a'.repeat(51)}.gw.example`, `gw.example ${'a'.repeat(51)} @/${'a'.repeat(51)} -`],
    [`${long}.gw.example`, `gw.example ${long} - -`],
    [`u_${long}.gw.example`, `gw.example u_${long} u/${long} -`],
    [`${'a'.repeat(64)}.gw.example`, `gw.example ${'a'.repeat(64)} - -`],
    [`u_${'a'.repeat(62)}.gw.example`, `gw.example u_${'a'.repeat(62)} malformed -`],
    ['xn--bcher-kva.gw.example', 'gw.example xn--bcher-kva @/xn--bcher-kva -'],
    ['_.gw.example', 'gw.example _ malformed -'],
    ['_name.gw.example', 'gw.example _name malformed -'],
    ['name_.gw.example', 'gw.example name_ malformed -'],
    ['.gw.example', 'gw.example  malformed -'],
    ['..gw.example', 'gw.example  malformed -'],
    ['a%41.gw.example', 'gw.example a%41 malformed -'],
    ['*.gw.example', 'gw.example * malformed -'],
    ['xgw.example', '- - - -'],
    ['gw.example.evil.example', '- - - -'],
    ['example', '- - - -'],
    ['', '- - - -'],
    [':80', '- - - :80'],
    ['gw.example:', 'gw.example - - -'],
    ['gw.example:80:90', '- - - :90'],
    ['gw.example:123456', 'gw.example - - -'],
    ['127.0.0.1:3000', '- - - :3000'],
    ['[::1]:3000', '- - - :3000'],
    ['[::1]', '- - - -'],
  ]
  for (const [host, wanted] of rows) t.equal(shown(hosts.place(host)), wanted, JSON.stringify(host))
})

t.test('any Host header at all is read, the same way each time, whatever was read before', async (t) => {
  const text = fc.oneof(
    fc.string({ maxLength: 300 }),
    fc.string({ maxLength: 70 }).map((label) => `${label}.gw.example`),
    fc
      .array(fc.constantFrom('.', '_', '-', ':', 'a', 'gw.example', '[', ']', '443'), { maxLength: 12 })
      .map((parts) => parts.join('')),
  )
  fc.assert(
    fc.property(text, (host) => {
      const place = hosts.place(host)
      t.strictSame(new Hosts(roots).place(host), place)
      const { root, label, name, port } = place
      if (root !== undefined) {
        const bare = host
          .toLowerCase()
          .slice(0, host.length - port.length)
          .replace(/:$/, '')
        if (!bare.includes(':')) t.ok(bare.replace(/\.$/, '').endsWith(root))
      }
      if (label !== undefined) t.notMatch(label, /[.A-Z]/, 'one label, lower case')
      if (name !== undefined && name !== 'malformed') {
        t.equal(name.full, label)
        t.equal(name.record === '@' ? name.basename : `${name.record}_${name.basename}`, name.full)
        t.notMatch(name.basename, '_')
      }
    }),
    { numRuns: 2000 },
  )
})

t.test('memory for hosts is bounded, and dropped hosts are parsed again', async (t) => {
  const small = new Hosts(['gw.example'])
  for (let at = 0; at < 5000; at += 1) small.place(`n${at}.gw.example`)
  t.equal(shown(small.place('n0.gw.example')), 'gw.example n0 @/n0 -')
  t.equal(small.place('n0.gw.example'), small.place('n0.gw.example'), 'read once')
  const long = `${'a.'.repeat(4000)}gw.example`
  t.equal(shown(small.place(long)), shown(small.place('a.gw.example')))
  t.not(small.place(long), small.place(long), 'what no host can be called is not kept')
})

t.test('names are spelled in lower-case letters, digits, hyphens and underscores', async (t) => {
  t.same(parseName('Docs_Site'), { full: 'docs_site', basename: 'site', record: 'docs' })
  for (const bad of ['', 'a b', 'a.b', 'ä', '_', 'a_', '_a', 'a\n', 'a'.repeat(64), '../x', '\u0000']) {
    t.equal(parseName(bad), undefined, JSON.stringify(bad))
  }
})

t.test('a sandbox label is the base32 of the id, and another id has another', async (t) => {
  t.equal(sandboxLabel(idOfBytes(new Uint8Array(32))), 'a'.repeat(52))
  t.equal(sandboxLabel(idOfBytes(new Uint8Array(32).fill(255))), `${'7'.repeat(51)}q`)
  // RFC 4648 section 10: "foobar" begins MZXW6YTBOI.
  t.match(sandboxLabel(idOfBytes(Buffer.from('foobar'.padEnd(32, '\0')))), /^mzxw6ytboi/)
  const bytes = fc.uint8Array({ minLength: 32, maxLength: 32 })
  fc.assert(
    fc.property(bytes, (id) => {
      const label = sandboxLabel(idOfBytes(id))
      t.match(label, /^[a-z2-7]{52}$/)
      let bits = 0n
      for (const letter of label)
        bits = (bits << 5n) | BigInt('abcdefghijklmnopqrstuvwxyz234567'.indexOf(letter))
      t.equal((bits >> 4n).toString(16).padStart(64, '0'), Buffer.from(id).toString('hex'))
    }),
    { numRuns: 300 },
  )
})

t.test(
  'a redirect keeps path and query, and the port where somebody speaks the protocol there',
  async (t) => {
    const id = idOfBytes(new Uint8Array(32))
    const host = `${'a'.repeat(52)}.gw.example`
    const base = {
      protocol: 'https',
      id,
      root: 'gw.example',
      port: '',
      ownPort: 3000,
      path: `/${id}/a//b`,
      query: 'q=1',
    }
    const rows: [Partial<typeof base>, string][] = [
      [{}, `https://${host}/${id}/a/b?q=1`],
      [{ path: `/${id}`, query: '' }, `https://${host}/${id}?`],
      [{ path: `/${id}//a//b` }, `https://${host}/${id}/a//b?q=1`],
      [{ port: ':8443' }, `https://${host}:8443/${id}/a/b?q=1`],
      [{ port: ':443' }, `https://${host}/${id}/a/b?q=1`],
      [{ port: ':3000' }, `https://${host}/${id}/a/b?q=1`],
      [{ port: ':3000', protocol: 'http' }, `http://${host}:3000/${id}/a/b?q=1`],
      [{ port: ':80', protocol: 'http' }, `http://${host}/${id}/a/b?q=1`],
    ]
    for (const [change, wanted] of rows) t.equal(sandboxUrl({ ...base, ...change }), wanted)
  },
)
