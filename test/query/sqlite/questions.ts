import { encodeBase64url } from '../../../src/format/base64url.js'
import { idBytes } from '../../../src/format/id.js'
import type { TagArgument, TransactionsArguments } from '../../../src/query/asking.js'
import type { ModelRow } from '../../catalog/index-model.js'
import { below, pick } from '../../property.js'
import { hexOf, quoted, type SqlQuestion } from './database.js'
import { address, chance, people, type Story, skewed, uuid, vocabulary } from './story.js'

/** One question, in GraphQL's arguments and in SQL. */
export interface Question extends SqlQuestion {
  readonly kind: string
  readonly args: TransactionsArguments
}

/** A filter in both languages. */
interface Filter {
  readonly args: TransactionsArguments
  readonly where: string
}

type Source = (story: Story) => Filter

const textOf = (bytes: Uint8Array): string => encodeBase64url(bytes)
const listOf = (all: readonly Uint8Array[]): string => all.map((bytes) => quoted(hexOf(bytes))).join(',')
const hexText = (text: string): string => Buffer.from(text).toString('hex')
/** A list of up to so many, one at least. */
const several = <T>(max: number, make: () => T): T[] => Array.from({ length: 1 + below(max) }, make)

function among(argument: 'ids' | 'owners' | 'recipients' | 'bundledIn' | 'parent', column: string) {
  return (all: readonly Uint8Array[]): Filter => ({
    args: { [argument]: all.map(textOf) },
    where: `${column} IN (${listOf(all)})`,
  })
}
const idsAmong = among('ids', 'id')
const ownersAmong = among('owners', 'owner')
const recipientsAmong = among('recipients', 'recipient')
const bundlesAmong = among('bundledIn', 'parent')
const parentsAmong = among('parent', 'parent')

const anyRow = (story: Story): ModelRow => pick([...story.model.rows.values()])
/** An id that is there, or one that nothing has. */
const anyId = (story: Story): Uint8Array =>
  chance(0.8) ? idBytes(anyRow(story).id) : Buffer.alloc(32, below(256))
const anyPerson = (): Uint8Array => address(chance(0.9) ? skewed(people) : people + 1)

/** A bundle that has items, most often. */
function anyBundle(story: Story): Uint8Array {
  const { input, id } = anyRow(story)
  return idBytes('parentId' in input ? input.parentId : id)
}

const anyName = (): string => pick(Object.keys(vocabulary))
const anyValue = (name: string): string =>
  chance(0.95) ? pick(vocabulary[name] as readonly string[]) : `no such ${below(9)}`

function tagged(tag: TagArgument, holds: string): Filter {
  const not = tag.op === 'NEQ' ? 'NOT ' : ''
  const where = `${not}EXISTS (SELECT 1 FROM tags WHERE tags.id = rows.id AND name = '${hexText(tag.name)}' AND (${holds}))`
  return { args: { tags: [tag] }, where }
}

function valuesAmong(name: string, values: readonly string[], op: 'EQ' | 'NEQ'): Filter {
  return tagged({ name, values, op }, `value IN (${values.map((value) => quoted(hexText(value))).join(',')})`)
}

/** Values of one name; `max` of them at most. */
const anyTag = (max: number, op: 'EQ' | 'NEQ' = 'EQ') => {
  const name = anyName()
  return valuesAmong(
    name,
    several(max, () => anyValue(name)),
    op,
  )
}

function startsWith(name: string, starts: readonly string[]): Filter {
  const holds = starts.map((start) => `substr(value, 1, ${hexText(start).length}) = '${hexText(start)}'`)
  return tagged({ name, values: starts.map((start) => `${start}*`), match: 'WILDCARD' }, holds.join(' OR '))
}

/** Beginnings of values that contain no star. */
const anyStart = (max: number): Filter => {
  const name = anyName()
  const starts = several(max, () => {
    const value = [...anyValue(name)].filter((letter) => letter !== '*')
    return value.slice(0, below(value.length + 1)).join('')
  })
  return startsWith(name, starts)
}

