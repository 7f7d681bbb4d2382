import { randomBytes } from 'node:crypto'
import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { type Clock, systemClock } from '../../../src/actor/clock.js'
import { silentLog } from '../../../src/actor/log.js'
import { encodeBase64url } from '../../../src/format/base64url.js'
import { type Id, idOfBytes } from '../../../src/format/id.js'
import { isRefusal, type Refusal, refuse } from '../../../src/format/refusal.js'
import { ed25519Signer, signItem } from '../../../src/proof/sign.js'
import type { Found, Source } from '../../../src/source/source.js'
import { hedged } from '../../../src/source/tier/hedged-source.js'
import { openEnvironment } from '../../../src/store/lmdb.js'
import { followerDefaults, NeighbourFollower } from '../../../src/upload/stored/neighbour-follower.js'
import { NeighbourRecords } from '../../../src/upload/stored/neighbour-records.js'
import { NeighbourSource } from '../../../src/upload/stored/neighbour-source.js'
import { RecentObjects } from '../../../src/upload/stored/recent-objects.js'
import { encodeGroupName, StoredKeys } from '../../../src/upload/stored/stored-keys.js'
import { type MadeItem, madeItem } from '../../conformance/kept-uploads.js'
import { lastingObjects, MemoryObjects } from '../../engines/memory-objects.js'
import { eventually } from '../../eventually.js'
import { scratch } from '../../scratch.js'
import { headerOf } from '../../signed-item.js'
import { type StoringMachine, storingMachine } from '../stored-rig.js'

const signer = ed25519Signer(Buffer.alloc(32, 44))
const keys = new StoredKeys('p')
/** An item that its owner signed. */
function signed(sizeBytes: number): MadeItem & { readonly payload: Buffer } {
  const made = madeItem(200)
  const payload = Buffer.alloc(sizeBytes, encodeBase64url(made.bytes))
  const bytes = Buffer.from(signItem(signer, {}, payload))
  const header = headerOf(bytes)
  const { id, headerSize } = header
  return { ...made, id, bytes, payload, headerSize, logged: { ...made.logged, id, headerSize } }
}

interface Reader {
  readonly source: NeighbourSource
  readonly follower: NeighbourFollower
  readonly records: NeighbourRecords
  read(id: Id): Promise<Buffer | Refusal>
}

function readerOf(
  t: Test,
  objects: MemoryObjects,
  node = 'two',
  isAlone = true,
  clock: Clock = systemClock,
): Reader {
  const folder = join(scratch('neighbours'), 'db')
  mkdirSync(folder)
  const environment = openEnvironment(folder)
  const records = new NeighbourRecords(environment)
  const recent = new RecentObjects(objects)
  const parts = { store: objects, recent, keys, node, records, isAlone, clock, log: silentLog }
  const follower = new NeighbourFollower(parts, followerDefaults)
  const source = new NeighbourSource(records, follower, recent, keys, () => undefined)
  t.teardown(async () => {
    await follower.stop()
    await environment.close()
  })
  const { signal } = new AbortController()
  return {
    source,
    follower,
    records,
    async read(id) {
      const found = await source.open({ id, hints: {}, avoid: new Set(), window: undefined } as never, signal)
      if (isRefusal(found)) return found
      const pieces: Uint8Array[] = []
      for await (const piece of found.body) {
        if (isRefusal(piece)) return piece
        pieces.push(Buffer.from(piece))
      }
      return Buffer.concat(pieces)
    },
  }
}

async function scene(t: Test): Promise<{ objects: MemoryObjects; machine: StoringMachine; reader: Reader }> {
  const objects = lastingObjects()
  const machine = await storingMachine(objects)
  t.teardown(() => machine.end())
  const reader = readerOf(t, objects)
  await reader.follower.fresh()
  return { objects, machine, reader }
}

const requested = ({ calls }: MemoryObjects): number => calls.get + calls.list + calls.head

t.test(
  'an upload of another machine is read at once, by two requests, and by one when it is known',
  async (t) => {
    const { objects, machine, reader } = await scene(t)
    for (const size of [0, 3000, 100_000, 800_000, 2_000_000]) {
      const item = signed(size)
      t.ok(await machine.accept(item))
      const before = requested(objects)
      const bytes = await reader.read(item.id)
      t.ok(Buffer.isBuffer(bytes) && bytes.equals(item.payload), `${size} bytes`)
      t.ok(requested(objects) - before <= 2, `${requested(objects) - before} requests`)
      const again = requested(objects)
      t.ok(Buffer.isBuffer(await reader.read(item.id)))
      t.ok(requested(objects) - again <= 1)
    }
  },
)

