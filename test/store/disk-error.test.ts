import { constants } from 'node:os'
import t from 'tap'
import { isRefusal } from '../../src/format/refusal.js'
import {
  diskError,
  diskOutage,
  diskRefusal,
  isDiskError,
  lostStateCode,
  tryWrite,
  whileDiskTakes,
} from '../../src/store/disk-error.js'
import { countDiskError, diskErrors, isDiskFailing, shareDiskErrors } from '../../src/store/disk-errors.js'

const { ENOSPC, EIO, EACCES } = constants.errno
const full = (): Error => diskError(ENOSPC, 'a test')

t.test('an error of the disk is told apart, whoever gives it', async (t) => {
  const lmdb = (code: number): Error => Object.assign(new Error('of an addon'), { code })
  t.ok(isDiskError(full()))
  t.ok(isDiskError(lmdb(ENOSPC)), 'by the number of the system')
  t.ok(isDiskError(lmdb(lostStateCode)))
  t.ok(isDiskError(new Error('told on', { cause: full() })), 'by its cause')
  for (const other of [lmdb(EACCES), lmdb(-30_798), new Error('a bug'), 'EIO', undefined])
    t.notOk(isDiskError(other))
  t.equal(diskRefusal(full()).message, 'the disk is full')
  t.equal(diskRefusal(lmdb(EIO)).message, 'the disk failed')
})

t.test('what is refused to somebody is a refusal, and what comes again is said once', async (t) => {
  const logged: string[] = []
  const say = (_about: unknown, words?: string): void => void logged.push(words ?? '')
  const outage = diskOutage({ warn: say, info: (words: string) => void logged.push(words) } as never, 'tests')
  const failing = (): never => {
    throw full()
  }
  t.ok(isRefusal(tryWrite(failing)))
  t.equal(
    tryWrite(() => 7),
    7,
  )
  t.notOk(whileDiskTakes(outage, failing))
  t.notOk(whileDiskTakes(outage, failing))
  t.ok(whileDiskTakes(outage, () => undefined))
  t.strictSame(logged, [
    'the disk is full or fails: tests wait, and are tried again',
    'the disk takes changes again: tests go on',
  ])
  const bug = (): never => {
    throw new TypeError('a bug')
  }
  t.throws(() => tryWrite(bug), TypeError)
  t.throws(() => whileDiskTakes(outage, bug), TypeError)
})

t.test('errors are counted once, for all threads', async (t) => {
  countDiskError(full(), 1000)
  t.strictSame(diskErrors(), { count: 0, lastMs: 0 }, 'nobody shares them yet')
  shareDiskErrors()
  const one = full()
  countDiskError(one, 50_000)
  countDiskError(one, 60_000)
  t.strictSame(diskErrors(), { count: 1, lastMs: 50_000 })
  t.ok(isDiskFailing(70_000))
  t.notOk(isDiskFailing(90_000))
})
