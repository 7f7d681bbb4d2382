import t from 'tap'
import { JsonText, LateJson } from '../../src/query/json-text.js'
import { fc } from '../property.js'

/** What is done with a text: something is appended, waited for, or dropped again after a mark. */
type Step = { readonly append: string } | { readonly wait: string } | { readonly drop: readonly Step[] }

const arriving = (arrived: Promise<unknown>): Promise<unknown> => arrived
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
      out.wait(new LateJson(Promise.resolve(one.wait)))
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

/** Characters that are counted at least for what is waited for. */
const lateChars = 690

/** Characters that were appended or waited for, without those that were dropped, and the most that may be counted. */
function lengthOf(steps: readonly Step[]): { kept: number; all: number } {
  const sum = { kept: 0, all: 0 }
  for (const one of steps) {
    if ('append' in one) sum.kept += one.append.length
    if ('append' in one) sum.all += one.append.length
    if ('wait' in one) sum.kept += one.wait.length
    if ('wait' in one) sum.all += lateChars + one.wait.length
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
      if ((await out.whole(arriving)) !== expected) throw new Error('the text differs')
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
  t.equal(out.whole(arriving), '"0123456789",'.repeat(10_000))
})

t.test(
  'what is waited for is counted where its place is written, and the rest of it when it arrives',
  async (t) => {
    let counted = 0
    const text = (): JsonText =>
      new JsonText((chars) => {
        counted += chars
        if (counted > 10_000) throw new RangeError('too large')
      })
    const short = new LateJson(Promise.resolve('"short"'))
    const places = text()
    t.throws(() => {
      for (let at = 0; at < 20; at += 1) places.wait(short)
    }, RangeError)
    counted = 0
    const out = text()
    out.wait(new LateJson(Promise.resolve('x'.repeat(20_000))))
    t.ok(counted < 1000)
    await t.rejects(Promise.resolve(out.whole(arriving)), RangeError)
    counted = 0
    const late = text()
    late.text += '['
    late.wait(new LateJson(new Promise(() => undefined)))
    late.text += ']'
    t.equal(await late.whole(async () => undefined), '[""]', 'what nobody waits for any longer is empty')
  },
)
