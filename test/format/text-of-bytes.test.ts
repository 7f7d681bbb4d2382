import { base58 } from '@scure/base'
import t from 'tap'
import { decodeBase58, encodeBase58 } from '../../src/format/base58.js'
import {
  decodeBase64,
  decodeBase64url,
  decodePlainly,
  encodeBase64,
  encodeBase64url,
  encodePlainly,
} from '../../src/format/base64url.js'
import { decodeHex, encodeHex } from '../../src/format/hex.js'
import { fc } from '../property.js'

const bytes = fc.uint8Array({ maxLength: 100 })
const hex = (some: Uint8Array | undefined): string | undefined =>
  some === undefined ? undefined : Buffer.from(some).toString('hex')

t.test('base64url is the same with and without what Node has for it', async (t) => {
  fc.assert(
    fc.property(bytes, (some) => {
      const text = Buffer.from(some).toString('base64url')
      return (
        encodeBase64url(some) === text &&
        encodePlainly(some) === text &&
        hex(decodeBase64url(text)) === hex(some)
      )
    }),
  )
  fc.assert(
    fc.property(fc.string({ maxLength: 12, unit: fc.constantFrom(...'AQgw-_+=/b9') }), (text) => {
      return hex(decodePlainly(text)) === hex(decodeBase64url(text))
    }),
  )
  const long = new Uint8Array(100_000).map((_, at) => at * 7)
  t.equal(encodePlainly(long), Buffer.from(long).toString('base64url'))
  t.equal(hex(decodePlainly(encodePlainly(long))), hex(long))
  for (const text of ['QQ==', 'QR', 'Q', 'Q Q', 'QQ\n']) {
    t.equal(decodeBase64url(text), undefined, JSON.stringify(text))
    t.equal(decodePlainly(text), undefined, JSON.stringify(text))
  }
})

t.test('base64 is padded, and read with and without it', async () => {
  fc.assert(
    fc.property(bytes, (some) => {
      const text = Buffer.from(some).toString('base64')
      return (
        encodeBase64(some) === text &&
        hex(decodeBase64(text)) === hex(some) &&
        hex(decodeBase64(text.replace(/=+$/, ''))) === hex(some)
      )
    }),
  )
})

t.test('base58 is that of a library', async (t) => {
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 80 }), fc.nat({ max: 3 }), (some, zeros) => {
      const whole = Uint8Array.from([...new Uint8Array(zeros), ...some])
      const text = base58.encode(whole)
      if (encodeBase58(whole) !== text) return false
      return text.length > 128 || hex(decodeBase58(text)) === hex(whole)
    }),
  )
  t.equal(decodeBase58('0'), undefined, 'a letter that is not in the alphabet')
  t.equal(decodeBase58('1'.repeat(129)), undefined, 'longer than any key')
  t.equal(decodeBase58('1'.repeat(128))?.length, 128)
})

t.test('hexadecimal digits go both ways', async (t) => {
  fc.assert(
    fc.property(
      bytes,
      (some) => encodeHex(some) === hex(some) && hex(decodeHex(encodeHex(some))) === hex(some),
    ),
  )
  t.equal(hex(decodeHex('0xABcd')), 'abcd')
  for (const text of ['a', '0x0', 'zz', '0x0x']) t.equal(decodeHex(text), undefined, text)
})