t.test('a machine of a cluster serves the first upload of another one at once', async (t) => {
  const objects = lastingObjects()
  const reader = readerOf(t, objects, 'two', false)
  await reader.follower.fresh()
  const machine = await storingMachine(objects)
  t.teardown(() => machine.end())
  const item = signed(3000)
  t.ok(await machine.accept(item))
  const bytes = await reader.read(item.id)
  t.ok(Buffer.isBuffer(bytes) && bytes.equals(item.payload))
})

t.test(
  'a machine that has just started serves what others had accepted, or states that it cannot',
  async (t) => {
    const objects = lastingObjects()
    const machine = await storingMachine(objects)
    t.teardown(() => machine.end())
    const item = signed(3000)
    t.ok(await machine.accept(item))
    const reader = readerOf(t, objects)
    objects.fails = () => refuse('late', 'upstream', 'it does not answer')
    t.match(await reader.read(item.id), { refused: 'late' })
    objects.fails = () => undefined
    const bytes = await reader.read(item.id)
    t.ok(Buffer.isBuffer(bytes) && bytes.equals(item.payload))
  },
)

/** Stands for what the network has. */
const networkFound = { name: 'network' } as Found

/** Names of so many groups with one large item each, an hour old. */
function oldNames(count: number): string[] {
  const atMs = systemClock.now() - 3_600_000
  return Array.from({ length: count }, (_, at) => {
    const only = { id: idOfBytes(randomBytes(32)), headerSize: 1000 }
    const sizes = { directoryBytes: 100, headBytes: 100, totalBytes: 5_000_000 }
    return encodeGroupName({ atMs: atMs + at, random: '0'.repeat(16), node: 'one', only, ...sizes })
  })
}

t.test('a first look at many groups keeps no reader waiting', async (t) => {
  const objects = lastingObjects()
  const machine = await storingMachine(objects)
  t.teardown(() => machine.end())
  const [old, young] = [signed(3000), signed(3000)]
  const nameOf = (item: MadeItem): string => machine.uploads.find(item.id)?.stored ?? ''
  for (const item of [old, young]) t.ok(await machine.accept(item))
  const kept = objects.objects.get(keys.group(nameOf(old)))
  if (kept === undefined) throw new Error('it is gone')
  const aged = nameOf(old).replace(/^\d+/, String(systemClock.now() - 600_000).padStart(15, '0'))
  objects.objects.delete(keys.group(nameOf(old)))
  objects.objects.set(keys.group(aged), kept)
  const listed = [...objects.objects.keys(), ...oldNames(20_000).map((name) => keys.group(name))].sort()
  let release = (): void => undefined
  const held = new Promise<void>((resolve) => {
    release = resolve
  })
  let pages = 0
  objects.list = async (_, after) => {
    const from = after === undefined ? 0 : listed.findIndex((name) => name > after)
    const page = from === -1 ? [] : listed.slice(from, from + 1000)
    if (page.length === 1000) pages += 1
    if (pages > 3 && page.length === 1000) await held
    return { keys: page, hasMore: page.length === 1000 }
  }
  const { source, follower, records, read } = readerOf(t, objects, 'two', false)
  follower.start()
  const bytes = await read(young.id)
  t.ok(Buffer.isBuffer(bytes) && bytes.equals(young.payload), 'what came last is known at once')
  const network: Source = { name: 'network', open: async () => networkFound }
  const { signal } = new AbortController()
  const wanted = { id: old.id, hints: {}, avoid: new Set<string>(), provenance: {} } as never
  t.equal(await hedged(source, network, 250).open(wanted, signal), networkFound, 'the network serves a miss')
  t.match(await read(signed(1).id), { refused: 'late' }, 'it may be there')
  t.match(await read(signed(1).id), { refused: 'late' })
  t.ok(records.count < 10_000, 'the look is not over')
  release()
  await eventually('the item is found', async () => {
    const found = await read(old.id)
    return Buffer.isBuffer(found) && found.equals(old.payload)
  })
  await eventually('all are known', () => records.count === 20_002)
  t.match(await read(signed(1).id), { refused: 'unknown' })
})

