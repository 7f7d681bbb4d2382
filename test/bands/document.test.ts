import { generateKeyPairSync, verify } from 'node:crypto'
import { join } from 'node:path'
import t from 'tap'
import { loadSigningKey } from '../../src/attest/keys.js'
import { isExpired, readPublication, signPublication, verifyPublication } from '../../src/bands/document.js'
import { ownDomain, type PublicationDocument, peerDomain } from '../../src/bands/publication.js'
import { canonicalJson } from '../../src/format/canonical-json.js'
import { isRefusal } from '../../src/format/refusal.js'
import { mutated } from '../fuzz/mutate.js'
import { fc } from '../property.js'

const key = loadSigningKey({ keyFile: join(t.testdir(), 'key.pem') })
type Unsigned = Omit<PublicationDocument, 'signature'>

const file = { name: '0a.cdb', size: 4351, sha256: 'ab'.repeat(32) }
const publication: Unsigned = {
  version: 1,
  publisher: key.solanaAddress,
  sequence: 12,
  previousManifestSha256: '9c'.repeat(32),
  issuedAt: '2031-02-03T04:05:06Z',
  expiresAt: '2031-02-04T04:05:06Z',
  indexes: [
    {
      name: 'root-tx-index',
      kind: 'cdb64-root-tx',
      bands: [
        {
          id: 'd-h1200000-tip-11aa22bb-0123456789ab',
          heightRange: [1_200_000, null],
          records: 3,
          files: [file, { ...file, name: 'manifest.json', sha256: 'cd'.repeat(32) }],
          metadata: { supersedes: ['d-h1199000-tip-11aa22bb-ffeeddccbbaa'] },
        },
      ],
    },
  ],
}
const expected = { keyIds: [key.solanaAddress], domains: [ownDomain], sequenceMin: 12 }
const because = (outcome: ReturnType<typeof verifyPublication>): string =>
  isRefusal(outcome) ? `${outcome.refused}: ${outcome.message}` : 'fine'

t.test('canonical JSON is that of RFC 8785', async (t) => {
  const given = JSON.parse(
    '{"numbers":[333333333.33333329,1E30,4.50,2e-3,0.000000000000000000000000001],' +
      '"string":"\\u20ac$\\u000F\\u000aA\'\\u0042\\u0022\\u005c\\\\\\"\\/","literals":[null,true,false]}',
  ) as unknown
  t.equal(
    canonicalJson(given),
    '{"literals":[null,true,false],"numbers":[333333333.3333333,1e+30,4.5,0.002,1e-27],' +
      '"string":"€$\\u000f\\nA\'B\\"\\\\\\\\\\"/"}',
  )
  const order = JSON.parse(
    '{"\\u20ac":1,"\\r":2,"\\ufb33":3,"1":4,"\\ud83d\\ude00":5,"\\u0080":6,"\\u00f6":7}',
  ) as unknown
  t.equal(canonicalJson(order), '{"\\r":2,"1":4,"\u0080":6,"ö":7,"€":1,"😀":5,"\ufb33":3}')
  for (const wrong of [Number.NaN, Number.POSITIVE_INFINITY, '\ud800', { '\udc00': 1 }, 1n, [undefined]]) {
    t.throws(() => canonicalJson(wrong), RangeError)
  }
  let deep: unknown = 1
  for (let level = 0; level < 10_000; level += 1) deep = [deep]
  t.throws(() => canonicalJson(deep), RangeError)
  t.equal(canonicalJson(JSON.parse('{"__proto__":{"a":1}}')), '{"__proto__":{"a":1}}')
})

t.test('a signed document is followed, also by a program that only knows Ed25519', async (t) => {
  const bytes = signPublication(publication, key)
  t.equal(because(verifyPublication(bytes, expected)), 'fine')
  const { signature, ...rest } = JSON.parse(bytes.toString()) as PublicationDocument
  const message = Buffer.from(`gateway-index-publication/v1\n${canonicalJson(rest)}`)
  const spki = Buffer.concat([Buffer.from('302a300506032b6570032100', 'hex'), key.publicKey])
  const publicKey = { key: spki, format: 'der', type: 'spki' } as const
  t.ok(verify(null, message, publicKey, Buffer.from(signature.sig, 'base64')))
  t.equal(bytes.toString(), canonicalJson(JSON.parse(bytes.toString())))
  const read = readPublication(bytes)
  t.ok(!isRefusal(read) && isExpired(read.document, Date.parse('2031-02-05T00:00:00Z')))
  t.ok(!isRefusal(read) && !isExpired(read.document, Date.parse('2031-02-04T00:00:00Z')))
})

