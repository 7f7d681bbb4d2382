import t from 'tap'
import { pause } from '../../../src/actor/clock.js'
import { idOfBytes } from '../../../src/format/id.js'
import { isRefusal } from '../../../src/format/refusal.js'
import { DurableLog } from '../../../src/store/segments/durable-log.js'
import { IntakeSource } from '../../../src/upload/intake/intake-source.js'
import { PendingMarks } from '../../../src/upload/records/pending-marks.js'
import { type AcceptedItem, openUploadTables, Uploads } from '../../../src/upload/records/uploads.js'
import { failingDisk } from '../failing-disk.js'

const itemOf = (at: number): AcceptedItem => ({
  id: idOfBytes(Buffer.alloc(32, at)),
  headerSize: 10,
  owner: 'o'.repeat(43),
  receivedMs: at,
  deadlineHeight: 1,
  winc: '0',
  digest: Buffer.alloc(32, at).toString('base64url'),
  place: { file: 1, offset: 0, sizeBytes: 11 },
})

t.test('what is pending is known, and goes first in the next transaction', async (t) => {
  const tables = openUploadTables(t.testdir())
  t.teardown(() => tables.close())
  const disk = failingDisk(tables)
  const [uploads, shown] = [new Uploads(disk.environment), new Uploads(tables)]
  let [written, committed] = [0, 0]
  const overdue = new Set<string>()
  const leftOut: string[] = []
  uploads.pending.useWriter({
    isOverdue: ({ id }) => overdue.has(id),
    leftOut: ({ id }) => leftOut.push(id),
    writeRows(items) {
      written += 1
      for (const item of items) uploads.enter(item)
    },
    rowsCommitted: () => {
      committed += 1
    },
  })
  const [one, other] = [{ ...itemOf(1), heldAs: 'upload' }, itemOf(2)]
  uploads.pending.add(one)
  t.strictSame(uploads.find(one.id), one)
  t.equal(uploads.ofContent(one.owner, Buffer.alloc(32, 1)), one.id)
  t.strictSame(uploads.ofReservation('upload'), one)
  t.equal(uploads.ofReservation('other'), undefined)
  t.equal(uploads.count, 1)
  t.equal(uploads.waiting, 1)
  t.equal(shown.find(one.id), undefined, 'the tables do not show it')

  disk.isFull = true
  const about = (): void => uploads.put({ ...one, permanent: 7 })
  t.throws(() => uploads.environment.write(about))
  t.strictSame(
    [written, committed, uploads.pending.count],
    [1, 0, 1],
    'what was undone is still to be written',
  )
  disk.isFull = false
  uploads.environment.write(() => {
    t.strictSame(uploads.find(one.id), one)
    // Of a transaction inside of one nothing is written twice.
    uploads.environment.write(about)
  })
  t.strictSame([written, committed, uploads.pending.count], [2, 1, 0])
  t.match(shown.find(one.id), { permanent: 7 }, 'what was written later about it stays')
  t.equal(shown.ofReservation('upload')?.id, one.id)

  uploads.pending.add(other)
  t.throws(() =>
    uploads.environment.write(() => {
      throw new Error('a bug')
    }),
  )
  t.equal(uploads.pending.count, 1)
  uploads.writePending()
  t.strictSame([...shown.oldest(9)], [one.id, other.id])

  const late = { ...itemOf(3), heldAs: 'late' }
  for (const item of [late, itemOf(4)]) uploads.pending.add(item)
  overdue.add(late.id)
  uploads.writePending()
  t.strictSame(
    [leftOut, uploads.find(late.id), uploads.ofReservation('late')],
    [[late.id], undefined, undefined],
  )
  t.equal(uploads.ofContent(late.owner, Buffer.alloc(32, 3)), undefined)
  t.match(shown.find(itemOf(4).id), { id: itemOf(4).id })
})

t.test('another thread waits for what is pending, and for nothing else', async (t) => {
  const folder = t.testdir()
  const log = await DurableLog.open(`${folder}/log`)
  const marks = new PendingMarks(new SharedArrayBuffer(PendingMarks.bytes))
  const uploads = new Uploads(openUploadTables(`${folder}/tables`), marks)
  uploads.pending.useWriter({
    isOverdue: () => false,
    leftOut: () => undefined,
    writeRows(items) {
      for (const item of items) uploads.enter(item)
    },
    rowsCommitted: () => undefined,
  })
  const source = new IntakeSource(`${folder}/tables`, `${folder}/log`, marks)
  t.teardown(async () => {
    await source.close()
    await uploads.environment.close()
    await log.close()
  })
  const place = log.append([Buffer.from('header and payload')], Buffer.alloc(32))
  if (isRefusal(place)) throw new Error(place.message)
  const [item, absent] = [{ ...itemOf(1), place }, itemOf(2)]
  const opening = (id: AcceptedItem['id']) => source.open({ id } as Parameters<IntakeSource['open']>[0])

  const unread = await opening(absent.id)
  t.match(unread, { refused: 'busy' }, 'what was accepted before the start may have a receipt')
  marks.allBrought()
  uploads.pending.add(item)
  t.strictSame([marks.dueOf(item.id), marks.dueOf(absent.id)], [1, undefined])
  let isAnswered = false
  const opened = opening(item.id).finally(() => {
    isAnswered = true
  })
  t.match(await opening(absent.id), { refused: 'unknown' }, 'an item that nobody sent is not waited for')
  await pause(20)
  t.equal(isAnswered, false)
  uploads.writePending()
  const found = await opened
  if (isRefusal(found)) throw new Error(found.message)
  t.equal(found.sizeBytes, place.sizeBytes - item.headerSize)
  for await (const piece of found.body) t.equal(Buffer.from(piece as Uint8Array).toString(), ' payload')
  t.equal(marks.dueOf(item.id), undefined)

  uploads.pending.add({ ...absent, place })
  t.match(await opening(absent.id), { refused: 'busy' }, 'nobody says that it is nowhere, or waits for ever')
})

t.test('nobody waits longer because more is uploaded', async (t) => {
  const marks = new PendingMarks(new SharedArrayBuffer(PendingMarks.bytes))
  const { id } = itemOf(1)
  marks.add(id)
  const due = marks.dueOf(id)
  if (due === undefined) throw new Error('it is not pending')
  const shown = marks.shown(due)
  marks.allWritten()
  marks.add(id)
  t.equal(await shown, true)
  t.equal(marks.dueOf(id), 2)
})

t.test('counts that wrap around still tell what is pending', async (t) => {
  const memory = new SharedArrayBuffer(PendingMarks.bytes)
  new Int32Array(memory).fill(2 ** 31 - 1)
  const marks = new PendingMarks(memory)
  const { id } = itemOf(1)
  t.equal(marks.dueOf(id), undefined)
  marks.add(id)
  t.equal(marks.dueOf(id), -(2 ** 31))
  marks.allWritten()
  t.equal(marks.dueOf(id), undefined)
})
