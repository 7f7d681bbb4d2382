/** Answers of two indexes, ClickHouse for older blocks and the own index for the rest, beside those of the own index alone. */
import assert from 'node:assert/strict'
import t from 'tap'
import { systemClock } from '../../src/actor/clock.js'
import { ensureTables } from '../../src/clickhouse/index-push.js'
import { StableIndex } from '../../src/clickhouse/stable-index.js'
import { type ClickhouseEngine, clickhouseAbsent, startClickhouse } from '../engines/clickhouse.js'
import { eventually } from '../eventually.js'
import { below } from '../property.js'
import { openRig, type QueryResult } from '../query/rig.js'
import { kindCount, type Question, questionsAbout } from '../query/sqlite/questions.js'
import { address, Story } from '../query/sqlite/story.js'
import { type Ask, askerOf, compared, flush, push, quiet } from './both-answers.js'

const questionsEach = Number(process.argv[2] ?? 1)
/** Of clients whose engine hangs or is too slow. It is well otherwise, however busy the machine is. */
const timeoutMs = 10_000

/** Lists of more values than are read side by side. */
function longLists(story: Story): Question[] {
  const all = [...story.model.rows.values()]
  const parents = all.flatMap(({ input }) => ('parentId' in input ? [input.parentId] : []))
  const people = Array.from({ length: 30 }, (_, rank) => address(rank).toString('base64url'))
  const units = Array.from({ length: 400 }, (_, unit) => String(unit))
  const lists: Question['args'][] = [
    { bundledIn: [...new Set(parents)].slice(0, 40) },
    { owners: people },
    { recipients: people },
    { tags: [{ name: 'Unit', values: units }] },
    { owners: people, tags: [{ name: 'Unit', values: units }] },
    { owners: people.slice(0, 8), tags: [{ name: 'Unit', values: units }] },
    { recipients: people.slice(0, 3), tags: [{ name: 'Unit', values: units, op: 'NEQ' }] },
  ]
  return lists.flatMap((args) =>
    (['HEIGHT_ASC', 'HEIGHT_DESC'] as const).map((sort) => ({
      kind: 'a long list',
      args: { ...args, sort },
      where: '',
      newestFirst: sort === 'HEIGHT_DESC',
    })),
  )
}

t.test('questions of 30 kinds have the answers of the own index', clickhouseAbsent, async (t) => {
  const engine = await startClickhouse()
  const story = new Story()
  const rig = await openRig([], { flush, now: () => story.nowSeconds * 1000 })
  t.teardown(async () => {
    await rig.close()
    await engine.stop()
  })
  let rows = 0
  for (let look = 0; look < 2; look += 1) {
    for (let step = 0; step < (look === 0 ? 60 : 30); step += 1) await rig.apply(story.next())
    const heights = await push(engine, rig)
    t.comment(`heights ${heights.from} to ${heights.to} of ${story.start} to ${story.tip}`)
    const stable = new StableIndex(engine.client(), systemClock, quiet)
    const ask = askerOf(rig, stable)
    const questions = questionsAbout(story, questionsEach)
    assert.equal(questions.length, kindCount * questionsEach)
    for (const question of questions) rows += await compared(rig, ask, question)
    for (const question of look === 0 ? [] : longLists(story)) rows += await compared(rig, ask, question)
    for (const { id } of [...story.model.rows.values()].slice(-20)) {
      const text = `{ transaction(id: "${id}") { id tags { name value } block { id height } } }`
      assert.deepEqual(await ask(text), await rig.askInside(text))
    }
  }
  t.ok(rows > 1000, `${rows} rows were compared`)
})

const aboutOne = 'id tags { name value } owner { address } block { id height timestamp } bundledIn { id }'

/** A rig with a chain, and its stable heights in ClickHouse. */
async function openPushed(engine: ClickhouseEngine, steps: number) {
  const story = new Story()
  const rig = await openRig([], { flush, now: () => story.nowSeconds * 1000 })
  for (let step = 0; step < steps; step += 1) await rig.apply(story.next())
  return { story, rig, heights: await push(engine, rig) }
}

t.test('a machine without these blocks gives all of them', clickhouseAbsent, async (t) => {
  const engine = await startClickhouse()
  const { rig, heights } = await openPushed(engine, 120)
  const empty = await openRig([])
  t.teardown(async () => {
    await rig.close()
    await empty.close()
    await engine.stop()
  })
  const ask = askerOf(empty, new StableIndex(engine.client(), systemClock, quiet))
  const { from, to } = heights
  for (const sort of ['HEIGHT_ASC', 'HEIGHT_DESC']) {
    const text = `query($after: String) { transactions(sort: ${sort}, first: 100, after: $after,
      block: { min: ${from}, max: ${to} }) { count pageInfo { hasNextPage endCursor } edges { node { ${aboutOne} } } } }`
    const nodes = async (asker: Ask): Promise<unknown[]> => {
      const found: unknown[] = []
      for (let after: string | undefined; ; ) {
        const { data, errors }: QueryResult = await asker(text, { after })
        assert.equal(errors, undefined)
        found.push(...data.transactions.edges.map(({ node }: { node: unknown }) => node))
        assert.equal(data.transactions.edges.length <= 100, true)
        if (!data.transactions.pageInfo.hasNextPage) return [data.transactions.count, ...found]
        after = data.transactions.pageInfo.endCursor
      }
    }
    const own = await nodes(rig.askInside)
    t.ok(own.length > 100, `${own.length} rows`)
    t.strictSame(await nodes(ask), own)
  }
  const { data } = await rig.askInside(
    `{ transactions(first: 1, block: { min: ${from}, max: ${to} }) { edges { node { id } } } }`,
  )
  const [{ node }] = data.transactions.edges
  const one = `{ transaction(id: "${node.id}") { ${aboutOne} } transactions(ids: ["${node.id}"]) { edges { node { id } } } }`
  t.strictSame(await ask(one), await rig.askInside(one))
  t.same((await ask(`{ transaction(id: "${'A'.repeat(43)}") { id } }`)).data, { transaction: null })
})