function heights(story: Story, which: 'min' | 'max' | 'both'): Filter {
  const span = story.tip - story.start
  const min = story.start - 2 + below(span + 4)
  const max = which === 'both' ? min + below(span) : story.start - 2 + below(span + 4)
  const lower = which === 'max' ? undefined : min
  const upper = which === 'min' ? undefined : max
  const block = {
    ...(lower === undefined ? {} : { min: lower }),
    ...(upper === undefined ? {} : { max: upper }),
  }
  const parts = [
    'height IS NOT NULL',
    ...(lower === undefined ? [] : [`height >= ${lower}`]),
    ...(upper === undefined ? [] : [`height <= ${upper}`]),
  ]
  return { args: { block }, where: parts.join(' AND ') }
}

function seen({ nowSeconds }: Story): Filter {
  const min = 5000 + below(nowSeconds - 5000)
  const max = min + below(nowSeconds - min + 1)
  return { args: { ingested_at: { min, max } }, where: `seen BETWEEN ${min} AND ${max}` }
}

const transactionsOnly: Filter = { args: { bundledIn: null }, where: 'parent IS NULL' }

/** All hold at once. */
function all(...filters: readonly Filter[]): Filter {
  const tags = filters.flatMap(({ args }) => args.tags ?? [])
  const args = Object.assign({}, ...filters.map(({ args }) => args)) as TransactionsArguments
  const where = filters.map((one) => `(${one.where})`).join(' AND ')
  return { args: tags.length === 0 ? args : { ...args, tags }, where }
}

const kinds: Readonly<Record<string, Source>> = {
  'no filter': () => ({ args: {}, where: '1' }),
  'one id': (story) => idsAmong([anyId(story)]),
  'many ids': (story) => idsAmong(several(200, () => anyId(story))),
  'one owner': () => ownersAmong([anyPerson()]),
  'many owners': () => ownersAmong(several(8, anyPerson)),
  'one recipient': () => recipientsAmong([anyPerson()]),
  'many recipients': () => recipientsAmong(several(8, anyPerson)),
  'a value': () => anyTag(1),
  'many values': () => anyTag(5),
  'two tags': () => all(anyTag(1), anyTag(2)),
  'three tags': () => all(anyTag(2), anyTag(2), anyTag(2)),
  'a value that one row has': () => valuesAmong('File-Id', [uuid(below(3000))], 'EQ'),
  'not a value': () => anyTag(1, 'NEQ'),
  'not many values': () => anyTag(4, 'NEQ'),
  'a tag and not another': () => all(anyTag(2), anyTag(2, 'NEQ')),
  'two that are not': () => all(anyTag(1, 'NEQ'), anyTag(1, 'NEQ')),
  'a start': () => anyStart(1),
  'many starts': () => anyStart(4),
  'a start that many values have': () => startsWith('Unit', [String(below(10))]),
  'a tag and a start': () => all(anyTag(3), startsWith('Unit', chance(0.5) ? [''] : ['1', '22'])),
  'one bundle': (story) => bundlesAmong([anyBundle(story)]),
  'many bundles': (story) => bundlesAmong(several(10, () => anyBundle(story))),
  'a bundle by its old name': (story) => parentsAmong([anyBundle(story)]),
  transactions: () => transactionsOnly,
  'transactions with a tag': () => all(transactionsOnly, anyTag(2)),
  'heights from': (story) => heights(story, 'min'),
  'heights to': (story) => heights(story, 'max'),
  'heights, owner and tag': (story) =>
    all(heights(story, 'both'), ownersAmong(several(3, anyPerson)), anyTag(3)),
  'owner, recipient and not': () =>
    all(ownersAmong(several(9, anyPerson)), recipientsAmong(several(9, anyPerson)), anyTag(2, 'NEQ')),
  'first seen, bundle or tag': (story) =>
    all(seen(story), chance(0.5) ? bundlesAmong(several(5, () => anyBundle(story))) : anyTag(3)),
}

/** How many kinds of questions there are. */
export const kindCount = Object.keys(kinds).length

/** So many questions of each kind about what there is now. */
export function questionsAbout(story: Story, each: number): Question[] {
  return Object.entries(kinds).flatMap(([kind, make]) =>
    Array.from({ length: each }, () => {
      const { args, where } = make(story)
      const newestFirst = chance(0.5)
      return { kind, args: { ...args, sort: newestFirst ? 'HEIGHT_DESC' : 'HEIGHT_ASC' }, where, newestFirst }
    }),
  )
}
