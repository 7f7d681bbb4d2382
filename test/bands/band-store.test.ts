import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { BandStore } from '../../src/bands/band-store.js'
import { replaceFile } from '../../src/bands/replace-file.js'

/** Another process that begins a draft, says where, and goes on until it is killed. */
async function drafting(root: string): Promise<{ child: ChildProcess; draft: string }> {
  const store = new URL('../../src/bands/band-store.js', import.meta.url).href
  const code = `const { BandStore } = await import('${store}')
    const draft = await new BandStore(process.argv[1]).draft()
    process.stdout.write(draft)
    setInterval(() => undefined, 1000)`
  const child = spawn(process.execPath, ['--input-type=module', '-e', code, root], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  const [output] = (await once(child.stdout!, 'data')) as [Buffer]
  return { child, draft: output.toString() }
}

t.test('drafts of a process that runs stay; those of one that is gone are removed', async (t) => {
  const root = t.testdir()
  const own = new BandStore(root)
  const kept = await own.draft()
  const { child, draft } = await drafting(root)
  t.teardown(() => child.kill('SIGKILL'))
  writeFileSync(join(draft, 'half'), 'written')
  mkdirSync(join(root, 'tmp', 'from-older-times'))
  writeFileSync(join(root, 'tmp', 'file'), '')
  await new BandStore(root).prepare()
  t.ok(existsSync(join(draft, 'half')), 'of another process')
  t.ok(existsSync(kept), 'of another store of this one')
  t.equal(readdirSync(join(root, 'tmp')).length, 2)
  const ended = once(child, 'exit')
  child.kill('SIGKILL')
  await ended
  await new BandStore(root).prepare()
  t.notOk(existsSync(draft))
  t.ok(existsSync(kept))
})

t.test('a draft is put in place once, and a second one of its name is dropped', async (t) => {
  const bandStore = new BandStore(t.testdir())
  await bandStore.prepare()
  const [one, two] = [await bandStore.draft(), await bandStore.draft()]
  t.not(one, two)
  writeFileSync(join(one, 'a'), 'one')
  writeFileSync(join(two, 'a'), 'two')
  t.equal(await bandStore.place(one, 'own', 'x', 'band'), true)
  t.equal(await bandStore.place(two, 'own', 'x', 'band'), false)
  t.notOk(existsSync(two))
  t.same(
    (await bandStore.list('own')).map(({ id }) => id),
    ['band'],
  )
})

t.test('a file is replaced whole, over what a killed writer left', async (t) => {
  const folder = t.testdir({ 'a.json.new': 'a very long half of something' })
  await replaceFile(join(folder, 'a.json'), 'one')
  await replaceFile(join(folder, 'a.json'), Buffer.from('two'))
  t.same(readdirSync(folder), ['a.json'])
  t.equal(readFileSync(join(folder, 'a.json'), 'utf8'), 'two')
})
