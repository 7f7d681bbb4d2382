import { createHash } from 'node:crypto'
import { join } from 'node:path'
import t from 'tap'
import { pause, systemClock } from '../../../src/actor/clock.js'
import { isRefusal } from '../../../src/format/refusal.js'
import { DurableLog, durableLogDefaults } from '../../../src/store/segments/durable-log.js'
import type { LogDraft } from '../../../src/store/segments/log-draft.js'
import { answerOf } from '../../../src/upload/calls/upload-answers.js'
import { Spool } from '../../../src/upload/intake/spool.js'
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
      if (!spool.write(piece)) isPaused = true
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
    const kept = await spool.keep(createHash('sha256').digest(), Buffer.from('{}'))
    if (!isRefusal(kept)) throw new Error(`it was kept on a full disk (${broken})`)
    const { status, text, lines } = answerOf(kept)
    t.strictSame([status, text], [503, 'the disk is full'], broken)
    t.match(lines, 'Retry-After')
    disk.fault = () => undefined
    await spool.drop()
  }
  const spool = new Spool(log, () => undefined)
  const bytes = Buffer.alloc(50_000, 'room again')
  spool.write(bytes)
  const kept = await spool.keep(createHash('sha256').update(bytes).digest(), Buffer.from('{}'))
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
  t.equal(room(0).full(), undefined)
  t.match(room(0).full(2 ** 60), { status: 503, text: /nearly full/, lines: /Retry-After: 60/ })
  t.match(room(2 ** 60).full(), { status: 503 })
})
