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

/** Characters that were appended, without those that were dropped, and with them. */
function lengthOf(steps: readonly Step[]): { kept: number; all: number } {
  const sum = { kept: 0, all: 0 }
  for (const one of steps) {
    if ('append' in one) sum.kept += one.append.length
    if ('append' in one) sum.all += one.append.length
    if ('drop' in one) sum.all += lengthOf(one.drop).all
  }
  return sum
}

t.test('a text is what was appended and waited for, without what was dropped', async (t) => {
  await fc.assert(
    fc.asyncProperty(fc.array(step), async (steps) => {
      let counted = 0
      const out = new JsonText((chars) => {
        counted += chars
      })
      const expected = carryOut(out, steps)
      out.count()
      if ((await out.whole()) !== expected) throw new Error('the text differs')
      const appended = lengthOf(steps)
      if (counted < appended.kept || counted > appended.all) throw new Error(`${counted} counted`)
    }),
  )
  t.pass('for every sequence of steps')
})

t.test('a text that nothing is waited for is there at once, and counts its characters', async (t) => {
  let counted = 0
  const out = new JsonText((chars) => {
    counted += chars
  })
  for (let at = 0; at < 10_000; at += 1) {
    out.text += '"0123456789",'
    out.pause()
  }
  out.count()
  t.equal(counted, 130_000)
  t.equal(out.whole(), '"0123456789",'.repeat(10_000))
})
