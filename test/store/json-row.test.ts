import t from 'tap'
import { readJsonRow } from '../../src/store/json-row.js'

t.test('a row is read, and one that was overwritten names its database', async (t) => {
  t.same(readJsonRow(Buffer.from('{"a":[1,"\u00e9"]}'), 'uploads/data.mdb: a row'), { a: [1, '\u00e9'] })
  for (const broken of ['{"a":1', '', '{"a"\u0000:1}']) {
    const read = (): unknown => readJsonRow(Buffer.from(broken), 'uploads/data.mdb: a row')
    t.throws(read, /^uploads\/data\.mdb: a row was overwritten on the disk\. See "A database is broken"/)
  }
})
