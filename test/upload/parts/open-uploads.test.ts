/** Uploads that strangers begin: what each costs all others, by a clock that is turned. */

import { randomUUID } from 'node:crypto'
import { mkdirSync, readdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { systemClock } from '../../../src/actor/clock.js'
import { HeldMemory } from '../../../src/actor/held-memory.js'
import { silentLog } from '../../../src/actor/log.js'
import { idOfBytes } from '../../../src/format/id.js'
import type { Environment } from '../../../src/store/lmdb.js'
import { type MultipartRecord, uploadLivesMs } from '../../../src/upload/parts/multipart-record.js'
import { MultipartRecords } from '../../../src/upload/parts/multipart-records.js'
import { OpenUploads, type OpenUploadsParts } from '../../../src/upload/parts/open-uploads.js'
import { PartFiles } from '../../../src/upload/parts/part-files.js'
import { uploaderIn } from '../../../src/upload/parts/upload-outcome.js'
import { openUploadTables, Uploads } from '../../../src/upload/records/uploads.js'
import { HeldRoom, sharesOfParts, sharesOfRequests } from '../../../src/upload/room/held-room.js'
import { eventually } from '../../eventually.js'
import { HandClock } from '../../http/hand-clock.js'
import { scratch } from '../../scratch.js'
import { countedReads } from '../counted-reads.js'

/** Time of day and timers that go on together. */
class DayClock extends HandClock {
  readonly #startMs = 1_700_000_000_000
  readonly #later = new Set<() => void>()
  override now = (): number => this.#startMs + this.monotonic()
  override after = (_: number, act: () => void): { cancel: () => void } => {
    this.#later.add(act)
    return { cancel: () => this.#later.delete(act) }
  }
  /** When its time has come: a day of half seconds would be 170,000 sweeps. */
  override every(ms: number, act: () => void): { cancel: () => void } {
    let nextMs = this.monotonic() + ms
    return super.every(ms, () => {
      if (this.monotonic() < nextMs) return
      nextMs = this.monotonic() + ms
      act()
    })
  }
  /** Runs what waits for a moment to come. False: nothing does. */
  settle(): boolean {
    const acts = [...this.#later]
    this.#later.clear()
    for (const act of acts) act()
    return acts.length > 0
  }
}

/** From one sweep to the next. */
const sweepMs = 600_000

/** The program has ten thousand. */
const placesMax = 500

/** Sweeps until nothing is left to be swept. */
async function settled(clock: DayClock, records: MultipartRecords): Promise<void> {
  do await records.written()
  while (clock.settle())
}

const disk = { leftBytes: 1e15, expect: () => undefined }

const never = (): never => {
  throw new Error('no item is made in this test')
}

interface Scene {
  readonly clock: DayClock
  readonly records: MultipartRecords
  readonly folder: string
  readonly open: OpenUploads
}

function sceneOf(
  t: Test,
  environment: Environment,
  clock = new DayClock(),
  folder = scratch('parts'),
): Scene {
  const records = new MultipartRecords(environment, systemClock)
  const intake = { take: never, receipt: never } as unknown as OpenUploadsParts['intake']
  const open = new OpenUploads({
    intake,
    itemLog: { draft: never } as unknown as OpenUploadsParts['itemLog'],
    itemMaxBytes: 1e9,
    blockedOwners: new Set(),
    noRoomFor: () => undefined,
    arriving: new HeldRoom({ ...sharesOfRequests, disk }),
    memory: new HeldMemory(1e9),
    uploads: new Uploads(environment),
    records,
    files: new PartFiles(folder),
    partsRoom: new HeldRoom({ ...sharesOfParts, placesMax, maxBytes: 1e12, disk }),
    clock,
    logger: silentLog,
  })
  t.teardown(() => open.close())
  return { clock, records, folder, open }
}

function tablesOf(t: Test): Environment {
  const environment = openUploadTables(scratch('parts'))
  t.teardown(() => environment.close())
  return environment
}

/** Records as strangers leave them, straight into the tables as an earlier release did. */
function fill(environment: Environment, count: number, more: (at: number) => Partial<MultipartRecord>): void {
  const table = environment.table('multipart')
  environment.write(() => {
    for (let at = 0; at < count; at += 1) {
      const id = randomUUID()
      const usual = { id, chunkBytes: 5_242_880, createdMs: 0, changedMs: 0, state: 'finalized' }
      table.put(Buffer.from(id), Buffer.from(JSON.stringify({ ...usual, ...more(at) })))
    }
  })
}

t.test('the address of an uploader is read in the words of older releases, too', (t) => {
  const record = { uploader: { range: '203.0.113.7', paidBy: ['w'] } } as unknown as MultipartRecord
  t.strictSame(uploaderIn(record), { address: '203.0.113.7', token: undefined, paidBy: ['w'] })
  const known = {
    uploader: { address: '203.0.113.8', token: 'solana', paidBy: [] },
  } as unknown as MultipartRecord
  t.strictSame(uploaderIn(known), known.uploader)
  t.end()
})

t.test('a beginning reads as little with many records as with none', async (t) => {
  const counted = countedReads(tablesOf(t))
  const clock = new DayClock()
  const cost = async (): Promise<number> => {
    const { open } = sceneOf(t, counted.environment, clock)
    counted.reads = 0
    const begun = open.begin({ chunkBytes: 5_242_880, client: '192.0.2.1' })
    if ('status' in begun) throw new Error('it was not begun')
    await open.begun(begun)
    return counted.reads
  }
  const empty = await cost()
  fill(counted.environment, 5000, () => ({ createdMs: clock.now() }))
  const many = await cost()
  t.ok(empty > 0 && many <= empty * 1.5, `${many} reads, and ${empty} where there is none`)
})

t.test('what is a day old is gone, in turns that leave time for others', async (t) => {
  const environment = tablesOf(t)
  const clock = new DayClock()
  fill(environment, 650, (at) => ({
    createdMs: clock.now() + (at < 600 ? 0 : 3600_000),
    state: at % 3 === 0 ? 'open' : at % 3 === 1 ? 'finalized' : 'invalid',
  }))
  const { records, open } = sceneOf(t, environment, clock)
  const left = (): number => environment.table('multipart').count()
  clock.turn(uploadLivesMs + sweepMs)
  await records.written()
  t.equal(left(), 350, 'not all at once')
  await settled(clock, records)
  t.equal(left(), 50)
  t.equal(environment.table('multipart-due').count(), 50)
  t.equal(open.listed(0).open, 17)
  t.equal(records.failed, 16)
  clock.turn(3600_000)
  await settled(clock, records)
  t.equal(left(), 0)
  t.equal(environment.table('multipart-due').count(), 0)
  t.equal(open.listed(0).open, 0)
})

t.test('the order of what is due is made anew where it does not fit the records', async (t) => {
  const environment = tablesOf(t)
  const clock = new DayClock()
  fill(environment, 20, () => ({ createdMs: clock.now(), state: 'open' }))
  const first = new MultipartRecords(environment, systemClock)
  const ids = first.due('open', Infinity, Infinity).map(({ id }) => id)
  t.equal(ids.length, 20)
  // An earlier release knows nothing of the order: one record less and another one more.
  environment.write(() => environment.table('multipart').remove(Buffer.from(ids[0] ?? '')))
  fill(environment, 1, () => ({ createdMs: 5, state: 'invalid' }))
  const second = new MultipartRecords(environment, systemClock)
  t.equal(second.due('open', Infinity, Infinity).length, 19)
  t.match(second.due('failed', Infinity, 10), [{ createdMs: 5 }])
  t.equal(second.failed, 1)
})

t.test('uploads of ten networks in all places leave room for another network', async (t) => {
  const environment = tablesOf(t)
  const clock = new DayClock()
  const folder = scratch('parts')
  const held: string[] = []
  fill(environment, placesMax, (at) => ({
    createdMs: clock.now() + at,
    state: 'open',
    client: `198.51.${at % 10}.${(at >> 4) & 255}`,
  }))
  for (const { id } of new MultipartRecords(environment, systemClock).due('open', Infinity, 30)) {
    mkdirSync(join(folder, id))
    writeFileSync(join(folder, id, '0'), 'x')
    held.push(id)
  }
  const { open, records } = sceneOf(t, environment, clock, folder)
  clock.turn(sweepMs)
  for (let at = 0; at < 50; at += 1)
    t.notMatch(open.begin({ chunkBytes: 5_242_880, client: `203.0.${at}.1` }), { status: Number })
  t.equal(open.listed(0).open, placesMax)
  t.equal(
    held.filter((id) => records.find(id) === undefined).length,
    0,
    'who has sent a part keeps it longer',
  )
  // One stranger goes on and on: only his own go.
  const friends = Array.from({ length: 5 }, (_, at) =>
    open.begin({ chunkBytes: 5_242_880, client: `10.0.${at}.1` }),
  )
  for (let at = 0; at < 600; at += 1) open.begin({ chunkBytes: 5_242_880, client: `198.51.3.${at % 256}` })
  for (const friend of friends) t.ok('id' in friend && open.live(friend.id) !== undefined)
})

t.test('what some machine may accept gives its place up for nobody', async (t) => {
  const environment = tablesOf(t)
  const facts = { winc: '1', transaction: '0x', payer: '0x', network: 'base', lines: '' }
  const paid = { payment: 'p', bytes: 1, facts }
  const begunItem = idOfBytes(Buffer.alloc(32, 1))
  fill(environment, 1, () => ({ createdMs: systemClock.now(), state: 'open', paid, begunItem }))
  const { open, records } = sceneOf(t, environment)
  const [earlier] = records.due('open', Infinity, 1)
  const begun = open.begin({ chunkBytes: 5_242_880, paid })
  if ('status' in begun) throw new Error('it was not begun')
  const isHeld = (id: string): boolean | undefined => open.live(id)?.holder.isUndecided
  t.equal(isHeld(begun.id), false)
  open.put({ ...begun, state: 'asked', begunItem })
  t.equal(isHeld(begun.id), true)
  open.put({ ...begun, state: 'asked' })
  t.equal(isHeld(begun.id), false)
  t.equal(isHeld(earlier?.id ?? ''), true, 'one of an earlier process')
})

t.test('of what came to nothing the oldest is forgotten first', async (t) => {
  const environment = tablesOf(t)
  const clock = new DayClock()
  fill(environment, 10_150, (at) => ({ createdMs: clock.now() + at, state: 'invalid' }))
  fill(environment, 5, () => ({ createdMs: clock.now() - 1000, state: 'finalized' }))
  const beganMs = clock.now()
  const { records } = sceneOf(t, environment, clock)
  clock.turn(sweepMs)
  await settled(clock, records)
  t.equal(records.failed, 10_000)
  t.equal(records.due('finalized', Infinity, 10).length, 5)
  t.match(records.due('failed', Infinity, 1), [{ createdMs: beganMs + 150 }])
})

t.test('a clock that is a day ahead at the start, and is set soon, ends no upload', async (t) => {
  const environment = tablesOf(t)
  const clock = new DayClock()
  fill(environment, 3, () => ({ createdMs: clock.now() - 25 * 3600_000, state: 'open' }))
  const { open, records } = sceneOf(t, environment, clock)
  await settled(clock, records)
  t.equal(open.listed(0).open, 3)
  clock.turn(sweepMs)
  await settled(clock, records)
  t.equal(open.listed(0).open, 0, 'and one that stays so does')
})

t.test('one that starts again and again before its first sweep removes what is over', async (t) => {
  const environment = tablesOf(t)
  const clock = new DayClock()
  const ofDay = (day: number) => () => {
    const changedMs = clock.now() + day * 25 * 3600_000
    return { createdMs: changedMs, changedMs, state: 'open' } as const
  }
  fill(environment, 150, ofDay(-1))
  fill(environment, 2, ofDay(0))
  const started = async (): Promise<number> => {
    // In the order in which an earlier process has left them.
    new MultipartRecords(environment, systemClock)
    const { open, records } = sceneOf(t, environment, clock)
    await settled(clock, records)
    return open.listed(0).open
  }
  t.equal(await started(), 2)
  // Begun while the clock was ahead.
  fill(environment, 1, ofDay(1))
  t.equal(await started(), 3, 'what is not over yet stays')
})

t.test('files of a dropped upload are gone', async (t) => {
  const { open, folder } = sceneOf(t, tablesOf(t))
  const begun = open.begin({ chunkBytes: 5_242_880 })
  if ('status' in begun) throw new Error('it was not begun')
  mkdirSync(join(folder, begun.id))
  writeFileSync(join(folder, begun.id, '0'), 'x')
  open.drop(begun.id)
  t.ok(await eventually('the folder is empty', () => readdirSync(folder).length === 0))
})
