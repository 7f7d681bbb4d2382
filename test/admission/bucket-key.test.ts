import t from 'tap'
import { Key } from '../../src/admission/bucket-key.js'

const secret = { low: 1, high: 2 }

t.test('keys are the same as in the last version, whose rows are on disk', async (t) => {
  t.match(Key.ofNames('gateway.example', 'GET', '/raw/x', secret), { one: -118342452, two: 1764951349 })
  t.match(Key.ofWords(Int32Array.of(0, 0, 0xffff, 0x7f000001), secret), {
    four: 0x7f000001,
    hash: 1360951526,
  })
})

t.test('different names have different keys', async (t) => {
  const names = [
    ['a', 'GET', '/b'],
    ['aG', 'ET', '/b'],
    ['a', 'GET/', 'b'],
    ['', 'aGET', '/b'],
    ['a', 'GET', '/b '],
  ] as const
  const keys = names.map(([host, method, path]) => Key.ofNames(host, method, path, secret))
  t.equal(new Set(keys.map(({ one, two }) => `${one} ${two}`)).size, names.length)
  const other = Key.ofNames('a', 'GET', '/b', { low: 1, high: 3 })
  t.not(other.two, keys[0]?.two, 'and another secret puts them elsewhere')
})
