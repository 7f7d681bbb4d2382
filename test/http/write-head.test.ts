import { STATUS_CODES } from 'node:http'
import t from 'tap'
import { statusLine } from '../../src/http/write-head.js'

t.test('every registered status has its words', async (t) => {
  for (const status of Object.keys(STATUS_CODES)) {
    t.match(statusLine(Number(status)), new RegExp(`^HTTP/1\\.1 ${status} (?!Unknown)[A-Z]`))
  }
  t.equal(statusLine(411), 'HTTP/1.1 411 Length Required', 'as an upload without its length is answered')
  t.equal(statusLine(413), 'HTTP/1.1 413 Content Too Large', 'in the words of RFC 9110, not the older ones')
  t.equal(statusLine(520), 'HTTP/1.1 520 Unknown', 'what nobody registered is passed on all the same')
})
