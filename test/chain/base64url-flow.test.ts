import t from 'tap'
import { Base64urlFlow } from '../../src/chain/base64url-flow.js'
import { fc } from '../property.js'

t.test('any bytes come back whatever the cuts', async (t) => {
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 200 }), fc.array(fc.nat(9)), (bytes, cuts) => {
      const text = Buffer.from(bytes).toString('base64url')
      const flow = new Base64urlFlow()
      const pieces: Buffer[] = []
      let at = 0
      for (const cut of [...cuts, text.length]) {
        pieces.push(flow.push(Buffer.from(text.slice(at, at + cut)))!)
        at += cut
      }
      return Buffer.concat([...pieces, flow.end()!]).equals(bytes)
    }),
  )
  t.pass('held')
})

t.test('other characters, a lone last character and stray bits are refused', async (t) => {
  t.equal(new Base64urlFlow().push(Buffer.from('AA+A')), undefined)
  t.equal(new Base64urlFlow().push(Buffer.from('AA==')), undefined)
  for (const end of ['A', 'AB', 'AAB']) {
    const flow = new Base64urlFlow()
    flow.push(Buffer.from(`AAAA${end}`))
    t.equal(flow.end(), undefined, end)
  }
})
