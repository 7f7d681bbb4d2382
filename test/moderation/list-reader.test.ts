import { Readable } from 'node:stream'
import t from 'tap'
import { type ListLine, readDocument, readLines, readWord } from '../../src/moderation/list-reader.js'
import { readSubject } from '../../src/moderation/subject.js'
import { fc } from '../property.js'

const id = 'mBS8qJpQOXGR9C9yF9q9fdBjEHBwEUHIlY1IRgVtCV0'
const hex = 'ab'.repeat(32)
const hash = Buffer.from(hex, 'hex').toString('base64url')

async function linesOf(text: string): Promise<ListLine[]> {
  const found: ListLine[] = []
  for await (const line of readLines(Readable.from(text.split('\n')) as AsyncIterable<string>))
    found.push(line)
  return found
}

t.test('lists by line, as people publish them', async (t) => {
  const text = `\uFEFF# a list\n\n${id}\n${id}, some words\n  ${hex}  \nhash:${hash} # why\nSome_Name\nname:${id.toLowerCase()}\n`
  t.strictSame(await linesOf(text), [
    { kind: 'id', key: id },
    { kind: 'id', key: id },
    { kind: 'hash', key: hash },
    { kind: 'hash', key: hash },
    { kind: 'name', key: 'some_name' },
    { kind: 'name', key: id.toLowerCase() },
  ])
})

t.test('lines of JSON, and documents of JSON, nested as they like', async (t) => {
  const entry = { kind: 'id', key: id }
  t.strictSame(await linesOf(`[\n"${id}",\n{"id":"${id}","notes":"x"}\n]`), [entry, entry])
  const document = { ids: [id, { id }], more: { hashes: [{ hash }], names: ['a'] } }
  t.strictSame(
    [...readDocument(document)],
    [entry, entry, { kind: 'hash', key: hash }, { kind: 'name', key: 'a' }],
  )
})

t.test('what is not understood is reported, not guessed', async (t) => {
  for (const word of [
    'a b',
    'id:short',
    'hash:xyz',
    'a.b',
    'a/b',
    'x'.repeat(64),
    `${id.slice(0, 42)}B`,
    'x'.repeat(52),
  ]) {
    t.type(readWord(word.split(' ')[1] === undefined ? word : 'id:a b'), 'string', word)
  }
  t.strictSame(
    [...readDocument([5, null, { x: 1 }])].map((line) => typeof line),
    ['string', 'string', 'string'],
  )
})

t.test('any text gives an entry or an error, and an entry is read back as itself', async () => {
  await fc.assert(
    fc.asyncProperty(fc.string({ unit: 'binary', maxLength: 80 }), async (text) => {
      for (const line of await linesOf(text)) {
        if (typeof line === 'string') continue
        const again = readSubject(line.kind, line.key)
        if (JSON.stringify(again) !== JSON.stringify(line)) throw new Error(JSON.stringify([line, again]))
      }
    }),
  )
  fc.assert(
    fc.property(fc.jsonValue(), (json) => {
      for (const line of readDocument(json)) if (typeof line !== 'string' && line.key === '') return false
      return true
    }),
  )
})
