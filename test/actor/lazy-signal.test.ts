import t from 'tap'
import { LazySignal, signalOf } from '../../src/actor/lazy-signal.js'

t.test('those who listen hear of the abort once, and those who left do not', (t) => {
  const late = new LazySignal()
  const heard: string[] = []
  const [one, two] = [(): void => void heard.push('one'), (): void => void heard.push('two')]
  late.addEventListener('abort', one)
  late.addEventListener('abort', two)
  late.removeEventListener('abort', one)
  late.removeEventListener('abort', one)
  t.equal(late.aborted, false)
  late.abort()
  late.abort()
  t.same(heard, ['two'])
  t.equal(late.aborted, true)
  t.end()
})

t.test('it becomes a signal of the platform, before and after the abort', (t) => {
  const late = new LazySignal()
  const signal = signalOf(late)
  t.type(signal, AbortSignal)
  t.equal(signalOf(late), signal)
  t.equal(signal.aborted, false)
  late.abort()
  t.equal(signal.aborted, true)
  const over = new LazySignal()
  over.abort()
  t.equal(signalOf(over).aborted, true)
  const own = new AbortController().signal
  t.equal(signalOf(own), own)
  t.end()
})
