import { readdirSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { pause } from '../../../src/actor/clock.js'
import { isRefusal, refuse } from '../../../src/format/refusal.js'
import type { AcceptedItem } from '../../../src/upload/records/uploads.js'
import { gatherMs, StoredGroups } from '../../../src/upload/stored/stored-groups.js'
import { StoredKeys } from '../../../src/upload/stored/stored-keys.js'
import { type MadeItem, madeItem } from '../../conformance/kept-uploads.js'
import { lastingObjects } from '../../engines/memory-objects.js'
import { eventually } from '../../eventually.js'
import { HandClock } from '../../http/hand-clock.js'
import { scratch } from '../../scratch.js'
import { groupsOf, release, storingMachine } from '../stored-rig.js'

/** A store that neither rests nor fails. */
const guardedDummy = { restMs: () => 0, fault: () => undefined, isFailing: () => false, aheadMs: 0 }
const refused = refuse('upstream', 'upstream', 'the object store answered 500')

t.test('what comes within 100 ms is one object, and the first does not wait', async (t) => {
  const objects = lastingObjects()
  const machine = await storingMachine(objects)
  t.teardown(() => machine.end())
  const puts = (): number => objects.calls.put
  const begun = puts()
  let isSooner = false
  // One that waited for others would never be sooner than their time; a machine that is busy is slow only sometimes.
  for (let at = 0; at < 5 || (at < 50 && !isSooner); at += 1) {
    let isOver = false
    const gathered = pause(gatherMs - 10).then(() => {
      isOver = true
    })
    t.ok(await machine.accept(madeItem(10_240)))
    isSooner ||= !isOver
    t.equal(puts() - begun, at + 1)
    await gathered
    await pause(60)
  }
  t.ok(isSooner, 'one alone is put at once')
  const before = puts()
  const many = Array.from({ length: 1000 }, () => madeItem(10_240))
  const all = await Promise.all(many.map((item) => machine.accept(item)))
  t.ok(all.every(Boolean))
  const count = puts() - before
  t.ok(count * 100 <= many.length, `${count} PUTs for 1000 items`)
  await Promise.all([machine.accept(madeItem(1_500_000)), machine.accept(madeItem(1_500_000))])
  t.equal(puts() - before - count, 2, 'large items are objects of their own')
})

t.test('a group is at most 8 MiB', async (t) => {
  const objects = lastingObjects()
  const machine = await storingMachine(objects)
  t.teardown(() => machine.end())
  const many = Array.from({ length: 40 }, () => madeItem(900_000))
  t.ok((await Promise.all(many.map((item) => machine.accept(item)))).every(Boolean))
  for (const { sizeBytes } of objects.objects.values()) t.ok(sizeBytes < 8_500_000, String(sizeBytes))
})

t.test('a group is removed with its last item', async (t) => {
  const objects = lastingObjects()
  const machine = await storingMachine(objects)
  t.teardown(() => machine.end())
  const items = Array.from({ length: 5 }, () => madeItem(2000))
  await machine.accept(items[0] as never)
  await Promise.all(items.slice(1).map((item) => machine.accept(item)))
  t.equal(groupsOf(objects).length, 2)
  release(machine, items.slice(0, 4))
  await eventually('the first is gone', () => groupsOf(objects).length === 1)
  release(machine, items.slice(4))
  await eventually('both are gone', () => groupsOf(objects).length === 0)
})

t.test(
  'a store that fails counts as standing still until it takes something, whether uploads come or not',
  async (t) => {
    const objects = lastingObjects()
    const machine = await storingMachine(objects, { lookMs: 50 })
    t.teardown(() => machine.end())
    t.equal(machine.stored.fault, undefined)
    objects.fails = (operation) => (operation === 'put' ? refused : undefined)
    await eventually('it counts as failing', async () => {
      await machine.accept(madeItem(1000))
      return machine.guarded.isFailing('write')
    })
    let rests = 0
    await eventually('it was tried twice', () => {
      t.match(machine.stored.fault, { message: /takes nothing/ })
      rests += machine.stored.refusal === undefined ? 1 : 0
      return rests > 1
    })
    objects.fails = () => undefined
    await eventually('it is well, though nothing is uploaded', () => machine.stored.fault === undefined)
    t.ok(await machine.accept(madeItem(1000)))
  },
)

t.test('a store that does not answer counts as standing still', async (t) => {
  const objects = lastingObjects()
  const machine = await storingMachine(objects)
  const { log } = machine
  const clock = new HandClock()
  let take: (outcome: 'put') => void = () => undefined
  const silent = {
    ...guardedDummy,
    put: () =>
      new Promise((resolve) => {
        take = resolve
      }),
  }
  t.teardown(() => machine.end())
  const groups = new StoredGroups({
    store: silent,
    largeStore: silent,
    keys: new StoredKeys('p'),
    node: 'one',
    logFolder: log.folder,
    secret: Buffer.alloc(32, 7),
    clock,
    onDoubt: () => undefined,
    count: () => undefined,
  } as never)
  const item = madeItem(1000)
  await machine.accept(item)
  const { place } = machine.uploads.find(item.id) as AcceptedItem
  const { id, headerSize, digest, bytes } = item
  const meta = Buffer.from('{}')
  const put = groups.put({ id, headerSize, digest, meta, place, contentType: '', sizeBytes: bytes.length })
  t.equal(groups.fault, undefined)
  clock.jump(31_000)
  t.match(groups.fault, { message: /not taken an upload for 31 s/ })
  take('put')
  await put
  t.equal(groups.fault, undefined)
})

t.test('what the store has lost is put there again', async (t) => {
  const objects = lastingObjects()
  const folder = scratch('again')
  const first = await storingMachine(objects, { folder })
  const items = Array.from({ length: 50 }, () => madeItem(5000))
  t.ok((await Promise.all(items.map((item) => first.accept(item)))).every(Boolean))
  await first.end()
  for (const key of groupsOf(objects)) objects.objects.delete(key)
  objects.fails = (operation, key) => (operation === 'put' && key.includes('/log/') ? refused : undefined)
  const second = await storingMachine(objects, { folder })
  t.match(second.stored.warnings, [/^50 accepted uploads are not in the object store/])
  objects.fails = () => undefined
  await eventually('all is there', () =>
    items.every(({ id }) => {
      const group = second.uploads.find(id)?.stored
      return group !== undefined && objects.objects.has(`p/sluice/uploads/log/${group}`)
    }),
  )
  await eventually('nothing is behind', () => second.stored.warnings.length === 0)
  await second.end(true)
  const third = await storingMachine(objects)
  t.teardown(() => third.end())
  for (const { id, bytes } of items) {
    const item = third.uploads.find(id)
    t.ok(item !== undefined && third.bytesAt(item.place).equals(bytes))
  }
})

t.test('what the store loses while the machine runs is put there again', async (t) => {
  const objects = lastingObjects()
  const machine = await storingMachine(objects, { compareMs: 100 })
  t.teardown(() => machine.end())
  const items = Array.from({ length: 20 }, () => madeItem(5000))
  t.ok((await Promise.all(items.map((item) => machine.accept(item)))).every(Boolean))
  release(machine, items.slice(0, 5))
  for (const key of groupsOf(objects).slice(1)) objects.objects.delete(key)
  await eventually('all that is needed is there', () =>
    items.slice(5).every(({ id }) => {
      const group = machine.uploads.find(id)?.stored
      return group !== undefined && objects.objects.has(`p/sluice/uploads/log/${group}`)
    }),
  )
  release(machine, items.slice(5))
  await eventually('and nothing else', () => groupsOf(objects).length === 0)
})

t.test('an item that cannot be read keeps nothing else from the store', async (t) => {
  const objects = lastingObjects()
  const machine = await storingMachine(objects, { compareMs: 100 })
  t.teardown(() => machine.end())
  const { uploads } = machine
  const isThere = ({ id }: MadeItem): boolean => {
    const group = uploads.find(id)?.stored
    return group !== undefined && objects.objects.has(`p/sluice/uploads/log/${group}`)
  }
  const items = Array.from({ length: 20 }, () => madeItem(5000))
  t.ok((await Promise.all(items.map((item) => machine.accept(item)))).every(Boolean))
  const [broken, ...others] = items as [MadeItem, ...MadeItem[]]
  uploads.environment.write(() => {
    const item = uploads.find(broken.id) as AcceptedItem
    uploads.put({ ...item, place: { ...item.place, file: 77 } })
  })
  for (let times = 0; times < 2; times += 1) {
    for (const key of groupsOf(objects)) objects.objects.delete(key)
    await eventually('what can be read is put again', () => others.every(isThere))
    t.notOk(isThere(broken))
    t.match(machine.stored.warnings, [/^1 accepted uploads are not in the object store/])
    t.ok(await machine.accept(madeItem(2000)), 'what arrives is accepted')
  }
})

t.test('a machine that gets another name keeps its groups, and removes them', async (t) => {
  const objects = lastingObjects()
  const folder = scratch('renamed')
  const first = await storingMachine(objects, { folder })
  const item = madeItem(5000)
  t.ok(await first.accept(item))
  const groups = groupsOf(objects)
  await first.end()
  const second = await storingMachine(objects, { folder, node: 'other' })
  t.teardown(() => second.end())
  await pause(200)
  t.strictSame(groupsOf(objects), groups, 'they are not put again')
  release(second, [item])
  await eventually('they are removed', () => groupsOf(objects).length === 0)
})

t.test('what was accepted before there was a store is put there', async (t) => {
  const objects = lastingObjects()
  const folder = scratch('before')
  const first = await storingMachine(objects, { folder, isWanted: false })
  const item = madeItem(5000)
  t.ok(await first.accept(item))
  t.equal(groupsOf(objects).length, 0)
  await first.end()
  const second = await storingMachine(objects, { folder })
  t.teardown(() => second.end())
  await eventually('it is there', () => second.uploads.find(item.id)?.stored !== undefined)
  t.equal(groupsOf(objects).length, 1)
})

t.test('bytes that the log has lost are brought back', async (t) => {
  const objects = lastingObjects()
  const folder = scratch('log')
  const first = await storingMachine(objects, { folder })
  const items = [5000, 300_000, 2_000_000].map(madeItem)
  for (const item of items) t.ok(await first.accept(item))
  await first.end()
  for (const name of readdirSync(join(folder, 'log'))) rmSync(join(folder, 'log', name))
  const second = await storingMachine(objects, { folder })
  t.teardown(() => second.end())
  for (const { id, bytes } of items) {
    const item = second.uploads.find(id)
    t.ok(item !== undefined && second.bytesAt(item.place).equals(bytes))
  }
})

t.test('of two machines with one name the one with the later disk goes on', async (t) => {
  const objects = lastingObjects()
  const folder = scratch('old')
  const first = await storingMachine(objects, { folder, lookMs: 100 })
  const item = madeItem(5000)
  t.ok(await first.accept(item))
  const second = await storingMachine(objects, { folder: scratch('new') })
  t.teardown(() => second.end())
  t.ok(second.uploads.find(item.id) !== undefined, 'it has taken everything up')
  await eventually('the other one hears of it', () => first.stored.refusal !== undefined)
  t.match(first.stored.refusal?.message, /another machine under the name one/)
  t.notOk(await first.accept(madeItem(5000)))
  await first.end()
  const again = await storingMachine(objects, { folder }, false)
  t.teardown(() => again.end())
  await eventually('the other machine is named', () =>
    /another machine/.test(again.stored.refusal?.message ?? ''),
  )
  t.ok(await second.accept(madeItem(5000)))
})

t.test('a group that somebody else wrote is left alone', async (t) => {
  const objects = lastingObjects()
  const first = await storingMachine(objects, { secret: Buffer.alloc(32, 1) })
  const item = madeItem(5000)
  t.ok(await first.accept(item))
  await first.end(true)
  const other = await storingMachine(objects, { secret: Buffer.alloc(32, 2) })
  t.equal(other.uploads.find(item.id), undefined)
  await other.end(true)
  t.equal(groupsOf(objects).length, 1, 'and is not removed')
  const [key = ''] = groupsOf(objects)
  const held = objects.objects.get(key)
  if (held === undefined) throw new Error('it is gone')
  const bytes = Buffer.from(held.bytes)
  bytes[bytes.length - 1] = (bytes.at(-1) ?? 0) ^ 1
  objects.objects.set(key, { ...held, bytes })
  const third = await storingMachine(objects, { secret: Buffer.alloc(32, 1) })
  t.teardown(() => third.end())
  t.equal(third.uploads.find(item.id), undefined, 'bytes that were changed are not taken')
})

t.test('a store that refuses is asked again in its time, and what is in doubt is removed', async (t) => {
  const objects = lastingObjects()
  const machine = await storingMachine(objects, { doubtMs: 100 })
  t.teardown(() => machine.end())
  const item = madeItem(5000)
  const put = objects.put.bind(objects)
  // It is carried out, and the answer does not come.
  objects.put = async (key, content) => {
    await put(key, content)
    return refuse('late', 'upstream', 'it does not answer')
  }
  t.notOk(await machine.accept(item))
  objects.put = put
  t.equal(machine.uploads.find(item.id), undefined)
  t.equal(groupsOf(objects).length, 1)
  await eventually('it is removed', () => groupsOf(objects).length === 0)
  objects.fails = (operation) => (operation === 'put' ? refused : undefined)
  for (let tries = 0; tries < 5; tries += 1) t.notOk(await machine.accept(madeItem(5000)))
  const { refusal } = machine.stored
  t.ok(isRefusal(refusal), 'it is known before anything is charged')
  t.match(refusal?.message, /the object store takes nothing/)
  objects.fails = () => undefined
  await eventually('it takes items again', () => machine.accept(madeItem(5000)))
})

t.test('what is under way when a machine ends has no receipt', async (t) => {
  const objects = lastingObjects()
  const machine = await storingMachine(objects)
  const put = objects.put.bind(objects)
  objects.put = async (key, content) => {
    await pause(200)
    return put(key, content)
  }
  const items = Array.from({ length: 10 }, () => madeItem(2000))
  const accepting = items.map((item) => machine.accept(item))
  await pause(50)
  await Promise.all([machine.stored.close(), ...accepting])
  await machine.end(true)
  const next = await storingMachine(objects)
  t.teardown(() => next.end())
  const kept = await Promise.all(accepting)
  for (const [at, { id }] of items.entries()) if (kept[at] === true) t.ok(next.uploads.find(id) !== undefined)
  t.equal(kept.length, items.length, 'nobody waits for ever')
})
