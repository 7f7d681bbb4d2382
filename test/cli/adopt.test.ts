/** Moving over from the reference gateway: its settings, its block list and its cache, each made here in its form. */
import { execFileSync } from 'node:child_process'
import { mkdirSync, readdirSync, readFileSync, rmSync, statSync, symlinkSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import sqlite from 'node-sqlite3-wasm'
import t from 'tap'
import { readConfig } from '../../config/read.js'
import { Generations } from '../../src/catalog/generations.js'
import { ChainIndex } from '../../src/catalog/index-reader.js'
import { openCatalogTables } from '../../src/catalog/tables.js'
import { encodeBase64url } from '../../src/format/base64url.js'
import { sha256 } from '../../src/proof/digest.js'
import { run, sluice } from '../flow/running.js'
import { rig, whole } from '../parquet/export-rig.js'
import { asPeerWrites } from '../parquet/peer-export.js'

const peerEnv = fileURLToPath(new URL('../../../test/fixture/peer.env', import.meta.url))

t.test('every variable of the reference gateway has a fate, and the rest is a configuration', async (t) => {
  const folder = t.testdir({})
  const written = join(folder, 'sluice.env')
  const { code, out } = await sluice(['adopt', peerEnv, '--write', written])
  t.equal(code, 0, out)
  t.notMatch(out, /unknown {2}|wrong {2}|not read/)
  t.match(out, / same .*ARNS_ROOT_HOST.*/)
  t.ok(readFileSync(peerEnv, 'utf8').split('\n').length > 190)
  t.match(out, /not needed {3}CHAIN_CACHE_TYPE: headers and chunks are kept/)
  t.match(out, /same .* CLICKHOUSE_URL /, 'with the tables that its importer has filled')
  t.match(out, /same .* AWS_REGION /, 'of the bucket that CONTENT_STORE=s3 reads')
  t.notMatch(out, /a-secret/, 'values are not shown')
  t.equal(statSync(written).mode & 0o777, 0o600)
  const lines = readFileSync(written, 'utf8').trim().split('\n')
  t.ok(lines.includes("ADMIN_API_KEY='a-secret#with-a-hash'"))
  t.ok(lines.includes("X_402_APP_NAME='The Gateway'"))
  t.ok(lines.includes('TRUSTED_NODE_URL=https://arweave.net'), 'without the comment behind it')
  const environment = Object.fromEntries(
    lines.map((line) => {
      const [name = '', value = ''] = line.split(/=(.*)/s)
      return [name, value.replace(/^'(.*)'$/, '$1')]
    }),
  )
  t.match(readConfig({}, environment), { names: { rootHosts: ['gateway.example'] } })
  const again = await sluice(['adopt', peerEnv, '--write', written])
  t.equal(again.code, 2)
  t.match(again.err, /exists/, 'no file is written over')
})

t.test('what is wrong in the file is named', async (t) => {
  const file = join(t.testdir({ env: 'CACHE_DEFAULT_MAX_AGE=soon\nARNS_ROOT_HOSTS=x\nnonsense\n' }), 'env')
  const { code, out } = await sluice(['adopt', file])
  t.equal(code, 1)
  t.match(out, /wrong {8}CACHE_DEFAULT_MAX_AGE: must be/)
  t.match(out, /unknown {6}ARNS_ROOT_HOSTS/)
  t.match(out, /not read {5}line 3/)
})

/** A database as the other gateway leaves it: written with a write-ahead log, which is folded in when it stops. */
function database(
  path: string,
  statements: readonly string[],
  rows: (insert: sqlite.Database) => void,
): void {
  mkdirSync(dirname(path), { recursive: true })
  const made = new sqlite.Database(path)
  for (const sql of statements) made.exec(sql)
  made.exec('BEGIN')
  rows(made)
  made.exec('COMMIT')
  made.close()
  const bytes = readFileSync(path)
  bytes.set([2, 2], 18)
  writeFileSync(path, bytes)
}

/** The other gateway's data folder: so many cached contents, and a block list. */
function peerFolder(
  folder: string,
  contents: number,
): readonly { id: string; body: Buffer; digest: Buffer }[] {
  const all = Array.from({ length: contents }, (_, at) => {
    const body = Buffer.from(at % 1000 === 7 ? 'x'.repeat(1_500_000) + at : `content ${at}`)
    const digest = Buffer.from(sha256(body))
    return { id: encodeBase64url(sha256(Buffer.from(`id ${at}`))), body, digest }
  })
  for (const { body, digest } of all) {
    const name = encodeBase64url(digest)
    const place = join(folder, 'contiguous/data', name.slice(0, 2), name.slice(2, 4))
    mkdirSync(place, { recursive: true })
    writeFileSync(join(place, name), body)
  }
  database(
    join(folder, 'sqlite/data.db'),
    [
      'CREATE TABLE contiguous_data (hash BLOB PRIMARY KEY, data_size INTEGER NOT NULL, original_source_content_type TEXT)',
      'CREATE TABLE contiguous_data_ids (id BLOB PRIMARY KEY, contiguous_data_hash BLOB, verified BOOLEAN)',
    ],
    (made) => {
      for (const { id, body, digest } of all) {
        made.run('INSERT INTO contiguous_data VALUES (?, ?, ?)', [digest, body.length, 'text/plain'])
        made.run('INSERT INTO contiguous_data_ids VALUES (?, ?, 1)', [Buffer.from(id, 'base64url'), digest])
      }
      made.run('INSERT INTO contiguous_data_ids VALUES (?, ?, 0)', [Buffer.alloc(32, 9), Buffer.alloc(32, 8)])
    },
  )
  return all
}

function peerBlockList(folder: string, ids: readonly string[]): void {
  const entry = 'block_source_id INTEGER, notes TEXT, blocked_at INTEGER'
  database(
    join(folder, 'sqlite/moderation.db'),
    [
      'CREATE TABLE block_sources (id INTEGER PRIMARY KEY, name TEXT UNIQUE, created_at INTEGER)',
      `CREATE TABLE blocked_ids (id BLOB PRIMARY KEY, ${entry})`,
      `CREATE TABLE blocked_hashes (hash BLOB PRIMARY KEY, ${entry})`,
      `CREATE TABLE blocked_names (name TEXT PRIMARY KEY, ${entry})`,
    ],
    (made) => {
      made.run("INSERT INTO block_sources VALUES (1, 'a court', 0)")
      for (const id of ids)
        made.run("INSERT INTO blocked_ids VALUES (?, 1, 'an order', 0)", [Buffer.from(id, 'base64url')])
      made.run("INSERT INTO blocked_hashes VALUES (?, 1, '', 0)", [Buffer.alloc(32, 5)])
      made.run("INSERT INTO blocked_names VALUES ('badname', 1, NULL, 0)")
      made.run("INSERT INTO blocked_names VALUES ('no name', 1, NULL, 0)")
    },
  )
}

t.test('its cache is served, its block list holds, and nothing of it counts as verified', async (t) => {
  const folder = t.testdir({ peer: {}, env: '' })
  const peer = join(folder, 'peer')
  const contents = peerFolder(peer, Number(process.env.ADOPT_CONTENTS ?? 300))
  const [first, second, third, ...rest] = contents
  if (first === undefined || second === undefined || third === undefined) throw new Error('too few')
  const pathOf = (digest: Buffer): string => {
    const name = encodeBase64url(digest)
    return join(peer, 'contiguous/data', name.slice(0, 2), name.slice(2, 4), name)
  }
  writeFileSync(pathOf(first.digest), 'other bytes')
  // A link to a device without an end, and a pipe that nobody writes to, in place of cached files.
  const [endless, pipe] = rest.splice(-2)
  if (endless === undefined || pipe === undefined) throw new Error('too few')
  rmSync(pathOf(endless.digest))
  symlinkSync('/dev/zero', pathOf(endless.digest))
  rmSync(pathOf(pipe.digest))
  execFileSync('mkfifo', [pathOf(pipe.digest)])
  peerBlockList(peer, [second.id])
  const environment = { DATA_PATH: join(folder, 'data') }
  const words = ['adopt', join(folder, 'env'), '--data', peer]
  const done = await sluice(words, environment)
  t.equal(done.code, 0, done.err)
  t.match(done.out, 'block list: 3 added, 0 were there, 1 name nothing')
  t.match(done.out.replaceAll(' ', ''), `${rest.length + 2}added,0werethere,3areinnofile,1haveotherbytes`)
  t.strictSame(
    readdirSync(join(folder, 'data')).filter((name) => name.startsWith('adopting')),
    [],
  )

  // What is there is not read again: with the files gone, a second run finds the same.
  rmSync(join(peer, 'contiguous'), { recursive: true })
  const again = await sluice(words, environment)
  t.equal(again.code, 0, again.err)
  t.match(again.out, 'block list: 0 added, 3 were there')
  t.match(again.out.replaceAll(' ', ''), `0added,${rest.length + 2}werethere,4areinnofile`)

  const { urls, stop } = await run(t, join(folder, 'data'), { SERVICES: 'gateway', DEVNET_SEED: 'false' })
  for (const { id, body } of [third, ...rest.filter((_, at) => at < 10 || at % 1000 < 10)]) {
    const answer = await fetch(`${urls.gateway}/raw/${id}`)
    t.equal(answer.status, 200, id)
    t.ok(Buffer.from(await answer.arrayBuffer()).equals(body))
    t.match(answer.headers.get('content-type'), /^text\/plain/)
    t.equal(answer.headers.get('x-cache'), 'HIT')
    t.equal(answer.headers.get('x-gateway-verified'), 'false')
  }
  t.equal((await fetch(`${urls.gateway}/raw/${second.id}`)).status, 451)
  t.not((await fetch(`${urls.gateway}/raw/${first.id}`)).status, 200)
  const busy = await sluice([...words, '--only', 'content'], environment)
  t.equal(busy.code, 1, 'a program that runs has its folder to itself')
  await stop()
})

t.test('its Parquet exports are in the index, and a second run goes on behind them', async (t) => {
  const { exporter, root } = await rig(t)
  await whole(exporter)
  await exporter.stop()
  const folder = t.testdir({ peer: {}, env: '' })
  const base = join(folder, 'peer/datasets/default')
  const runs = [0, 60].map((from) => ({ from, to: from + 59, run: '20250101T120000_41' }))
  await asPeerWrites(join(root, 'all'), base, runs.slice(0, 1))
  const environment = { DATA_PATH: join(folder, 'data') }
  const words = ['adopt', join(folder, 'env'), '--data', join(folder, 'peer'), '--only', 'index']
  const first = await sluice(words, environment)
  t.equal(first.code, 0, first.err)
  t.match(first.out, /export: 60 blocks, \d+ rows, to block 59/)
  await asPeerWrites(join(root, 'all'), base, runs.slice(1))
  const second = await sluice(words, environment)
  t.equal(second.code, 0, second.err)
  t.match(second.out, /export: 60 blocks, \d+ rows, to block 119/, 'what was taken is not read again')
  const generations = new Generations()
  const { environment: opened } = openCatalogTables(join(folder, 'data/catalog'))
  const index = new ChainIndex(opened, generations)
  t.equal(index.topHeight(), 119)
  await opened.close()
  const none = await sluice(['adopt', join(folder, 'env'), '--data', folder, '--only', 'index'], environment)
  t.equal(none.code, 2)
  t.match(none.err, /no Parquet export/)
})

t.test('what is no such database is named, and nothing is begun', async (t) => {
  const folder = t.testdir({
    env: '',
    peer: { sqlite: { 'moderation.db': 'no database', 'data.db-wal': 'x' } },
  })
  const environment = { DATA_PATH: join(folder, 'data') }
  const words = (only: string): string[] => [
    'adopt',
    join(folder, 'env'),
    '--data',
    join(folder, 'peer'),
    '--only',
    only,
  ]
  const bad = await sluice(words('blocks'), environment)
  t.equal(bad.code, 1)
  t.match(bad.err, /moderation\.db: /)
  const none = await sluice(words('content'), environment)
  t.equal(none.code, 1)
  t.match(none.err, /there is no .*data\.db/)
  writeFileSync(join(folder, 'peer/sqlite/data.db'), '')
  t.match((await sluice(words('content'), environment)).err, /stop the other gateway/)
  rmSync(join(folder, 'peer/sqlite'), { recursive: true })
  mkdirSync(join(folder, 'peer/sqlite'))
  symlinkSync('/dev/zero', join(folder, 'peer/sqlite/moderation.db'))
  t.match((await sluice(words('blocks'), environment)).err, /moderation\.db is not a regular file/)
})
