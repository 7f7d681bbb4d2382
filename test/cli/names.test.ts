import { writeFileSync } from 'node:fs'
import t from 'tap'
import { sluice } from '../flow/running.js'
import { someId } from '../source/rig.js'

t.test('names that are wrong are all told at once, and nothing is set', async (t) => {
  const dataPath = `${t.testdir()}/data`
  const environment = { DATA_PATH: dataPath }
  const file = `${dataPath}.json`
  const many = {
    ...{ good: someId(), 'bad name': someId(), worse: 'x', ttl: { id: someId(), ttlSeconds: -1 }, 5: 7 },
    ...{ odd: { id: someId(), owner: 'me' }, none: null },
  }
  writeFileSync(file, JSON.stringify(many))
  const { code, err } = await sluice(['names', 'import', file], environment)
  t.equal(code, 2)
  const told = [
    "'bad name'",
    'worse: not an id',
    'ttl: ttlSeconds cannot be -1',
    '5: not',
    'odd: owner',
    'none: not',
  ]
  for (const word of told) t.match(err, word)
  t.equal((await sluice(['names', 'list'], environment)).out, '')
  t.equal((await sluice(['names', 'set', 'a.b', someId()], environment)).code, 2)
  t.equal((await sluice(['names', 'remove', 'nobody'], environment)).code, 1)
})
