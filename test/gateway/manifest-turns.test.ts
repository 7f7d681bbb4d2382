/** Manifests that take long to read: those of one client keep no other client from having his. */

import t from 'tap'
import { systemClock } from '../../src/actor/clock.js'
import { isRefusal, type Refusal, refuse } from '../../src/format/refusal.js'
import { OpenManifests } from '../../src/gateway/open-manifests.js'
import type { ManifestFrom } from '../../src/source/source-messages.js'
import { eventually } from '../eventually.js'

const late = refuse('upstream', 'upstream', 'the text is gone')

t.test('one client has one read at a time, and another has his turn meanwhile', async (t) => {
  const reads: ((outcome: Refusal) => void)[] = []
  const transfers = {
    manifest: () =>
      new Promise<Refusal>((resolve) => {
        reads.push(resolve)
      }),
  }
  const manifests = new OpenManifests(transfers, 10, 64, systemClock)
  t.teardown(() => manifests.close())
  const from = {} as ManifestFrom
  const greedy = Array.from({ length: 8 }, (_, at) => manifests.resolve(`${at}`, from, 'a', '203.0.113.1'))
  await eventually('one has begun', async () => reads.length === 1)
  const other = manifests.resolve('other', from, 'a', '198.51.100.1')
  await eventually('the other client has his, too', async () => reads.length >= 2)
  t.equal(reads.length, 2)
  reads[1]?.(late)
  t.ok(isRefusal(await other))
  t.match(await manifests.resolve('ninth', from, 'a', '203.0.113.1'), { refused: 'busy' }, 'too many of one')
  for (let at = 0; at < 9; at += 1) {
    await eventually(`read ${at} has begun`, async () => reads.length > at)
    reads[at]?.(late)
  }
  for (const outcome of await Promise.all(greedy)) t.ok(isRefusal(outcome))
})

t.test('who wants the manifest of a client with many others does not wait behind those', async (t) => {
  const reads: string[] = []
  const ends: (() => void)[] = []
  const transfers = {
    manifest: (from: ManifestFrom) =>
      new Promise<Refusal>((resolve) => {
        reads.push(String('reader' in from && from.reader))
        ends.push(() => resolve(late))
      }),
  }
  const manifests = new OpenManifests(transfers, 10, 64, systemClock)
  t.teardown(() => manifests.close())
  const wanted = (reader: number, client: string): Promise<unknown> =>
    manifests.resolve(`${reader}`, { reader }, 'a', client)
  const all = [1, 2, 3, 4].map((reader) => wanted(reader, '203.0.113.1'))
  all.push(wanted(4, '198.51.100.1'), wanted(4, '198.51.100.1'))
  await eventually('it is read with the turn of the second client', () => reads.includes('4'))
  t.strictSame(reads, ['1', '4'])
  for (let at = 0; at < 4; at += 1) {
    await eventually(`read ${at} has begun`, () => ends.length > at)
    ends[at]?.()
  }
  for (const outcome of await Promise.all(all)) t.ok(isRefusal(outcome))
  t.equal(reads.length, 4, 'once')
})

t.test('what was read with the turn of another client is no share of the first one any more', async (t) => {
  const ends: (() => void)[] = []
  const transfers = {
    manifest: () => new Promise<Refusal>((resolve) => ends.push(() => resolve(late))),
  }
  const manifests = new OpenManifests(transfers, 10, 64, systemClock)
  t.teardown(() => manifests.close())
  const wanted = (name: string, client: string) => manifests.resolve(name, {} as ManifestFrom, 'a', client)
  const all = Array.from({ length: 8 }, (_, at) => wanted(`${at}`, '203.0.113.1'))
  const other = wanted('7', '198.51.100.1')
  await eventually('the last is read with the turn of the second client', () => ends.length === 2)
  ends[1]?.()
  t.ok(isRefusal(await other))
  const ninth = wanted('ninth', '203.0.113.1')
  for (let at = 0; at < 9; at += 1) {
    if (at === 1) continue
    await eventually(`read ${at} has begun`, () => ends.length > at)
    ends[at]?.()
  }
  t.match(await ninth, late)
  await Promise.all(all)
})
