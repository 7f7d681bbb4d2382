/**
 * Folders that the program is pointed at, with something in them that is no file: a named pipe, which whoever opens it would wait
 * for, a link to a device without an end, a folder. Each reader says so at once.
 */
import { execFileSync } from 'node:child_process'
import { mkdirSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { systemClock, withinTime } from '../../src/actor/clock.js'
import { Challenges } from '../../src/certificates/challenges.js'
import { pairsIn } from '../../src/certificates/places.js'
import { readFolder } from '../../src/client/node/files.js'
import type { Id } from '../../src/format/id.js'
import { NodeFolder } from '../../src/ingest/node-folder.js'
import { l1Files, readL1Band } from '../../src/parquet/l1-band.js'
import { openTable } from '../../src/parquet/parquet-reader.js'
import { isRegularFile, openRegular, readRegular } from '../../src/store/regular-file.js'
import { sluice } from '../flow/running.js'

const id = Buffer.alloc(32, 5).toString('base64url') as Id
const things: readonly [what: string, make: (path: string) => void][] = [
  ['a pipe', (path) => void execFileSync('mkfifo', [path])],
  ['a link to a device without an end', (path) => symlinkSync('/dev/zero', path)],
  ['a folder', (path) => void mkdirSync(path)],
]

const late = 'waited'
const soon = <T>(work: Promise<T>): Promise<T | typeof late> => withinTime(systemClock, 60_000, work, late)

for (const [what, make] of things) {
  t.test(what, async (t) => {
    const put = (path: string): string => {
      rmSync(path, { force: true, recursive: true })
      make(path)
      return path
    }
    const root = t.testdir({ blocks: {}, transactions: {}, data: {}, certificates: {}, tokens: {}, band: {} })

    const path = put(join(root, 'thing'))
    t.notOk(isRegularFile(path))
    t.equal(await soon(openRegular(path)), undefined)
    t.equal(await soon(readRegular(path, 10)), undefined)

    await nodeFolder(t, root, put)

    t.match(await soon(openTable(path, {} as never)), { refused: 'malformed' }, 'a Parquet file')
    for (const name of l1Files) writeFileSync(join(root, 'band', name), '')
    put(join(root, 'band', 'band.json'))
    t.match(await soon(readL1Band(join(root, 'band'))), { refused: 'malformed' }, 'the facts of a band')

    const folder = join(root, 'certificates')
    writeFileSync(join(folder, 'one.key'), '')
    put(join(folder, 'one.crt'))
    put(join(folder, 'two.pem'))
    writeFileSync(join(folder, 'three.crt'), '')
    put(join(folder, 'three.key'))
    t.strictSame(pairsIn(folder), [], 'certificates')
    const token = 'a'.repeat(43)
    put(join(root, 'tokens', token))
    t.equal(await soon(new Challenges(join(root, 'tokens')).answer(token)), undefined, 'a challenge')

    mkdirSync(join(root, 'site'))
    writeFileSync(join(root, 'site', 'a.txt'), 'a')
    put(join(root, 'site', 'b.txt'))
    const site = await soon(readFolder(join(root, 'site')))
    t.strictSame(site === late ? late : site.files.map((one) => one.path), ['a.txt'], 'an upload')
    put(join(root, 'site', '.sluiceignore'))
    const wrong = soon(readFolder(join(root, 'site')))
    await t.rejects(wrong, { code: 'invalid-input' }, 'its patterns')
  })
}

async function nodeFolder(t: Test, root: string, put: (path: string) => string): Promise<void> {
  const node = new NodeFolder(root)
  put(join(root, 'blocks', 'named.json'))
  t.strictSame(await soon(node.blocks()), [], 'a block')
  put(join(root, 'blocks', '7.json'))
  t.strictSame(await soon(node.blocks()), [7])
  t.match(await soon(node.blockByHeight(7)), { refused: 'malformed' })
  put(join(root, 'transactions', `${id}.json`))
  t.match(await soon(node.transaction(id)), { refused: 'malformed' }, 'a transaction')
  put(join(root, 'data', id))
  t.match(await soon(node.openData(id, Buffer.alloc(32))), { refused: 'unknown' }, 'its data')
  t.match(await soon(node.transactionData(id, 0)), { refused: 'unknown' })
  put(join(root, 'blocks-by-height.json'))
  t.match(await soon(node.blocks()), { refused: 'malformed' }, 'the list of blocks')
}

t.test('a file is read as far as its bound, and one byte more', async (t) => {
  const path = join(t.testdir({ file: '0123456789' }), 'file')
  t.equal(String(await readRegular(path, 10)), '0123456789')
  t.equal(String(await readRegular(path, 4)), '01234')
  const link = join(t.testdirName, 'link')
  symlinkSync(path, link)
  t.equal(String(await readRegular(link, 100)), '0123456789', 'links are followed')
  await t.rejects(readRegular(join(t.testdirName, 'none'), 1), { code: 'ENOENT' })
})

t.test('a folder of node answers is left in the middle when the program is told to stop', async (t) => {
  const root = t.testdir({ blocks: { 'a.json': '{}' }, data: { [id]: Buffer.alloc(3_000_000) } })
  const node = new NodeFolder(root)
  const stop = AbortSignal.abort()
  await t.rejects(node.blocks(stop), { name: 'AbortError' })
  await t.rejects(node.openData(id, Buffer.alloc(32), stop), { name: 'AbortError' })
})

t.test('sluice import says that a block is no file, and ends', async (t) => {
  const root = t.testdir({ blocks: {}, data: {} })
  execFileSync('mkfifo', [join(root, 'blocks', '0.json')])
  const { code, out, err } = await sluice(['import', root], { DATA_PATH: join(root, 'index') })
  t.not(code, 0)
  t.match(out + err, /not a regular file/)
})
