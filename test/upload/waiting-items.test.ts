/** What waits to be worked on: whoever sends much of it delays nobody else. */
import t, { type Test } from 'tap'
import { pause } from '../../src/actor/clock.js'
import { silentLog } from '../../src/actor/log.js'
import { Meters, meterBytes } from '../../src/actor/meter.js'
import { meterTable } from '../../src/actor/meter-table.js'
import { idOfBytes } from '../../src/format/id.js'
import { refuse } from '../../src/format/refusal.js'
import { sha256 } from '../../src/proof/digest.js'
import { Bundles } from '../../src/upload/bundling/bundle-records.js'
import { Bundler, type BundlerParts } from '../../src/upload/bundling/bundler.js'
import { type AcceptedItem, openUploadTables, Uploads } from '../../src/upload/records/uploads.js'
import { HandClock } from '../http/hand-clock.js'
import { type CountedReads, countedReads } from './counted-reads.js'

function tablesOf(t: Test): CountedReads {
  const environment = openUploadTables(t.testdir())
  t.teardown(() => environment.close())
  return countedReads(environment)
}

function itemOf(at: number, receivedMs: number): AcceptedItem {
  return {
    id: idOfBytes(sha256(Buffer.from(`item ${at}`))),
    headerSize: 10,
    owner: 'o'.repeat(43),
    receivedMs,
    deadlineHeight: 1,
    winc: '0',
    place: { file: 1, offset: 0, sizeBytes: 100 },
  }
}

t.test('items that wait for others are not all read again in each round', async (t) => {
  const counted = tablesOf(t)
  const uploads = new Uploads(counted.environment)
  const clock = new HandClock()
  let nowMs = 1000
  clock.now = () => nowMs
  const calls: string[] = []
  const bundler = new Bundler({
    uploads,
    bundles: new Bundles(counted.environment, uploads),
    clock,
    logger: silentLog,
    height: () => 1,
    chain: {
      anchor: async () => {
        calls.push('anchor')
        return refuse('busy', 'upstream', 'away')
      },
      price: async () => 1n,
    },
    rules: { itemsMax: 1000, bytesMax: 50_000, waitMs: 60_000, everyMs: 250, depth: 1, lookMs: 1 },
    meters: new Meters(meterTable, new SharedArrayBuffer(meterBytes(meterTable, 1)), 0),
  } as unknown as BundlerParts)
  bundler.start()
  t.teardown(() => bundler.close())
  const round = async (): Promise<number> => {
    counted.reads = 0
    clock.jump(5000)
    await pause(5)
    return counted.reads
  }
  const accept = (from: number, until: number): void => {
    const items = Array.from({ length: until - from }, (_, at) => itemOf(from + at, nowMs))
    uploads.accept(items, () => undefined)
  }
  t.ok((await round()) < 5)
  accept(0, 400)
  await round()
  t.ok((await round()) < 5, 'none is full or due')
  t.strictSame(calls, [])
  accept(400, 501)
  t.ok((await round()) > 500, 'its bytes fill a bundle')
  t.equal(calls.length, 1)
  nowMs += 60_000
  clock.jump(1)
  await pause(5)
  t.equal(calls.length, 1, 'a node that is away is not asked in every round')
  await round()
  t.equal(calls.length, 2)
})

t.test('bundles that are to be opened have their turn, whatever ids others make', async (t) => {
  const { environment } = tablesOf(t)
  const uploads = new Uploads(environment)
  const idAt = (first: number) => idOfBytes(Buffer.alloc(32, first))
  const accept = (first: number): void =>
    uploads.accept([{ ...itemOf(0, 1), id: idAt(first), isBundle: true }], () => undefined)
  for (const first of [10, 200, 250]) accept(first)
  const turns = [uploads.nextUnopened()]
  for (let turn = 0; turn < 3; turn += 1) {
    accept(20 + turn)
    turns.push(uploads.nextUnopened(turns.at(-1)))
  }
  t.strictSame(turns, [10, 20, 21, 22].map(idAt))
  for (let turn = 0; turn < 3; turn += 1) {
    accept(1 + turn)
    turns.push(uploads.nextUnopened(turns.at(-1)))
  }
  t.strictSame(turns.slice(4), [200, 250, 1].map(idAt))
  t.equal(uploads.nextUnopened(idAt(255)), idAt(1))
})
