import { equal } from 'node:assert/strict'
import t from 'tap'
import { decodeBase64url, encodeBase64url } from '../../src/format/base64url.js'
import { idBytes, idOfBytes, parseId } from '../../src/format/id.js'
import { tagOf, tagText, tagValue } from '../../src/format/tag.js'
import { toHex } from '../fixture-file.js'
import { fc } from '../property.js'

const alphabet = [...'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_']

t.test('bytes have one spelling in base64url, and no other is read', async (t) => {
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 70 }), (bytes) => {
      equal(toHex(decodeBase64url(encodeBase64url(bytes)) ?? Buffer.from('none')), toHex(bytes))
    }),
  )
  for (const text of ['A', 'AB', 'AAB', 'AA=', 'AA==', 'A+', 'A/A', ' AA', 'AA\n', 'ÄA']) {
    t.equal(decodeBase64url(text), undefined, JSON.stringify(text))
  }
  t.equal(decodeBase64url('')?.length, 0)
})

t.test('an id is 43 characters whose last carries no stray bits', async (t) => {
  const start = 'cG7Hdi_iTQPoEYgQJFqJ8NMpN4KoZ-vH_j7pG4iP7N'
  const good = alphabet.filter((last) => parseId(start + last) !== undefined)
  t.strictSame(good.sort(), [...'AEIMQUYcgkosw048'].sort())
  for (const text of ['', start, `${start}AA`, `${start}A\n`, `${start}=`, `+${start.slice(1)}A`]) {
    t.equal(parseId(text), undefined, JSON.stringify(text))
  }
  fc.assert(
    fc.property(fc.uint8Array({ minLength: 32, maxLength: 32 }), (bytes) => {
      const id = idOfBytes(bytes)
      equal(parseId(id), id)
      equal(toHex(idBytes(id)), toHex(bytes))
    }),
  )
  t.throws(() => idOfBytes(new Uint8Array(31)), RangeError)
})

t.test('tags are found by their exact name, the first one counts', async (t) => {
  const tags = [
    tagOf('Content-Type', 'a'),
    tagOf('content-type', 'b'),
    tagOf('Content-Type', 'c'),
    tagOf('é', '日'),
  ]
  t.equal(tagValue(tags, 'Content-Type'), 'a')
  t.equal(tagValue(tags, 'content-type'), 'b')
  t.equal(tagValue(tags, 'é'), '日')
  t.equal(tagValue(tags, 'Content'), undefined)
  t.strictSame(tagText({ name: Buffer.from([0xff]), value: Buffer.from([]) }), { name: '\ufffd', value: '' })
})
