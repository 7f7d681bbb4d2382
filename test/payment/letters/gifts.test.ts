/** E-mail addresses of gifts: whoever buys one writes it, and it goes out in the lines of a letter. */
import t from 'tap'
import { isEmail } from '../../../src/payment/letters/gifts.js'

t.test('an e-mail address holds no character that ends or hides a line', (t) => {
  for (const address of ['a@b.example', 'first.last+tag@sub.b.example', 'ü@b.example'])
    t.ok(isEmail(address), address)
  for (let code = 0; code < 0xa0; code += 1) {
    const char = String.fromCharCode(code)
    if (code > 0x20 && code < 0x7f) continue
    for (const address of [`a${char}@b.example`, `a@b${char}.example`, `a@b.example${char}`])
      t.notOk(isEmail(address), `code ${code}`)
  }
  t.notOk(isEmail(`${'a'.repeat(250)}@b.example`))
  t.end()
})