t.test(
  'the words of the gateways in use are accepted where the operator wants it, and only there',
  async (t) => {
    const bytes = signPublication(publication, key, peerDomain)
    t.match(because(verifyPublication(bytes, expected)), /^forged/)
    t.equal(because(verifyPublication(bytes, { ...expected, domains: [ownDomain, peerDomain] })), 'fine')
  },
)

t.test('unknown fields are ignored, and signed all the same', async (t) => {
  const more = { ...publication, later: { constructor: 1, toString: 2 } } as Unsigned
  const bytes = signPublication(more, key)
  t.equal(because(verifyPublication(bytes, expected)), 'fine')
  const changed = Buffer.from(bytes.toString().replace('"toString":2', '"toString":3'))
  t.match(because(verifyPublication(changed, expected)), /^forged/)
})

t.test('foreign keys, rollbacks and other publishers are refused', async (t) => {
  const bytes = signPublication(publication, key)
  const { privateKey } = generateKeyPairSync('ed25519')
  const stranger = signPublication(publication, { ...key, privateKey })
  t.match(because(verifyPublication(stranger, expected)), /signature is wrong/)
  t.match(because(verifyPublication(bytes, { ...expected, keyIds: [] })), /another key/)
  t.match(because(verifyPublication(bytes, { ...expected, publisher: '1'.repeat(32) })), /another publisher/)
  t.match(because(verifyPublication(bytes, { ...expected, sequenceMin: 13 })), /below 13/)
  const unsigned = Buffer.from(bytes.toString().replace(/"sig":"[^"]*"/, '"sig":""'))
  t.match(because(verifyPublication(unsigned, expected)), /^forged/)
})

t.test('wrong shapes are refused before anything else is checked', async (t) => {
  const [index] = publication.indexes
  const [band] = index?.bands ?? []
  if (index === undefined || band === undefined) throw new Error('no band')
  const withBand = (change: object): object => ({
    ...publication,
    indexes: [{ ...index, bands: [{ ...band, ...change }] }],
  })
  const withFile = (change: object): object => withBand({ files: [{ ...file, ...change }] })
  const wrong: Record<string, object> = {
    'another version': { ...publication, version: 2 },
    'sequence 0': { ...publication, sequence: 0 },
    'expires before it was issued': { ...publication, expiresAt: '2030-01-01T00:00:00Z' },
    'no time': { ...publication, issuedAt: 'yesterday' },
    'no address': { ...publication, publisher: 'x' },
    'an index twice': { ...publication, indexes: [index, index] },
    'too many indexes': {
      ...publication,
      indexes: Array.from({ length: 65 }, (_, at) => ({ ...index, name: `i${at}` })),
    },
    'a prototype as index': { ...publication, indexes: [{ ...index, name: 'constructor' }] },
    'a band twice': { ...publication, indexes: [{ ...index, bands: [band, band] }] },
    'no files': withBand({ files: [] }),
    'a file twice': withBand({ files: [file, file] }),
    'a path as band': withBand({ id: '../../etc' }),
    'dots as band': withBand({ id: '..' }),
    'a prototype as band': withBand({ id: '__proto__' }),
    'a path as file': withFile({ name: 'a/b' }),
    'dots in a file': withFile({ name: 'a..b' }),
    'an empty name': withFile({ name: '' }),
    'a prototype as file': withFile({ name: 'toString' }),
    'upper-case digest': withFile({ sha256: 'AB'.repeat(32) }),
    'a negative size': withFile({ size: -1 }),
    'half a byte': withFile({ size: 0.5 }),
    'a backslash': withFile({ name: 'a\\b' }),
    'a null byte': withFile({ name: 'a\0b' }),
  }
  for (const [why, document] of Object.entries(wrong)) {
    const bytes = signPublication(document as Unsigned, key)
    t.match(because(verifyPublication(bytes, expected)), /^malformed/, why)
  }
  t.match(because(verifyPublication(Buffer.alloc(5 * 1024 * 1024, 32), expected)), /^too-large/)
  t.match(because(verifyPublication(Buffer.from('['.repeat(1_000_000)), expected)), /^malformed/)
  t.match(because(verifyPublication(Buffer.from([0xff, 0xfe]), expected)), /^malformed/)
})

t.test('whatever comes, it is a document of ours or a refusal', async (t) => {
  const bytes = signPublication(publication, key)
  fc.assert(
    fc.property(mutated([bytes]), (input) => {
      const outcome = verifyPublication(input, expected)
      if (!isRefusal(outcome))
        t.strictSame(
          canonicalJson(outcome.signedMembers),
          canonicalJson(publication),
          'it says what was signed',
        )
    }),
    { numRuns: 3000 },
  )
  t.pass()
})
