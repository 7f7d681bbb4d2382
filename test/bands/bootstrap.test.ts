import { createHash } from 'node:crypto'
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { systemClock } from '../../src/actor/clock.js'
import { l1Kind } from '../../src/bands/publication.js'
import { RemoteChain } from '../../src/chain/remote-chain.js'
import { decodeBase58 } from '../../src/format/base58.js'
import { LearnedHeaders } from '../../src/query/learned-headers.js'
import { MinedHeaders } from '../../src/query/mined-headers.js'
import { Answerer } from '../../src/query/query-answerer.js'
import { queryLimits } from '../../src/query/query-limits.js'
import { patient } from '../chain/hostile.js'
import { sluice } from '../flow/running.js'
import { folder, type House, house } from '../ingest/house.js'
import { settled, town } from '../ingest/town.js'
import { newKey, TestPublisher } from './publisher-rig.js'

const question = `query ($after: String) { transactions(first: 7, after: $after, sort: HEIGHT_ASC) {
  pageInfo { hasNextPage }
  edges { cursor node { id anchor recipient signature owner { address key } fee { winston } quantity { winston }
    data { size type } tags { name value } block { id height timestamp previous } bundledIn { id } } } } }`

/** Every page; cursors hold when a row was first seen, which is another second in each house. */
async function pages({ index, catalog }: House, chain: RemoteChain): Promise<string[]> {
  const limits = { ...queryLimits, timeMs: 60_000 }
  const headers = new MinedHeaders(new LearnedHeaders(catalog), index, chain)
  const answerer = new Answerer({ index, headers, clock: systemClock, limits })
  const shown: string[] = []
  index.refresh()
  for (let after: string | undefined, more = true; more; ) {
    const query = { query: question, operationName: null, variables: { after } }
    const { errors, text } = await answerer.answer(query, answerer.effort())
    if (errors.length > 0) throw new Error(text)
    const { data } = JSON.parse(text) as {
      data: {
        transactions: { pageInfo: { hasNextPage: boolean }; edges: { cursor: string; node: unknown }[] }
      }
    }
    const { pageInfo, edges } = data.transactions
    shown.push(JSON.stringify(edges.map(({ node }) => node)))
    after = edges.at(-1)?.cursor
    more = pageInfo.hasNextPage
  }
  return shown
}

const digest = (lines: readonly string[]): string =>
  createHash('sha256').update(lines.join('\n')).digest('hex')

t.test(
  'a new gateway takes bands, follows from their top, and answers what the one answers that made them',
  async (t) => {
    const here = await town(t)
    const { devnet } = here
    const data = folder(t)
    const builder = house(t, devnet.url, {}, { path: data })
    for (let turn = 0; turn < 5; turn += 1) {
      if (turn % 2 === 0) await here.bundle(4)
      await here.post(Buffer.from(`turn ${turn}`), { Turn: String(turn) })
      for (let more = 0; more < 6; more += 1) devnet.mine()
    }
    await settled(builder, devnet)
    await builder.stop()
    const environment = { DATA_PATH: data, CHAIN_FORK_DEPTH_MAX: '5' }
    const made = await sluice(['bands', 'l1', '--publisher', 'town'], environment)
    t.equal(made.code, 0, made.err)
    t.match(made.out, /^l1-h0-\d+-[0-9a-f]{8}-[0-9a-f]{12} {2}\d+ transactions\n$/)
    t.equal((await sluice(['bands', 'l1', '--publisher', 'town'], environment)).out, '', 'it is there')
    const bands = join(data, 'bands', 'own', 'parquet-l1')
    t.equal(readdirSync(bands).length, 1)

    const fresh = folder(t)
    const taken = await sluice(['bands', 'import', bands], { DATA_PATH: fresh })
    t.equal(taken.code, 0, taken.out + taken.err)
    const [, ended] = /ends at block (\d+)/.exec(taken.out) ?? []
    const again = house(t, devnet.url, {}, { path: fresh })
    again.index.refresh()
    t.equal(again.index.topHeight(), Number(ended), 'it begins at the top of the band')
    await settled(again, devnet)
    const whole = house(t, devnet.url, {}, { path: data })
    await settled(whole, devnet)
    const chain = new RemoteChain(
      { ...patient, nodes: [devnet.url], callsMax: 100, waitingMax: 1000 },
      systemClock,
    )
    t.teardown(() => chain.close())
    const wanted = await pages(whole, chain)
    t.ok(wanted.length > 2)
    t.ok(wanted.join().includes('"bundledIn":{'), 'with items: bundles of the band were opened')
    t.equal(digest(await pages(again, chain)), digest(wanted))
    t.same(again.check().problems, [])
    await t.test('and so does one that takes them from where they are published', async (t) => {
      const [id = ''] = readdirSync(bands)
      const names = readdirSync(join(bands, id))
      const files = Object.fromEntries(names.map((name) => [name, readFileSync(join(bands, id, name))]))
      const publisher = new TestPublisher({ name: l1Kind.index, kind: l1Kind.kind })
      const url = await publisher.listen()
      t.teardown(() => publisher.close())
      publisher.publish([{ id, files, heightRange: [0, Number(ended)] }])
      const place = join(folder(t), 'not', 'there', 'yet')
      const take = (from: string) => sluice(['import', from], { DATA_PATH: place })
      const source = `${url}#${publisher.signing.keyId}`
      const shownKey = Buffer.from(decodeBase58(publisher.signing.keyId) ?? []).toString('base64url')
      const forged = await take(`${url}#${newKey().keyId}`)
      t.match(forged, { code: 1, err: /refused.*signed by another key/ })
      publisher.lies.set(`/${l1Kind.index}/${id}/blocks.parquet`, files['tags.parquet']!)
      t.match(await take(source), { code: 1, err: /missing/ })
      publisher.lies.clear()
      const got = await take(`${url}#ed25519:${shownKey}`)
      t.equal(got.code, 0, got.out + got.err)
      t.match(got.out, new RegExp(`ends at block ${ended}`))
      t.notOk(existsSync(join(place, 'importing')), 'nothing is left of what was fetched')
      t.match(await take(source), { code: 0, out: /nothing is published that the index does not have/ })
      t.match(await take(`${url}#nobody`), { code: 2, err: /ADDRESS#KEY/ })
    })
  },
)
