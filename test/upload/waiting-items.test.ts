/** What waits to be worked on: whoever sends much of it delays nobody else. */
import t, { type Test } from 'tap'
import { pause } from '../../src/actor/clock.js'
import { silentLog } from '../../src/actor/log.js'
import { Meters, meterBytes } from '../../src/actor/meter.js'
import { meterTable } from '../../src/actor/meter-table.js'
import { type Id, idBytes, idOfBytes } from '../../src/format/id.js'
import { refuse } from '../../src/format/refusal.js'
import { sha256 } from '../../src/proof/digest.js'
import { Bundles } from '../../src/upload/bundling/bundle-records.js'
import { Bundler } from '../../src/upload/bundling/bundler.js'
import type { BundlerParts } from '../../src/upload/bundling/bundler-parts.js'
import { OpeningShares } from '../../src/upload/intake/opening-shares.js'
import type { OpeningLine } from '../../src/upload/records/opening-lines.js'
import { type AcceptedItem, openUploadTables, Uploads } from '../../src/upload/records/uploads.js'
import { turnOf } from '../../src/upload/records/waiting-lines.js'
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
      tip: async () => {
        calls.push('tip')
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

t.test('bundles that are to be opened have turns of those who sent them', async (t) => {
  const { environment } = tablesOf(t)
  const { opening } = new Uploads(environment)
  const uploads = new Uploads(environment)
  let made = 0
  const accept = (address: string | undefined, itemsInside?: number): Id => {
    made += 1
    const item = itemOf(made, made)
    const turn = address && turnOf({ keys: [`r:${address}`, `w:${made}`], bytes: 1 })
    const bundle = { ...item, isBundle: true as const, ...(itemsInside === undefined ? {} : { itemsInside }) }
    uploads.accept([turn === undefined ? bundle : { ...bundle, turn }], () => undefined)
    return item.id
  }
  for (let at = 0; at < 300; at += 1) accept(`10.1.${at % 200}.${at % 3}`, 560)
  const [large, small] = [accept('10.2.0.1', 560), accept('10.2.0.1', 3)]
  const [paid, paidLarge] = [accept(undefined, 3), accept(undefined, 560)]
  t.strictSame([opening.round(0), opening.round(1), opening.round(2)], [[paid], [small], [paidLarge]])
  t.ok(opening.round(3).slice(0, 2).includes(large), 'who has sent one has the second turn at the latest')
  t.strictSame(opening.round(4), [])
  environment.write(() => {
    for (const id of [paid, small]) uploads.opened(id)
  })
  t.strictSame([opening.round(0), opening.round(1)], [[], []])
  t.notOk(uploads.isUnopened(small))
  t.ok(uploads.isUnopened(large))
  // Accepted anew.
  const again = itemOf(3000, 5)
  for (const receivedMs of [5, 6])
    uploads.accept([{ ...again, receivedMs, isBundle: true, itemsInside: 1 }], () => undefined)
  t.equal(opening.round(0).length, 1)
})

t.test('bundles of an older release are opened, too', async (t) => {
  const { environment } = tablesOf(t)
  const { opening } = new Uploads(environment)
  const { id } = itemOf(1, 1)
  environment.write(() => environment.table('unopened').put(idBytes(id), new Uint8Array(0)))
  t.strictSame(opening.round(4), [id])
  environment.write(() => opening.remove(id))
  t.strictSame(opening.round(4), [])
  const uploads = new Uploads(environment)
  for (let at = 2; at < 100; at += 1)
    uploads.accept([{ ...itemOf(at, at), isBundle: true, itemsInside: 1 }], () => undefined)
  const gone = Array.from({ length: 97 }, (_, at) => itemOf(at + 2, 1).id)
  // It has opened all but the last, and left what it does not know.
  environment.write(() => {
    for (const one of gone) environment.table('unopened').remove(idBytes(one))
  })
  t.strictSame(opening.round(0), [itemOf(99, 1).id])
  environment.write(() => opening.remove(itemOf(99, 1).id))
  t.strictSame(opening.round(0), [])
  t.equal(environment.table('opening-paid').count(), 0)
})

t.test('a flood of large free bundles leaves their shares to all others', async (t) => {
  const shares = new OpeningShares()
  const done = [0, 0, 0, 0, 0]
  const run = (steps: number, lines: readonly OpeningLine[]): void => {
    for (let step = 0; step < steps; step += 1) {
      const line = shares.next((one) => lines.includes(one))
      if (line === undefined) throw new Error('one of them has some')
      done[line] = (done[line] ?? 0) + 256
      shares.charge(line, 256)
    }
  }
  run(100, [3])
  t.equal(
    shares.next((one) => one === 3 || one === 1),
    1,
    'a small one goes before the rest of the flood',
  )
  done.fill(0)
  run(170, [0, 1, 2, 3])
  t.strictSame(
    done.map((items) => Math.round(items / 256 / 10)),
    [8, 4, 4, 1, 0],
  )
  t.equal(
    shares.next(() => false),
    undefined,
  )
})