t.test(
  'heights that move to ClickHouse between two pages are on one page each',
  clickhouseAbsent,
  async (t) => {
    const engine = await startClickhouse()
    const { rig, heights } = await openPushed(engine, 40)
    t.teardown(async () => {
      await rig.close()
      await engine.stop()
    })
    for (const sort of ['HEIGHT_ASC', 'HEIGHT_DESC']) {
      const text = `query($after: String) { transactions(sort: ${sort}, first: 9, after: $after) {
      pageInfo { hasNextPage endCursor } edges { node { id } } } }`
      const walk = async (asker: () => Ask): Promise<string[]> => {
        const found: string[] = []
        for (let after: string | undefined; ; ) {
          const { data }: QueryResult = await asker()(text, { after })
          found.push(...data.transactions.edges.map(({ node }: { node: { id: string } }) => node.id))
          if (!data.transactions.pageInfo.hasNextPage) return found
          after = data.transactions.pageInfo.endCursor
        }
      }
      const fixed = (): Ask => {
        const to = heights.from + below(heights.to - heights.from + 1)
        const about = { from: heights.from, to, rows: undefined, version: 1 }
        const stable = new StableIndex(engine.client(), systemClock, quiet)
        stable.heights = () => about
        return askerOf(rig, stable)
      }
      t.strictSame(await walk(fixed), await walk(() => rig.askInside))
    }
  },
)

t.test(
  'where ClickHouse is away, what needs it is refused with 503, and the rest is answered',
  clickhouseAbsent,
  async (t) => {
    const engine = await startClickhouse()
    const { rig, heights } = await openPushed(engine, 40)
    const client = engine.client({ timeoutMs })
    const served = await openRig([], { stable: new StableIndex(client, systemClock, quiet) })
    const ask = askerOf(rig, new StableIndex(client, systemClock, quiet))
    t.teardown(async () => {
      await rig.close()
      await served.close()
      await engine.stop()
    })
    const older = `{ transactions(block: { max: ${heights.to} }) { edges { node { id } } } }`
    const newer = `{ transactions(block: { min: ${heights.to + 1} }) { count edges { node { id } } } }`
    t.equal((await served.post({ query: older })).status, 200)
    t.equal((await ask(older)).errors, undefined)
    engine.child.kill('SIGSTOP')
    const begun = systemClock.monotonic()
    const answers = await Promise.all(Array.from({ length: 30 }, () => served.post({ query: older })))
    const waits = (systemClock.monotonic() - begun) / timeoutMs
    t.ok(waits < answers.length / 2, 'not one after the other')
    for (const answer of answers) {
      t.equal(answer.status, 503)
      t.equal(answer.headers.get('retry-after'), '2')
      t.match(await answer.json(), { data: null, errors: [{ extensions: { code: 'INDEX_UNAVAILABLE' } }] })
    }
    t.strictSame(await ask(newer), await rig.askInside(newer), 'newer blocks need no engine')
    const [mixed] = await Promise.all([
      ask(
        `{ a: transaction(id: "${'A'.repeat(43)}") { id } blocks(first: 1) { edges { node { height } } } }`,
      ),
    ])
    t.match(mixed, { data: { a: null, blocks: {} }, errors: [{ path: ['a'] }] })
    engine.child.kill('SIGCONT')
    await eventually('it is asked again', async () => (await served.post({ query: older })).status === 200)
  },
)

t.test(
  'a query that takes too long is refused, and takes nothing from others',
  clickhouseAbsent,
  async (t) => {
    const engine = await startClickhouse()
    t.teardown(() => engine.stop())
    // The engine is busy with a query on all processors for as long as its client waits.
    const client = engine.client({ timeoutMs: 2000 })
    for (let tries = 0; tries < 5; tries += 1) {
      const long = await client.ask(
        'SELECT count() FROM numbers(100000000000) WHERE sipHash64(number) = 1',
        1000,
        tries === 0 ? {} : { max_execution_time: 0.5 },
      )
      t.match(long, { refused: 'too-large' })
      const large = await client.ask('SELECT toString(number) FROM numbers(10000000)', 1000)
      t.match(large, { refused: 'too-large' })
    }
    await eventually(
      'it has a place for another',
      async () => String(await client.ask('SELECT 1', 1000)) === '1\n',
    )
    // As many values as a query may have, in the forms that make the longest statements.
    const patient = engine.client()
    await ensureTables(patient)
    const stable = new StableIndex(patient, systemClock, quiet)
    const bytes = (count: number): Buffer[] =>
      Array.from({ length: count }, (_, at) => Buffer.alloc(32, `v${at} `))
    for (const match of ['is', 'isNot', 'starts'] as const) {
      const tags = ['a', 'b'].map((name) => ({ name: Buffer.from(name), values: bytes(1000), match }))
      for (const wanted of [
        { tags },
        { tags: tags.slice(1) },
        { owners: bytes(8), tags },
        { owners: bytes(500), tags },
      ]) {
        const page = await stable.rows(wanted, { backwards: true, limit: 1000 }, { from: 0, to: 1000 })
        t.strictSame(page, { entries: [], more: false })
        t.equal(await stable.count(wanted, { from: 0, to: 1000, rows: undefined, version: 1 }), 0)
      }
    }
  },
)
