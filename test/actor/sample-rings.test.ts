import t from 'tap'
import { SampleRings } from '../../src/actor/sample-rings.js'

t.test('rare events are counted exactly, over all threads', async (t) => {
  const memory = new SharedArrayBuffer(SampleRings.bytesFor(2))
  const [one, other] = [new SampleRings(memory, 0), new SampleRings(memory, 1)]
  for (let at = 0; at < 10; at += 1) one.note(1000 + at * 100, '/a', 5)
  for (let at = 0; at < 3; at += 1) other.note(1000 + at * 100, at === 0 ? '/b' : '/a', 7)
  t.strictSame(one.top(0, 10), [
    { text: '/a', count: 12, amount: 64, lastMs: 1900 },
    { text: '/b', count: 1, amount: 7, lastMs: 1000 },
  ])
  t.strictSame(other.top(1150, 1), [{ text: '/a', count: 9, amount: 47, lastMs: 1900 }], 'only lately')
})

t.test('frequent events are sampled, and the sum stays about right', async (t) => {
  const seen = new SampleRings(new SharedArrayBuffer(SampleRings.bytesFor(1)), 0)
  // A thousand a second, three of four for one path, in no rhythm with the samples.
  for (let at = 0; at < 15_000; at += 1) seen.note(1000 + at, at % 7 < 5 ? '/much' : '/less', 10)
  const [much, less] = seen.top(0, 5)
  t.ok(much !== undefined && less !== undefined && much.text === '/much')
  const sum = (much?.count ?? 0) + (less?.count ?? 0)
  t.ok(sum > 14_900 && sum <= 15_000, `${sum} of 15,000`)
  t.ok((much?.count ?? 0) > 9000 && (much?.count ?? 0) < 12_500, `${much?.count} of about 10,700`)
})

t.test('the ring overwrites the oldest samples, and long texts are cut', async (t) => {
  const seen = new SampleRings(new SharedArrayBuffer(SampleRings.bytesFor(1)), 0)
  for (let at = 0; at < 3000; at += 1) seen.note(1000 + at * 50, `/${'x'.repeat(500)}`, 1)
  const [all, ...more] = seen.top(0, 5)
  t.strictSame(more, [])
  t.equal(all?.count, 1024)
  t.equal(all?.text.length, 104)
  t.throws(() => new SampleRings(new SharedArrayBuffer(SampleRings.bytesFor(1)), 1), RangeError)
})

t.test('a clock that is set back does not stop the sampling', async (t) => {
  const seen = new SampleRings(new SharedArrayBuffer(SampleRings.bytesFor(1)), 0)
  const nowMs = 1.8e12
  seen.note(nowMs, '/before', 1)
  seen.note(nowMs - 400 * 86_400_000, '/after', 1)
  t.strictSame(
    seen.top(nowMs - 401 * 86_400_000, 5).map(({ text }) => text),
    ['/before', '/after'],
  )
})
