import { createHash } from 'node:crypto'
import { join } from 'node:path'
import t from 'tap'
import { pause, systemClock } from '../../../src/actor/clock.js'
import { isRefusal } from '../../../src/format/refusal.js'
import { DurableLog, durableLogDefaults } from '../../../src/store/segments/durable-log.js'
import type { LogDraft } from '../../../src/store/segments/log-draft.js'
import { logFileName } from '../../../src/store/segments/log-file.js'
import { Spool } from '../../../src/upload/intake/spool.js'
import { refusalAnswer } from '../../../src/upload/requests/upload-answers.js'
import { DiskRoom } from '../../../src/upload/room/disk-room.js'
import { random } from '../../property.js'
import { LossyDisk } from '../../store/segments/lossy-disk.js'

/** Takes pieces as slowly as a disk that is behind, and remembers them in the order in which it wrote them. */
class SlowDraft {
  readonly written: number[] = []

  write(piece: Uint8Array): undefined | Promise<undefined> {
    // Of what came while it was behind there may be several.
    const bytes = Buffer.from(piece)
    const numbers = Array.from({ length: bytes.length / 4 }, (_, at) => bytes.readUInt32BE(at * 4))
    if (random() < 0.5) {
      this.written.push(...numbers)
      return undefined
    }
    return pause(random() * 3).then(() => {
      this.written.push(...numbers)
      return undefined
    })
  }
}

t.test('pieces are written in the order in which they came, however slow the disk is', async (t) => {
  for (let run = 0; run < 20; run += 1) {
    const draft = new SlowDraft()
    let isPaused = false
    const spool = new Spool({ draft: () => draft as unknown as LogDraft }, () => {
      isPaused = false
    })
    const piece = Buffer.alloc(4)
    for (let number = 0; number < 100; number += 1) {
      piece.writeUInt32BE(number)
      if (spool.write(piece) === 'behind') isPaused = true
      // Some more may come after a pause, and some come when it is over.
      if (isPaused && random() < 0.7) await pause(random() * 2)
    }
    while (spool.isBehind) await pause(1)
    t.strictSame(
      draft.written,
      Array.from({ length: 100 }, (_, number) => number),
    )
  }
})

t.test('what is to leave the memory is in a file at once, in its order, and is found again', async (t) => {
  const folder = join(t.testdir(), 'log')
  const disk = new LossyDisk()
  const log = await DurableLog.open(folder, durableLogDefaults, () => undefined, disk)
  const spool = new Spool(log, () => undefined)
  const pieces = Array.from({ length: 40 }, (_, at) => Buffer.alloc(at < 20 ? 2000 : 10_000_000, at))
  let hasLate = false
  for (const [at, piece] of pieces.entries()) {
    spool.write(piece)
    if (at % 9 !== 8) continue
    hasLate ||= spool.isBehind && spool.memoryBytes > 0
    spool.spill()
    t.equal(spool.memoryBytes, 0)
  }
  t.ok(hasLate, 'also of what came while the disk was behind')
  const digest = createHash('sha256')
  for (const piece of pieces) digest.update(piece)
  const wanted = digest.digest()
  const kept = await spool.appendToLog(wanted, Buffer.from('{}'))
  if (isRefusal(kept)) throw new Error(kept.message)
  await log.close()
  const found: Buffer[] = []
  const again = await DurableLog.open(
    folder,
    durableLogDefaults,
    ({ place }) => {
      const bytes = Buffer.alloc(place.sizeBytes)
      const file = disk.open(`${folder}/${logFileName(place.file)}`)
      disk.read(file, bytes, place.offset)
      disk.close(file)
      found.push(bytes)
    },
    disk,
  )
  await again.close()
  t.equal(found.length, 1)
  t.ok(
    createHash('sha256')
      .update(found[0] ?? '')
      .digest()
      .equals(wanted),
  )
})

t.test('what a full disk does not take is in memory no more, and is refused', async (t) => {
  const disk = new LossyDisk()
  const folder = join(t.testdir(), 'log')
  const log = await DurableLog.open(folder, durableLogDefaults, () => undefined, disk)
  t.teardown(() => log.close())
  const spool = new Spool(log, () => undefined)
  spool.write(Buffer.alloc(50_000))
  disk.fault = () => 'ENOSPC'
  spool.spill()
  t.equal(spool.memoryBytes, 0)
  t.match(spool.refusal, { refused: 'busy' })
  const large = new Spool(log, () => undefined)
  large.write(Buffer.alloc(50_000))
  t.match(large.write(Buffer.alloc(2_000_000)), { refused: 'busy' })
  t.match(large.refusal, { refused: 'busy' })
  large.spill()
  t.equal(large.memoryBytes, 0)
  await large.drop()
  disk.fault = () => undefined
  await spool.drop()
  spool.spill()
  t.same(disk.list(folder), [], 'nothing is left')
})

t.test('a disk that gets full in the middle is said so, and leaves nothing behind', async (t) => {
  const disk = new LossyDisk()
  const folder = join(t.testdir(), 'log')
  const options = { ...durableLogDefaults, sharedMaxBytes: 1000, growBytes: 65_536 }
  const log = await DurableLog.open(folder, options, () => undefined, disk)
  t.teardown(() => log.close())
  const full: ('create' | 'resize' | 'write' | 'sync')[] = ['create', 'resize', 'write', 'sync']
  for (const broken of full) {
    disk.fault = () => undefined
    const spool = new Spool(log, () => undefined)
    const bytes = Buffer.alloc(50_000, broken)
    if (broken !== 'create') spool.write(bytes)
    disk.fault = (call) => (call === broken ? 'ENOSPC' : undefined)
    for (let piece = 0; piece < 5; piece += 1) spool.write(bytes)
    const kept = await spool.appendToLog(createHash('sha256').digest(), Buffer.from('{}'))
    if (!isRefusal(kept)) throw new Error(`it was kept on a full disk (${broken})`)
    const { status, text, lines } = refusalAnswer(kept)
    t.strictSame([status, text], [503, 'the disk is full'], broken)
    t.match(lines, 'Retry-After')
    disk.fault = () => undefined
    await spool.drop()
  }
  const spool = new Spool(log, () => undefined)
  const bytes = Buffer.alloc(50_000, 'room again')
  spool.write(bytes)
  const kept = await spool.appendToLog(createHash('sha256').update(bytes).digest(), Buffer.from('{}'))
  t.notOk(isRefusal(kept), 'there is room again')
  t.strictSame(
    disk.list(folder).filter((name) => name.endsWith('.log')).length,
    1,
    'no file of what was refused is left',
  )
})

t.test('uploads stop before the disk is full, by what is there and by what would come', async (t) => {
  const folder = t.testdir()
  const room = (minBytes: number): DiskRoom => new DiskRoom(folder, minBytes, systemClock)
  t.equal(room(0).noRoomFor(), undefined)
  t.match(room(0).noRoomFor(2 ** 60), { status: 503, text: /nearly full/, lines: /Retry-After: 60/ })
  t.match(room(2 ** 60).noRoomFor(), { status: 503 })
})
