import { join } from 'node:path'
import t from 'tap'
import { pause, systemClock } from '../../src/actor/clock.js'
import { FileChanges, hearWrites } from '../../src/store/file-changes.js'
import { openEnvironment } from '../../src/store/lmdb.js'
import { eventually } from '../eventually.js'
import { scratch } from '../scratch.js'

t.test('each commit is seen by whoever asks, also where nothing else of the file changes', async (t) => {
  const path = scratch('changes')
  const environment = openEnvironment(path)
  const table = environment.table('one')
  const changes = new FileChanges(join(path, 'data.mdb'))
  const later = (): number => systemClock.now() + 60_000
  t.equal(changes.mayHaveChanged(later()), true, 'nobody has looked yet')
  t.equal(changes.mayHaveChanged(later()), false)
  for (let at = 0; at < 5; at += 1) {
    // Longer than a tick of the clock of files.
    await new Promise((resolve) => setTimeout(resolve, 30))
    environment.write(() => table.put(Buffer.from('key'), Buffer.from([at])))
    t.equal(changes.mayHaveChanged(later()), true)
    t.equal(changes.mayHaveChanged(later()), false)
  }
  environment.write(() => table.put(Buffer.from('key'), Buffer.from('x')))
  changes.mayHaveChanged(systemClock.now())
  t.equal(changes.mayHaveChanged(systemClock.now()), true, 'a change just now may hide another one')
  t.equal(
    changes.mayHaveChanged(systemClock.now() - 3_600_000),
    true,
    'nor is a clock believed that was set back',
  )
  let seen = 0
  for (let at = 0; at < 60; at += 1) seen += changes.mayHaveChanged(later()) ? 1 : 0
  t.equal(seen, 3, 'and now and then without a sign')
  await environment.close()
  t.equal(new FileChanges(join(path, 'nothing')).mayHaveChanged(later()), true)
})

t.test('what anybody writes is heard of soon, commit by commit, until one hears no more', async (t) => {
  const path = scratch('heard')
  const [reader, writer] = [openEnvironment(path), openEnvironment(path)]
  const [read, written] = [reader.table('one'), writer.table('one')]
  const seen = new Set<string>()
  const hearing = hearWrites(join(path, 'data.mdb'), () => {
    reader.refresh()
    const value = read.get(Buffer.from('key'))
    if (value !== undefined) seen.add(Buffer.from(value).toString())
  })
  for (const word of ['a', 'b', 'c']) {
    writer.write(() => written.put(Buffer.from('key'), Buffer.from(word)))
    await eventually('the change is seen', () => seen.has(word))
  }
  hearing.cancel()
  writer.write(() => written.put(Buffer.from('key'), Buffer.from('d')))
  await pause(200)
  t.same([...seen], ['a', 'b', 'c'])
  hearWrites(join(path, 'nothing'), () => undefined).cancel()
  await Promise.all([reader.close(), writer.close()])
})
