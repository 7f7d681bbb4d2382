import t from 'tap'
import { heightStart } from '../../src/catalog/row-key.js'
import { readColumns } from '../../src/clickhouse/clickhouse-schema.js'
import {
  countSql,
  lookUpWords,
  rowsSql,
  wholeRowsSql,
  wordCountsSql,
} from '../../src/clickhouse/selection-sql.js'
import { columnList, sql, sqlList } from '../../src/clickhouse/sql.js'
import { anySelection } from '../catalog/history.js'
import { fc } from '../property.js'

/** What a statement may be made of: words of this program, numbers, and values in hexadecimal digits. */
const shape = /^(?:'(?:\\x[0-9a-f]{2})*'|[A-Za-z_][A-Za-z_0-9]*|\d+|->|[<>]=?|[ (),.=*])*$/

const anyBytes = fc.oneof(
  fc.uint8Array({ maxLength: 40 }),
  fc.constantFrom("'", "') OR 1 --", '\\', "\\'", '`', '\0', '{x:String}').map((text) => Buffer.from(text)),
)
const anyTag = fc.record({
  name: anyBytes,
  values: fc.array(anyBytes, { minLength: 1, maxLength: 12 }),
  match: fc.constantFrom('is' as const, 'isNot' as const, 'starts' as const),
})

t.test('values of a client are hexadecimal digits in a statement, whatever they are', async () => {
  fc.assert(
    fc.property(anySelection, fc.array(anyTag, { maxLength: 3 }), fc.boolean(), (wanted, tags, backwards) => {
      const selection = { ...wanted, ...(tags.length === 0 ? {} : { tags }) }
      const stretch = { backwards, from: 1, to: 200, after: backwards ? undefined : heightStart(100) }
      const [word] = lookUpWords(selection).filter(({ values }) => values.length > 0)
      const texts = [
        rowsSql(readColumns, selection, word, stretch, 11).text,
        wholeRowsSql(selection, word, stretch, 11).text,
        countSql(selection, undefined, stretch).text,
        ...(word === undefined ? [] : [wordCountsSql([word], stretch, 100).text]),
      ]
      for (const text of texts) if (!shape.test(text)) throw new Error(text)
    }),
  )
})

t.test('nothing but whole numbers, bytes and names of columns comes into a statement', async (t) => {
  t.equal(sql`a = ${Buffer.from("'")} AND b < ${12}`.text, "a = '\\x27' AND b < 12")
  t.equal(sqlList([sql`a`, 3], 'list').text, 'a, 3')
  for (const number of [-1, 1.5, Number.NaN, 2 ** 60]) t.throws(() => sql`${number}`, RangeError)
  for (const name of ['a b', "a'", '', 'A']) t.throws(() => columnList([name]), RangeError)
})
