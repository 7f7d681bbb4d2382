import { equal, ok } from 'node:assert/strict'
import t from 'tap'
import { generatePrivateKey, privateKeyToAccount } from 'viem/accounts'
import { authorizationDigest, signerOf } from '../../src/admission/authorization.js'
import { redirectTarget } from '../../src/admission/paywall.js'
import { isUnreadable, readPayment } from '../../src/admission/presented.js'
import { usdcOf } from '../../src/admission/usdc.js'
import { payment } from '../admission/shop.js'
import { fc } from '../property.js'
import { mutated, mutatedText } from './mutate.js'

const account = privateKeyToAccount(generatePrivateKey())
const to = `0x${'12'.repeat(20)}`
const headers = [
  Object.values(await payment(account, 1, { to }))[0] ?? '',
  Object.values(await payment(account, 2, { to }))[0] ?? '',
]
const texts = headers.map((header) => Buffer.from(header, 'base64').toString())
const numRuns = 3000

/** Whatever is read is canonical: it means the same to everybody who reads it after us. */
function check(header: string): boolean {
  let unreadable = 0
  for (const version of [1, 2] as const) {
    const read = readPayment(header, version)
    if (isUnreadable(read)) {
      unreadable += 1
      ok(read.unreadable.length > 0 && read.unreadable.length < 100)
      continue
    }
    const { from, to, value, validAfter, validBefore, nonce } = read.authorization
    for (const number of [value, validAfter, validBefore]) equal(BigInt(number).toString(), number)
    for (const address of [from, to]) equal(Buffer.from(address.slice(2), 'hex').length, 20)
    equal(Buffer.from(nonce.slice(2), 'hex').length, 32)
    const signer = signerOf(
      authorizationDigest(usdcOf['base-sepolia'], read.authorization),
      Buffer.from(read.signature.slice(2), 'hex'),
    )
    ok(signer === undefined || /^0x[0-9a-f]{40}$/.test(signer))
  }
  return unreadable === 2
}

t.test('a payment header: any text is read strictly, or refused with a short reason', async (t) => {
  let refused = 0
  const inBase64 = (text: string | Uint8Array): string => Buffer.from(text).toString('base64')
  const inputs = fc.oneof(
    mutatedText(headers),
    mutatedText(texts).map(inBase64),
    mutated(texts.map((text) => Buffer.from(text))).map(inBase64),
    fc.json().map(inBase64),
    fc.string(),
  )
  fc.assert(
    fc.property(inputs, (header) => {
      if (check(header)) refused += 1
    }),
    { numRuns },
  )
  t.ok(refused > 0 && headers.every((header) => !check(header)), `${refused} of ${numRuns} refused`)
})

t.test('a signature that was changed is not the signer’s', async (t) => {
  const text = texts[0] ?? ''
  const read = readPayment(headers[0] ?? '', 1)
  if (isUnreadable(read)) throw new Error(text)
  const digest = authorizationDigest(usdcOf['base-sepolia'], read.authorization)
  const signature = Buffer.from(read.signature.slice(2), 'hex')
  equal(signerOf(digest, signature), account.address.toLowerCase())
  fc.assert(
    fc.property(fc.nat(64), fc.integer({ min: 1, max: 255 }), (at, by) => {
      const changed = Buffer.from(signature)
      changed[at] = (changed[at] ?? 0) ^ by
      const plain =
        at === 64 && [0, 1].includes(changed[64] ?? 9) && (changed[64] ?? 0) + 27 === signature[64]
      ok(plain || signerOf(digest, changed) !== account.address.toLowerCase())
    }),
    { numRuns: 300 },
  )
  t.pass('held')
})

t.test('the way back from the paywall never leaves the host', async (t) => {
  const own = 'gateway.example:3000'
  const good: [string, string][] = [
    ['/a', '/a'],
    ['/a?b=c#d', '/a?b=c#d'],
    [`http://${own}/x`, '/x'],
    [`https://${own}/x?y`, '/x?y'],
    ['/"><script>', '/%22%3E%3Cscript%3E'],
  ]
  for (const [text, wanted] of good) t.equal(redirectTarget(Buffer.from(text), own), wanted)
  const bad = [
    '//evil.example',
    '/\\evil.example',
    'http://evil.example/',
    'https://gateway.example:3000@evil.example/',
  ]
  bad.push(
    'javascript:alert(1)',
    'data:text/html,x',
    '',
    'a',
    '/.//evil.example',
    '/a\r\nX: y',
    'http://',
    '\\\\evil',
  )
  bad.push(`https://user@${own}/`, 'https://evil.example/http://gateway.example:3000/', '/\t/evil.example')
  for (const text of bad) t.equal(redirectTarget(Buffer.from(text), own), undefined, text)
  fc.assert(
    fc.property(mutatedText([...bad, ...good.map(([text]) => text)]), (text) => {
      const target = redirectTarget(Buffer.from(text), own)
      if (target !== undefined) equal(new URL(target, `http://${own}/here`).host, own)
    }),
    { numRuns },
  )
})
