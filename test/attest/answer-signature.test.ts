import { join } from 'node:path'
import t from 'tap'
import { createSigner, signatureBase } from '../../src/attest/answer-signature.js'
import { coverage } from '../../src/attest/covered.js'
import { loadSigningKey } from '../../src/attest/keys.js'
import type { Line } from '../../src/attest/line.js'
import { verifyAnswer } from '../../src/attest/verify-answer.js'
import { vocabularies } from '../../src/attest/vocabulary.js'
import { isRefusal } from '../../src/format/refusal.js'
import { scratch } from '../scratch.js'
import { type Exchange, verifiedByFirst, verifiedBySecond } from './verifiers.js'

const folder = scratch('attest')
const key = loadSigningKey({ keyFile: join(folder, 'httpsig.pem') })

const words = vocabularies.neutral
const path = '/raw/3Mgj7Hd6Nu6ZAWTvqFc0XpqkpzF1wXqIzDyXpJzXfJ0'
const lines: Line[] = [
  ['Accept-Ranges', 'bytes'],
  ['Content-Type', 'text/plain'],
  ['X-GATEWAY-Data-Id', '3Mgj7Hd6Nu6ZAWTvqFc0XpqkpzF1wXqIzDyXpJzXfJ0'],
  ['X-GATEWAY-Verified', 'true'],
  ['Content-Digest', 'sha-256=:47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=:'],
  ['ETag', '"x"'],
  ['X-Chain-Tag-App', 'one'],
  ['X-Chain-Tag-App', 'two'],
  ['X-Chain-Tag-App', ''],
  ['X-Chain-Tag-Empty', ''],
]

function answered(bindRequest: boolean, seconds = 1_700_000_000): Exchange {
  const signer = createSigner(key, { bindRequest })
  const covered = coverage(words)(lines).lines
  const signed = signer.sign({ status: 200, covered, method: 'GET', path }, seconds)
  const signatureLines = signed.split('\r\n').map((line): Line => {
    const colon = line.indexOf(': ')
    return [line.slice(0, colon), line.slice(colon + 2)]
  })
  return { method: 'GET', url: `http://host${path}`, status: 200, fields: [...lines, ...signatureLines] }
}

/** Whether the verifier of the `sluice verify` command believes an answer. */
function verifiedByOwn({ status, method, url, fields }: Exchange): boolean {
  const header = (wanted: string): string | undefined => {
    const values = fields.filter(([name]) => name.toLowerCase() === wanted).map(([, value]) => value)
    return values.length === 0 ? undefined : values.join(', ')
  }
  return !isRefusal(verifyAnswer({ status, method, path: new URL(url).pathname, header }))
}

t.test('the base has status, covered headers in the order of the answer, then method and path', async (t) => {
  const covered = coverage(words)(lines).lines
  const { base } = signatureBase({ status: 206, covered, method: 'GET', path }, 17, key.keyId, true)
  t.same(base.split('\n'), [
    '"@status": 206',
    '"content-type": text/plain',
    '"x-gateway-data-id": 3Mgj7Hd6Nu6ZAWTvqFc0XpqkpzF1wXqIzDyXpJzXfJ0',
    '"x-gateway-verified": true',
    '"content-digest": sha-256=:47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=:',
    // With the space before the last value, which is empty.
    '"x-chain-tag-app": one, two, ',
    '"x-chain-tag-empty": ',
    '"@method";req: GET',
    `"@path";req: ${path}`,
    '"@signature-params": ("@status" "content-type" "x-gateway-data-id" "x-gateway-verified" "content-digest" ' +
      '"x-chain-tag-app" "x-chain-tag-empty" "@method";req "@path";req);created=17;' +
      `keyid="${key.keyId}";alg="ed25519"`,
  ])
})

for (const bindRequest of [true, false]) {
  t.test(
    `two independent libraries and our own verifier accept the signature (request bound: ${bindRequest})`,
    async (t) => {
      const exchange = answered(bindRequest)
      t.equal(await verifiedByFirst(exchange), true)
      t.equal(await verifiedBySecond(exchange), true)
      t.equal(verifiedByOwn(exchange), true)
    },
  )
}

const changed = (name: string, value: string): Exchange => {
  const exchange = answered(true)
  const fields = exchange.fields.map((line): Line => (line[0] === name ? [name, value] : [line[0], line[1]]))
  return { ...exchange, fields }
}

const mutations: Record<string, Exchange> = {
  'another status': { ...answered(true), status: 206 },
  'another method': { ...answered(true), method: 'HEAD' },
  'another path': { ...answered(true), url: 'http://host/raw/other' },
  'another trust flag': changed('X-GATEWAY-Verified', 'false'),
  'another id': changed('X-GATEWAY-Data-Id', 'AMgj7Hd6Nu6ZAWTvqFc0XpqkpzF1wXqIzDyXpJzXfJ0'),
  'another type': changed('Content-Type', 'text/html'),
  'another digest': changed('Content-Digest', 'sha-256=:AAAAAAj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=:'),
  'another tag': changed('X-Chain-Tag-Empty', 'full'),
  'a header taken away': {
    ...answered(true),
    fields: answered(true).fields.filter(([name]) => name !== 'X-GATEWAY-Verified'),
  },
  'another time': changed(
    'Signature-Input',
    (answered(true).fields.find(([name]) => name === 'Signature-Input')?.[1] ?? '').replace('=1700', '=1701'),
  ),
}
for (const [what, exchange] of Object.entries(mutations)) {
  t.test(`no verifier accepts an answer with ${what}`, async (t) => {
    const refused = await verifiedByFirst(exchange).catch(() => false)
    t.equal(refused, false)
    t.equal(await verifiedBySecond(exchange), false)
    t.equal(verifiedByOwn(exchange), false)
  })
}

t.test('the same words in the same second are signed once, in the next second again', async (t) => {
  const signer = createSigner(key, { bindRequest: true })
  let signed = 0
  const counting = {
    ...key,
    sign(message: Uint8Array) {
      signed += 1
      return key.sign(message)
    },
  }
  const counted = createSigner(counting, { bindRequest: true })
  const statement = { status: 200, covered: [['x-gateway-data-id', 'a'] as const], method: 'GET', path: '/a' }
  const first = counted.sign(statement, 5)
  t.equal(counted.sign({ ...statement }, 5), first)
  t.equal(signed, 1)
  t.not(counted.sign(statement, 6), first)
  t.not(counted.sign({ ...statement, status: 304 }, 6), counted.sign(statement, 6))
  t.equal(signed, 3)
  t.equal(signer.sign(statement, 5), first, 'Ed25519 is deterministic')
})
