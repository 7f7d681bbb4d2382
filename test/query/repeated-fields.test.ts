/**
 * A request may select a field under hundreds of names, for a thousand rows: no field of the schema is so dear that this takes
 * more than a request may take. Counted is what is really done: looks into segments, reads of tables, and texts that are made.
 */
import { type GraphQLObjectType, getNamedType, isObjectType } from 'graphql'
import t, { type Test } from 'tap'
import { systemClock } from '../../src/actor/clock.js'
import { Generations } from '../../src/catalog/generations.js'
import { ChainIndex } from '../../src/catalog/index-reader.js'
import { openCatalogTables } from '../../src/catalog/tables.js'
import { CheckedFile } from '../../src/index/checked-file.js'
import { Answerer } from '../../src/query/query-answerer.js'
import { type QueryLimits, queryLimits } from '../../src/query/query-limits.js'
import { schema } from '../../src/query/schema.js'
import { Texts } from '../../src/query/texts.js'
import { countedReads } from '../upload/counted-reads.js'
import { bytesOf, idText, manySegments, rowCount, segmentCount, tagCount } from './many-segments.js'

const names = 500
/** Looks into files and tables, and texts made of tags. */
const done = { looks: 0, texts: 0 }

/** Counts the calls of a method. */
function counted<Name extends string>(
  of: { [name in Name]: (...given: never) => unknown },
  name: Name,
  call: () => void,
) {
  const whole = of[name] as (...given: unknown[]) => unknown
  Object.assign(of, {
    [name](this: unknown, ...given: unknown[]) {
      call()
      return whole.apply(this, given)
    },
  })
}

const absent = Array.from({ length: 400 }, (_, at) => bytesOf(`absent ${at}`).toString('base64url'))
const roots: Readonly<Record<string, string>> = {
  transaction: `transaction(id: "${bytesOf('row 3 3').toString('base64url')}")`,
  transactions: `transactions(first: ${rowCount})`,
  block: `block(id: "${idText(5)}")`,
  blocks: `blocks(first: ${rowCount})`,
}

/** A field that holds others, on the way to a field. */
interface Path {
  readonly above: readonly string[]
  readonly type: GraphQLObjectType
}

/** All objects that a query can reach. */
function* objectsBelow({ above, type }: Path): Generator<Path> {
  yield { above, type }
  for (const [name, field] of Object.entries(type.getFields())) {
    const below = getNamedType(field.type)
    if (isObjectType(below)) yield* objectsBelow({ above: [...above, name], type: below })
  }
}

const leavesOf = (type: GraphQLObjectType): string[] =>
  Object.entries(type.getFields()).flatMap(([name, { type }]) =>
    isObjectType(getNamedType(type)) ? [] : [name],
  )
const repeated = (field: string, times: number): string =>
  Array.from({ length: times }, (_, at) => `a${at}: ${field}`).join(' ')
const within = (above: readonly string[], fields: string): string =>
  `{ ${[...above].reverse().reduce((inner, name) => `${name} { ${inner} }`, fields)} }`

/** A query for each field of the schema under many names, and one for each object under fewer. */
function* queries(): Generator<[name: string, query: string]> {
  for (const [name, field] of Object.entries(schema.getQueryType()?.getFields() ?? {})) {
    const root = roots[name]
    const type = getNamedType(field.type)
    if (root === undefined || !isObjectType(type)) throw new Error(`nothing asks for ${name}`)
    for (const { above, type: object } of objectsBelow({ above: [root], type })) {
      const path = [name, ...above.slice(1)].join('.')
      for (const leaf of leavesOf(object)) yield [`${path}.${leaf}`, within(above, repeated(leaf, names))]
      const [last, leaves] = [above.at(-1) as string, leavesOf(object)]
      const own = `${last} { ${leaves.length === 0 ? '__typename' : leaves.join(' ')} }`
      const times = above.length === 1 ? 50 : 80
      yield [`${path} itself`, within(above.slice(0, -1), repeated(own, times))]
    }
  }
  const values = `owners: ${JSON.stringify(absent)}, recipients: ${JSON.stringify(absent)}`
  yield ['counts of absent values', `{ transactions(${values}) { ${repeated('count', names)} } }`]
  yield ['absent values', `{ transactions(${values}) { ${repeated('pageInfo { endCursor }', 100)} } }`]
}

interface Cost {
  readonly steps: number
  readonly chars: number
  readonly looks: number
  readonly texts: number
  readonly codes: readonly unknown[]
  // biome-ignore lint/suspicious/noExplicitAny: answers are looked into freely
  readonly data: any
}

