import t from 'tap'
import { bareType, headersOfPayload, isNamed, mediaTypeOf } from '../../src/format/media-type.js'
import { tagOf } from '../../src/format/tag.js'

t.test('a word without a slash is the end of a name', async (t) => {
  const types = {
    png: 'image/png',
    PNG: 'image/png',
    'photo.JPG': 'image/jpeg',
    '.html': 'text/html',
    text: 'text/plain',
    json: 'application/json',
    woff2: 'font/woff2',
    rabbit: 'application/octet-stream',
    '': 'application/octet-stream',
    'png; q=1': 'application/octet-stream',
    constructor: 'application/octet-stream',
    'Image/PNG; a=b': 'Image/PNG; a=b',
    'a/b': 'a/b',
  }
  for (const [stated, type] of Object.entries(types)) t.equal(mediaTypeOf(stated), type, stated)
})

t.test('tags that become header fields count in any letter case, and the first of them', async (t) => {
  const tags = [
    tagOf('Content-Typ', 'no/name'),
    tagOf('content-TYPE', 'text/html'),
    tagOf('Content-Type', 'image/png'),
    tagOf('CONTENT-ENCODING', 'gzip'),
  ]
  t.strictSame(headersOfPayload(tags), { contentType: 'text/html', contentEncoding: 'gzip' })
  t.strictSame(headersOfPayload([tagOf('content-type', 'a\r\nb'), tagOf('Content-Type', 'a/b')]), {})
  t.strictSame(headersOfPayload([tagOf('content-type', 'a'.repeat(256))]), {})
  t.strictSame(headersOfPayload([]), {})
})

t.test('names are compared byte by byte, letters of ASCII alone in any case', async (t) => {
  t.ok(isNamed(Buffer.from('Content-Type'), 'content-type'))
  t.notOk(isNamed(Buffer.from('Content-Type '), 'content-type'))
  t.notOk(isNamed(Buffer.from('Content\x0dType'), 'content-type'))
  t.notOk(isNamed(Buffer.from('\u212A'), 'k'), 'the sign for kelvin is no k')
})

t.test('types are compared without their parameters', async (t) => {
  t.equal(
    bareType(' Application/X.Arweave-Manifest+JSON ; charset=utf-8'),
    'application/x.arweave-manifest+json',
  )
})
