import assert from 'node:assert/strict'
import t from 'tap'
import { pause } from '../../src/actor/clock.js'
import { decodeBase64url } from '../../src/format/base64url.js'
import { pick } from '../property.js'
import { openRig } from './rig.js'
import { aboutText, hexOf, SqliteRows, sqliteAbsent } from './sqlite/database.js'
import { queryOf } from './sqlite/query-text.js'
import { kindCount, type Question, questionsAbout } from './sqlite/questions.js'
import { chance, Story } from './sqlite/story.js'

/** Things that happen before each look: more with the first argument, as in `node dist/test/query/beside-sqlite.test.js 2000`. */
const stepsEach = Number(process.argv[2] ?? 18)
const questionsEach = 2
const flush = {
  rows: stepsEach * 4,
  forkDepth: 3,
  rowsEach: 64,
  merges: { segmentsAlike: 3, levelMax: 2 },
}

type Rig = Awaited<ReturnType<typeof openRig>>
// biome-ignore lint/suspicious/noExplicitAny: answers are looked into freely
type Loose = any

const hexOfText = (text: string): string => hexOf(decodeBase64url(text) ?? Buffer.from('no base64url'))
const utf8 = (text: string): string => Buffer.from(text).toString('hex')

/** A node as SQLite has its row. */
function rowOf(node: Loose): unknown {
  return {
    id: hexOfText(node.id),
    height: node.block?.height ?? null,
    owner: hexOfText(node.owner.address),
    recipient: hexOfText(node.recipient),
    parent: node.bundledIn === null ? null : hexOfText(node.bundledIn.id),
    seen: node.ingested_at,
    about: aboutText({
      size: node.data.size,
      anchor: hexOfText(node.anchor),
      quantity: node.quantity.winston,
      fee: node.fee.winston,
      signatureType: node.signatureType,
      block: node.block?.id ?? null,
      time: node.block?.timestamp ?? null,
    }),
    tags: node.tags.map(({ name, value }: Loose) => `${utf8(name)}=${utf8(value)}`),
  }
}

/** All pages of a question, by one of the two cursors, and what is counted. */
async function walked(
  rig: Rig,
  question: Question,
  expected: number,
): Promise<{ nodes: Loose[]; counts: unknown[] }> {
  const text = queryOf(question)
  // Pages of one row too, but not a hundred of them.
  const first = pick([1, 3, 10, 30, 100, 1000].filter((size) => size === 1000 || size * 6 > expected))
  const nodes: Loose[] = []
  const counts: unknown[] = []
  for (let after: string | undefined; ; ) {
    const { data, errors } = await rig.askInside(text, { ...question.args, first, after })
    assert.equal(errors, undefined, `${question.kind}: ${JSON.stringify(errors)}`)
    const { edges, pageInfo, count } = data.transactions
    counts.push(count)
    nodes.push(...edges.map(({ node }: Loose) => node))
    if (!pageInfo.hasNextPage) return { nodes, counts }
    assert.equal(edges.length, first, `${question.kind}: a page that is not the last one is full`)
    // Flushes and merges go on meanwhile.
    if (chance(0.1)) await pause(0)
    after = chance(0.5) ? pageInfo.endCursor : edges.at(-1).cursor
  }
}

/** Compares nodes with the rows of SQLite, field by field: the first time; what comes again must be the same text. */
function comparing(rows: ReadonlyMap<string, unknown>): (node: Loose, about: string) => void {
  const texts = new Map<string, string>()
  return (node, about) => {
    const text = JSON.stringify(node)
    const known = texts.get(node.id)
    if (known === undefined) assert.deepEqual(rowOf(node), rows.get(hexOfText(node.id)), about)
    else assert.equal(text, known, about)
    texts.set(node.id, text)
  }
}

/** Where rows are. */
function places({ tables, index }: Rig) {
  tables.environment.refresh()
  const { levels, removed } = index.segmentTotals()
  const all = [...levels]
  return {
    frozen: tables.sets.live().length - 1,
    segments: all.reduce((sum, [, count]) => sum + count, 0),
    merged: all.reduce((sum, [level, count]) => sum + (level > 0 ? count : 0), 0),
    removed,
    pending: index.counts().pending,
  }
}
type Places = ReturnType<typeof places>

/** Where rows must be when questions come: each look waits for another thing. */
const looks: readonly (readonly (keyof Places)[])[] = [
  ['pending'],
  ['frozen'],
  ['segments'],
  ['segments', 'removed'],
  ['merged'],
  ['frozen', 'merged', 'pending'],
]
const stepsMax = 1000

t.test('360 questions of 30 kinds find the rows that SQLite finds, in its order', sqliteAbsent, async (t) => {
  assert.equal(kindCount * questionsEach * looks.length, 360)
  const story = new Story()
  const rig = await openRig([], { flush, now: () => story.nowSeconds * 1000 })
  const sqlite = new SqliteRows()
  let [found, questionCount] = [0, 0]
  for (const wanted of looks) {
    const isThere = (): boolean => wanted.every((where) => places(rig)[where] > 0)
    for (let step = 0; step < stepsEach || !isThere(); step += 1) {
      assert.ok(step < stepsMax, `no rows are ${wanted}: ${JSON.stringify(places(rig))}`)
      await rig.apply(story.next())
    }
    t.comment(`${story.model.rows.size} rows, ${JSON.stringify(places(rig))}`)
    sqlite.load(story)
    const questions = questionsAbout(story, questionsEach)
    const answers = sqlite.ask(questions)
    const compare = comparing(sqlite.rows())
    for (const [at, question] of questions.entries()) {
      const ids = answers[at] as string[]
      const { nodes, counts } = await walked(rig, question, ids.length)
      const about = `${question.kind} ${JSON.stringify(question.args)}`
      assert.deepEqual(
        nodes.map(({ id }) => hexOfText(id)),
        ids,
        about,
      )
      for (const node of nodes) compare(node, about)
      for (const count of counts) assert.equal(count, ids.length, `the count of ${about}`)
      found += ids.length
      questionCount += 1
    }
  }
  t.equal(questionCount, 360)
  t.ok(found > 5000, `${found} rows were found`)
  t.same(rig.thrown, [])
  await rig.close()
})
