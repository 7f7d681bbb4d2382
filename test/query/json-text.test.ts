import t from 'tap'
import { JsonText } from '../../src/query/json-text.js'
import { fc } from '../property.js'

/** What is done with a text: something is appended, waited for, or dropped again after a mark. */
type Step = { readonly append: string } | { readonly wait: string } | { readonly drop: readonly Step[] }

const word = fc.oneof(fc.string(), fc.constantFrom('x'.repeat(5000), 'y'.repeat(20_000)))
const { step } = fc.letrec<{ step: Step }>((tie) => ({
  step: fc.oneof(
    { depthSize: 'small' },
    fc.record({ append: word }),
    fc.record({ wait: word }),
    fc.record({ drop: fc.array(tie('step'), { maxLength: 5 }) }),
  ),
}))

function carryOut(out: JsonText, steps: readonly Step[]): string {
  let expected = ''
  for (const one of steps) {
    if ('append' in one) {
      out.text += one.append
      expected += one.append
    } else if ('wait' in one) {
      out.wait(Promise.resolve(one.wait))
      expected += one.wait
    } else {
      const mark = out.mark()
      carryOut(out, one.drop)
      out.goBack(mark)
    }
    out.pause()
  }
  return expected
}

t.test('a text is what was appended and waited for, without what was dropped', async (t) => {
  await fc.assert(
    fc.asyncProperty(fc.array(step), async (steps) => {
      const out = new JsonText()
      const expected = carryOut(out, steps)
      if ((await out.whole()) !== expected) throw new Error('the text differs')
    }),
  )
  t.pass('for every sequence of steps')
})

t.test('a text that nothing is waited for is there at once, and counts its characters', async (t) => {
  const out = new JsonText()
  for (let at = 0; at < 10_000; at += 1) {
    out.text += '"0123456789",'
    out.pause()
  }
  t.equal(out.length, 130_000)
  t.equal(out.whole(), '"0123456789",'.repeat(10_000))
})