t.test('uploads of a time in which a machine was gone or stood still are not missed', async (t) => {
  const objects = lastingObjects()
  const machine = await storingMachine(objects)
  t.teardown(() => machine.end())
  let aheadMs = 120_000
  const clock: Clock = {
    ...systemClock,
    now: () => systemClock.now() + aheadMs,
    monotonic: () => systemClock.monotonic() + aheadMs,
  }
  const [first, second, third] = [signed(3000), signed(3000), signed(3000)]
  t.ok(await machine.accept(first))
  const reader = readerOf(t, objects, 'two', false, clock)
  t.ok(Buffer.isBuffer(await reader.read(first.id)), 'what came before the start')
  aheadMs = 0
  const still = readerOf(t, objects, 'three', false, clock)
  await still.follower.fresh()
  t.ok(await machine.accept(second))
  aheadMs = 120_000
  t.ok(Buffer.isBuffer(await still.read(second.id)), 'what came while it stood still')
  aheadMs = 0
  const cut = readerOf(t, objects, 'four', false, clock)
  await cut.follower.fresh()
  t.ok(await machine.accept(third))
  aheadMs = 120_000
  objects.fails = () => refuse('late', 'upstream', 'it does not answer')
  t.match(await cut.read(third.id), { refused: 'late' })
  objects.fails = () => undefined
  t.ok(Buffer.isBuffer(await cut.read(third.id)), 'what came while the store did not answer')
})

t.test(
  'a thousand reads of what is known cost a request each, and what is nowhere shares lists',
  async (t) => {
    const { objects, machine, reader } = await scene(t)
    const items = Array.from({ length: 300 }, () => signed(10_000))
    t.ok((await Promise.all(items.map((item) => machine.accept(item)))).every(Boolean))
    await reader.follower.fresh()
    const before = requested(objects)
    for (let turn = 0; turn < 1000; turn += 1) await reader.read(items[turn % 300]?.id as Id)
    t.ok(requested(objects) - before <= 1000, `${requested(objects) - before} requests`)
    const between = requested(objects)
    const absent = await Promise.all(Array.from({ length: 1000 }, () => reader.read(signed(1).id)))
    t.ok(absent.every((one) => isRefusal(one) && one.refused === 'unknown'))
    t.ok(requested(objects) - between <= 2, `${requested(objects) - between} requests`)
  },
)

t.test('requests for a read do not grow with the machines', async (t) => {
  for (const count of [1, 3, 6]) {
    const objects = lastingObjects()
    const names = Array.from({ length: count }, (_, at) => `node${at}`)
    const machines = await Promise.all(names.map((node) => storingMachine(objects, { node })))
    const readers = names.map((node) => readerOf(t, objects, node))
    const items = Array.from({ length: 36 }, () => signed(2000))
    const puts = objects.calls.put
    const taking = items.map((item, at) => machines[at % count]?.accept(item))
    t.ok((await Promise.all(taking)).every(Boolean))
    const groups = objects.calls.put - puts
    await Promise.all(readers.map((reader) => reader.follower.fresh()))
    const reader = readers[0]
    const others = items.filter((_, at) => at % count !== 0)
    const before = requested(objects)
    for (const { id } of others) t.ok(Buffer.isBuffer(await reader?.read(id)))
    const reads = requested(objects) - before
    const between = requested(objects)
    for (let turn = 0; turn < 20; turn += 1) await reader?.read(signed(1).id)
    t.comment(
      `${count} machines: ${groups} PUTs for 36 uploads, ${reads} requests for ${others.length} reads, ` +
        `${requested(objects) - between} for 20 misses one after the other`,
    )
    t.ok(reads <= others.length)
    t.equal(requested(objects) - between, count === 1 ? 0 : 20, 'a list for each miss that comes alone')
    for (const machine of machines) await machine.end()
  }
})

t.test('a machine that is alone asks for nothing', async (t) => {
  const objects = new MemoryObjects()
  const reader = readerOf(t, objects)
  await reader.follower.fresh()
  const before = requested(objects)
  t.match(await reader.read(signed(10).id), { refused: 'unknown' })
  t.equal(requested(objects), before)
})

t.test('what is removed is forgotten', async (t) => {
  const { objects, machine, reader } = await scene(t)
  const item = signed(3000)
  t.ok(await machine.accept(item))
  await reader.follower.fresh()
  const { uploads } = machine
  const { stored = '' } = uploads.find(item.id) ?? {}
  t.ok(reader.records.has(stored))
  uploads.environment.write(() => {
    const found = uploads.find(item.id)
    if (found !== undefined) uploads.release(found)
  })
  await eventually('it is removed', () => !objects.objects.has(keys.group(stored)))
  const other = readerOf(t, objects)
  other.records.add([{ name: stored, entries: [] }])
  other.follower.start()
  await eventually('a look at all finds that it is gone', () => !other.records.has(stored))
})