async function openAnswers(path: string, limits: Partial<QueryLimits>) {
  const counting = countedReads(openCatalogTables(path).environment)
  const index = new ChainIndex(counting.environment, new Generations())
  const header = { signature: bytesOf('signature', 512), owner: bytesOf('owner', 512) }
  const looks = (): number => done.looks + counting.reads
  const all = { ...queryLimits, fieldsMax: 10 ** 7, timeMs: 10 ** 9, wallMs: 10 ** 9, ...limits }
  /** A clock that goes on by what is done: a look takes 2 us. */
  const work = { monotonic: () => looks() / 500 }
  const headers = { header: async () => header }
  const answerer = new Answerer({ index, headers, clock: systemClock, limits: all, work })
  const ask = async (query: string): Promise<Cost> => {
    const [before, textsBefore] = [looks(), done.texts]
    const effort = answerer.effort()
    const answer = await answerer.answer({ query, operationName: null, variables: null }, effort)
    const codes = answer.errors.map(({ extensions }) => extensions.code)
    return {
      steps: effort.steps,
      chars: effort.bytes,
      looks: looks() - before,
      texts: done.texts - textsBefore,
      codes,
      data: JSON.parse(answer.text).data,
    }
  }
  return { ask, close: () => counting.environment.close() }
}

/** To read a row, and each tag of it. */
const looksEach = 60
/** For a page with all rows, and then for each row once what it needs of the tables and of each segment, for its owner's key. */
const looksMax = rowCount * (looksEach + 8 * segmentCount)

function isWithinBounds(t: Test, name: string, { steps, chars, looks, texts }: Cost): void {
  const costs = `${name}: ${steps} steps, ${looks} looks, ${chars} characters, ${texts} texts`
  t.ok(looks <= looksMax, costs)
  t.ok(chars <= 1.1 * queryLimits.answerMaxBytes, costs)
  // What is not charged is not bounded.
  t.ok(looks <= looksEach * steps + 1000, costs)
  // What is looked through again and again and writes nothing is not bounded by what is written.
  t.ok(texts <= chars / 4 + 2 * rowCount * tagCount, costs)
}

t.test(`every field under ${names} names, for ${rowCount} rows of ${segmentCount} segments`, async (t) => {
  counted(CheckedFile.prototype, 'at', () => (done.looks += 1))
  for (const name of ['tag', 'isContentType'] as const)
    counted(Texts.prototype, name, () => (done.texts += 1))
  const path = await manySegments()
  const whole = await openAnswers(path, {})
  const dear = new Map<string, Cost>()
  await t.test('costs no more than each row once, and all that is looked up is charged', async (t) => {
    for (const [name, query] of queries()) {
      const cost = await whole.ask(query)
      isWithinBounds(t, name, cost)
      t.notOk(
        cost.codes.includes('QUERY_TOO_COMPLEX') || cost.codes.includes(undefined),
        `${name} is carried out`,
      )
      dear.set(query, cost)
    }
  })
  await whole.close()
  const timeMs = 4
  const hurried = await openAnswers(path, { timeMs })
  await t.test('and ends before twice the time that a request has', async (t) => {
    let cut = 0
    for (const [name, query] of queries()) {
      const { looks } = await hurried.ask(query)
      if (looks < (dear.get(query)?.looks ?? 0)) cut += 1
      t.ok(looks / 500 <= 2 * timeMs + 1, `${name}: ${looks / 500} ms`)
    }
    t.ok(cut > 10, `${cut} were cut`)
  })
  await hurried.close()
  const stepsMax = 3400
  const tired = await openAnswers(path, { stepsMax })
  await t.test('and values that nothing has are not looked up in all segments at once', async (t) => {
    const values = `owners: ${JSON.stringify(absent)}, recipients: ${JSON.stringify(absent)}`
    let pages = 0
    for (let after = '', more = true; more; pages += 1) {
      const { steps, data } = await tired.ask(
        `{ transactions(after: "${after}", ${values}) { pageInfo { hasNextPage endCursor } edges { cursor } } }`,
      )
      const { pageInfo, edges } = data.transactions
      t.same(edges, [])
      // All values are looked up in the tables (3 steps each), and in one segment more than there was effort for.
      t.ok(steps <= stepsMax + 4 * 2 * absent.length, `${steps} steps`)
      more = pageInfo.hasNextPage
      after = pageInfo.endCursor ?? after
    }
    t.ok(pages > 5, `${pages} pages`)
    const ids = await tired.ask(`{ transactions(ids: ${JSON.stringify(absent)}) { edges { cursor } } }`)
    t.same(ids.data, { transactions: { edges: [] } }, 'ids cost less')
    const counting = await tired.ask(`{ transactions(${values}) { ${repeated('count', names)} } }`)
    t.equal(counting.data.transactions.a499, null)
    t.ok(counting.steps <= stepsMax + 4 * 2 * absent.length, `${counting.steps} steps`)
  })
  await tired.close()
})
