import { writeFileSync } from 'node:fs'
import t from 'tap'
import { sluice } from '../flow/running.js'
import { someId } from '../source/rig.js'

t.test('all malformed names are reported at once, and nothing is set', async (t) => {
  const dataPath = `${t.testdir()}/data`
  const environment = { DATA_PATH: dataPath }
  const file = `${dataPath}.json`
  const many = {
    good: someId(),
    'bad name': someId(),
    worse: 'x',
    ttl: { id: someId(), ttlSeconds: -1 },
    5: 7,
    odd: { id: someId(), owner: 'me' },
    none: null,
  }
  writeFileSync(file, JSON.stringify(many))
  const { code, err } = await sluice(['names', 'import', file], environment)
  t.equal(code, 2)
  const expected = [
    "'bad name'",
    'worse: not an id',
    'ttl: ttlSeconds cannot be -1',
    '5: not',
    'odd: owner',
    'none: not',
  ]
  for (const word of expected) t.match(err, word)
  t.equal((await sluice(['names', 'list'], environment)).out, '')
  t.equal((await sluice(['names', 'set', 'a.b', someId()], environment)).code, 2)
  t.equal((await sluice(['names', 'remove', 'nobody'], environment)).code, 3)
})

t.test('an id that starts with a dash is an id; an unknown option is reported in a line', async (t) => {
  const environment = { DATA_PATH: `${t.testdir()}/data` }
  const id = '-8V0K0DltgqPzBDa_FYyOdWnfhSngRj7ORH0lnOeqCA'
  const set = await sluice(['names', 'set', 'docs', id, '--ttl', '60'], environment)
  t.equal(set.code, 0, set.err)
  t.match((await sluice(['names', 'list'], environment)).out, id)
  const wrong = await sluice(['names', 'list', '--colour'], environment)
  t.equal(wrong.code, 2)
  t.equal(wrong.err, "sluice names: Unknown option '--colour'; see sluice names --help\n")
})