t.test('an item of two groups is read as long as one of them is there', async (t) => {
  const { objects, machine, reader } = await scene(t)
  const item = signed(3000)
  t.ok(await machine.accept(item))
  await reader.follower.fresh()
  const name = machine.uploads.find(item.id)?.stored ?? ''
  const kept = objects.objects.get(keys.group(name))
  if (kept === undefined) throw new Error('it is gone')
  // A PUT that hung, whose uploader was refused and repeated the upload: it appears late, and is removed again.
  for (const random of ['0', 'f']) {
    const late = name.replace(/-[0-9a-f]{16}-/, `-${random.repeat(16)}-`)
    objects.objects.set(keys.group(late), kept)
    await reader.follower.fresh()
    t.ok(reader.records.has(late))
    objects.objects.delete(keys.group(late))
  }
  t.ok(Buffer.isBuffer(await reader.read(item.id)), 'by the group that is left')
  t.ok(Buffer.isBuffer(await reader.read(item.id)))
})

t.test(
  'of two readers that meet a removed group at once, neither forgets the one that is left',
  async (t) => {
    for (const outcome of ['gone', 'forged'] as const) {
      const { objects, machine, reader } = await scene(t)
      const item = signed(2_000_000)
      t.ok(await machine.accept(item))
      await reader.follower.fresh()
      const name = machine.uploads.find(item.id)?.stored ?? ''
      const kept = objects.objects.get(keys.group(name))
      if (kept === undefined) throw new Error('it is gone')
      const late = name.replace(/-[0-9a-f]{16}-/, `-${'f'.repeat(16)}-`)
      objects.objects.set(keys.group(late), kept)
      await reader.follower.fresh()
      t.ok(reader.records.has(late))
      if (outcome === 'gone') objects.objects.delete(keys.group(name))
      else objects.objects.set(keys.group(name), { ...kept, bytes: Buffer.alloc(kept.bytes.length) })
      await Promise.all([1, 2, 3].map(() => reader.read(item.id)))
      t.equal(reader.records.find(item.id)?.group, late, outcome)
      const bytes = await reader.read(item.id)
      t.ok(Buffer.isBuffer(bytes) && bytes.equals(item.payload), `${outcome}: by the group that is left`)
    }
  },
)

t.test('what an earlier release knew of groups is read anew', async (t) => {
  const folder = join(scratch('neighbours'), 'db')
  mkdirSync(folder)
  const environment = openEnvironment(folder)
  t.teardown(() => environment.close())
  const earlier = { groups: 'group', names: '0001', members: '0001id', items: 'id' }
  environment.write(() => {
    for (const [table, key] of Object.entries(earlier))
      environment.table(table).put(Buffer.from(key), Buffer.from('0001'))
  })
  const records = new NeighbourRecords(environment)
  t.notOk(records.has('group'), 'its items are not known, so it must be read')
  for (const table of Object.keys(earlier)) t.equal(environment.table(table).count(), 0, table)
})

t.test('a group that is not what it should be hurts nobody', async (t) => {
  const { objects, machine, reader } = await scene(t)
  const [item, other] = [signed(500_000), signed(3000)]
  t.ok(await machine.accept(item))
  const key = keys.group(machine.uploads.find(item.id)?.stored ?? '')
  const held = objects.objects.get(key)
  if (held === undefined) throw new Error('it is gone')
  const bytes = Buffer.from(held.bytes)
  bytes[bytes.length - 1] = (bytes.at(-1) ?? 0) ^ 1
  objects.objects.set(key, { ...held, bytes })
  t.match(await reader.read(item.id), { refused: 'forged' }, 'its owner did not sign that')
  t.match(await reader.read(item.id), { refused: 'unknown' })
  objects.objects.set(`${key.replace(/-(\d+)-/, '-9999-')}`, held)
  t.ok(await machine.accept(other))
  t.ok(Buffer.isBuffer(await reader.read(other.id)))
})

t.test('a store that does not answer is no proof that an upload is nowhere', async (t) => {
  const { objects, reader } = await scene(t)
  objects.fails = () => refuse('late', 'upstream', 'it does not answer')
  t.match(await reader.read(signed(10).id), { refused: 'late' })
})

t.test('what lies under an earlier name of this machine is that of a neighbour', async (t) => {
  const objects = lastingObjects()
  const earlier = await storingMachine(objects, { node: 'two' })
  const item = signed(2000)
  t.ok(await earlier.accept(item))
  await earlier.end()
  const reader = readerOf(t, objects)
  await reader.follower.fresh()
  t.ok(isRefusal(await reader.read(item.id)), 'its own uploads are on its disk')
  const later = await storingMachine(objects, { node: 'two--1' })
  await later.end()
  reader.follower.start()
  await eventually('it is read from the store', async () => !isRefusal(await reader.read(item.id)))
})
