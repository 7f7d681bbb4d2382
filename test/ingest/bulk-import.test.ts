import { spawn } from 'node:child_process'
import { createHash, randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { cpSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import t, { type Test } from 'tap'
import { pause } from '../../src/actor/clock.js'
import { checkIndex } from '../../src/catalog/index-check.js'
import { openIndexTables } from '../../src/catalog/index-tables.js'
import { openCatalogTables } from '../../src/catalog/tables.js'
import { dump } from '../catalog/index-model.js'
import { sluice } from '../flow/running.js'
import { folder } from './house.js'
import { rebuilt, type Town, town } from './town.js'

interface Json {
  readonly [field: string]: unknown
}

/** Everything that a node says, as files. */
async function dumped({ devnet }: Town, path: string): Promise<void> {
  for (const name of ['blocks', 'transactions', 'data']) mkdirSync(join(path, name), { recursive: true })
  const ask = (what: string): Promise<Response> => fetch(`${devnet.url}${what}`)
  const { height } = (await (await ask('/info')).json()) as { height: number }
  for (let at = 0; at <= height; at += 1) {
    const text = await (await ask(`/block/height/${at}`)).text()
    writeFileSync(join(path, 'blocks', `${at}.json`), text)
    for (const id of (JSON.parse(text) as { txs: string[] }).txs) {
      const header = (await (await ask(`/tx/${id}`)).json()) as Json
      writeFileSync(join(path, 'transactions', `${id}.json`), JSON.stringify({ ...header, data: '' }))
      const data = Buffer.from(await (await ask(`/tx/${id}/data`)).text(), 'base64url')
      writeFileSync(join(path, 'data', id), data)
    }
  }
}

/** What the index below `dataPath` holds, without when it was first seen. */
async function held(t: Test, dataPath: string): Promise<string[]> {
  const { environment } = openCatalogTables(join(dataPath, 'catalog'))
  const tables = openIndexTables(environment)
  t.same(checkIndex(tables).problems, [])
  const lines = dump(tables)
  await environment.close()
  return bare(lines)
}

const bare = (lines: string[]): string[] => lines.map((line) => line.replace(/"seenSeconds":\d+/, ''))
/** Long texts are compared by this, so that a difference does not fill the screen. */
const digest = (lines: readonly string[]): string =>
  createHash('sha256').update(lines.join('\n')).digest('hex')

const run = (dataPath: string, ...words: string[]) => sluice(['import', ...words], { DATA_PATH: dataPath })

async function grown(t: Test): Promise<{ town: Town; path: string }> {
  const here = await town(t)
  for (let turn = 0; turn < 4; turn += 1) {
    if (turn % 2 === 0) await here.bundle(6)
    await here.post(randomBytes(1000 + turn * 100_000), { Turn: String(turn) })
    here.devnet.mine()
    here.devnet.mine()
  }
  const path = join(folder(t), 'dump')
  await dumped(here, path)
  return { town: here, path }
}

t.test('a folder of node answers becomes the index that following the node makes', async (t) => {
  const { town, path } = await grown(t)
  const wanted = bare(await rebuilt(t, town.devnet))
  t.ok(
    wanted.some((line) => line.includes('"isItem":true')),
    'with items in it',
  )

  const data = folder(t)
  const first = await run(data, path)
  t.equal(first.code, 0, first.out + first.err)
  t.match(first.out, /bytes each/)
  t.match(first.err, /blocks \d+ of \d+, /)
  t.notOk(first.err.includes('\u001b'), 'no colours where nobody looks')
  t.equal(digest(await held(t, data)), digest(wanted))
  const again = await run(data, path)
  t.equal(again.code, 0, 'a second time changes nothing')
  t.equal(digest(await held(t, data)), digest(wanted))

  const trusted = folder(t)
  t.equal((await run(trusted, path, '--no-verify')).code, 0)
  const unjudged = await held(t, trusted)
  t.ok(
    unjudged.every((line) => line.includes('"isUnjudged":true') === line.includes('"isItem":true')),
    'items say that nobody checked their signatures',
  )
  const plain = unjudged.map((line) => line.replace(',"isUnjudged":true', ''))
  t.equal(digest(plain.sort()), digest(wanted), 'all else is the same without proofs')

  t.comment('by hash, with a table of heights')
  const heights: Record<string, string> = {}
  for (const name of readdirSync(join(path, 'blocks'))) {
    const text = readFileSync(join(path, 'blocks', name), 'utf8')
    const { height, indep_hash: hash } = JSON.parse(text) as { height: number; indep_hash: string }
    rmSync(join(path, 'blocks', name))
    writeFileSync(join(path, 'blocks', `${hash}.json`), text)
    heights[height] = hash
  }
  writeFileSync(join(path, 'blocks-by-height.json'), JSON.stringify(heights))
  const listed = folder(t)
  t.equal((await run(listed, path)).code, 0)
  t.equal(digest(await held(t, listed)), digest(wanted))

  t.comment('killed again and again')
  const killed = folder(t)
  const program = fileURLToPath(new URL('../../../bin/sluice.mjs', import.meta.url))
  for (let kills = 0; kills < 2; kills += 1) {
    const child = spawn(process.execPath, [program, 'import', path], {
      env: { PATH: process.env.PATH ?? '', DATA_PATH: killed },
      stdio: 'ignore',
    })
    const ended = once(child, 'exit')
    await Promise.race([ended, pause(700 + 500 * kills)])
    child.kill('SIGKILL')
    await ended
  }
  t.equal((await run(killed, path)).code, 0)
  t.equal(digest(await held(t, killed)), digest(wanted))
})

t.test('wrong files in a folder are left out, reported, and fetched from nodes later', async (t) => {
  const { path } = await grown(t)
  const bad = join(folder(t), 'bad')
  cpSync(path, bad, { recursive: true })
  const top = Math.max(...readdirSync(join(bad, 'blocks')).map((name) => Number.parseInt(name, 10)))
  // The last two blocks will be left out, and their transactions with them.
  const names = Array.from({ length: top - 1 }, (_, height) => {
    const { txs } = JSON.parse(readFileSync(join(bad, 'blocks', `${height}.json`), 'utf8')) as {
      txs: string[]
    }
    return txs.map((id) => `${id}.json`)
  }).flat()
  const bundle = names.find((name) =>
    readFileSync(join(bad, 'transactions', name), 'utf8').includes('QnVuZGxlLUZvcm1hdA'),
  )
  if (bundle === undefined) throw new Error('no bundle in the dump')
  const file = join(bad, 'data', bundle.replace('.json', ''))
  const bytes = readFileSync(file)
  bytes[bytes.length - 1] = (bytes.at(-1) ?? 0) ^ 1
  writeFileSync(file, bytes)
  const [other = ''] = names.filter((name) => name !== bundle)
  const header = JSON.parse(readFileSync(join(bad, 'transactions', other), 'utf8')) as Json
  writeFileSync(join(bad, 'transactions', other), JSON.stringify({ ...header, reward: '1' }))
  rmSync(join(bad, 'blocks', `${top - 1}.json`))

  const data = folder(t)
  const result = await run(data, bad)
  t.equal(result.code, 1)
  t.match(result.out, /is not the data of/)
  t.match(result.out, /1 transactions are missing/)
  t.match(result.out, /1 blocks were left/)
  t.match(result.out, new RegExp(`ends at block ${top - 2}`))

  writeFileSync(join(bad, 'blocks', '1.json'), readFileSync(join(bad, 'blocks', '2.json')))
  t.match(await run(folder(t), bad), { code: 1, out: /is not block 1/ }, 'another height than its name')
  t.equal((await run(data, join(bad, 'nowhere'))).code, 2)
  t.equal((await run(data)).code, 2)
  t.match((await run(data, join(bad, 'data'))).err, /neither blocks\/ nor Parquet/)
})
