/** The colours and the history of the query page: files that browsers load as they are. */
import t from 'tap'
import { fc } from '../property.js'

interface One {
  readonly query: string
  readonly variables: string
}
type Storage = () => {
  getItem(name: string): string | null
  setItem(name: string, value: string): void
  removeItem(name: string): void
}

const file = (name: string): string => new URL(`../../../src/query/page/${name}`, import.meta.url).href
const { pieces } = (await import(file('colour.js'))) as {
  pieces(text: string, language: string): [kind: string, text: string][]
}
const { noteQuery, readHistory, writeHistory } = (await import(file('history.js'))) as {
  noteQuery(storage: Storage, one: One): One[]
  readHistory(storage: Storage): One[]
  writeHistory(storage: Storage, kept: readonly One[]): void
}

t.test('colours', async (t) => {
  const kinds = (text: string, language = 'graphql'): string =>
    pieces(text, language)
      .filter(([kind]) => kind !== '')
      .map(([kind, piece]) => `${kind} ${piece}`)
      .join(', ')
  t.equal(
    kinds('query A($n: Int) { items(first: 3, name: "a{") # note'),
    'word query, field A, variable $n, field Int, field items, field first, number 3, field name, text "a{", note # note',
  )
  t.equal(
    kinds('{"a": "b", "c": -1.5, "d": null}', 'json'),
    'field "a", text "b", field "c", number -1.5, field "d", word null',
  )
  fc.assert(
    fc.property(fc.string(), fc.constantFrom('graphql', 'json'), (text, language) => {
      return (
        pieces(text, language)
          .map(([, piece]) => piece)
          .join('') === text
      )
    }),
  )
})

t.test('the last 20 queries are kept, each once, the newest first', async (t) => {
  const kept = new Map<string, string>()
  const storage: Storage = () => ({
    getItem: (name) => kept.get(name) ?? null,
    setItem: (name, value) => void kept.set(name, value),
    removeItem: (name) => void kept.delete(name),
  })
  t.same(readHistory(storage), [])
  for (let number = 0; number < 25; number += 1)
    noteQuery(storage, { query: `{ a${number} }`, variables: '' })
  noteQuery(storage, { query: '{ a10 }', variables: '' })
  const queries = readHistory(storage).map(({ query }) => query)
  t.equal(queries.length, 20)
  t.same(queries.slice(0, 2), ['{ a10 }', '{ a24 }'])
  t.equal(queries.filter((one) => one === '{ a10 }').length, 1)
  noteQuery(storage, { query: 'x'.repeat(30_000), variables: '' })
  t.equal(readHistory(storage).length, 20, 'one that is too long is not kept')
  writeHistory(storage, [])
  t.equal(kept.size, 0, 'cleared')
  for (const wrong of ['', '{', '{"a":1}', '[1, null, {"query": 1}]']) {
    kept.set('sluice-graphql-history', wrong)
    t.same(readHistory(storage), [], `${wrong} is nobody's history`)
  }
})

t.test('a browser that keeps nothing has a history for the page alone', async (t) => {
  const closed: Storage = () => {
    throw new Error('denied')
  }
  t.same(readHistory(closed), [])
  t.equal(noteQuery(closed, { query: '{ a }', variables: '' }).length, 1)
})
