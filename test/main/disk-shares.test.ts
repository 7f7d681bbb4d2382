import t from 'tap'
import { readConfig } from '../../config/read.js'
import { diskShares, sayShares, sharesOf, withinDisk } from '../../src/main/disk-shares.js'
import { sharedSegments } from '../../src/main/segments.js'
import { SegmentMarks } from '../../src/store/segments/segment-marks.js'

const mib = 2 ** 20
const config = readConfig()
if (Array.isArray(config)) throw new Error(config.join())

t.test('a disk is shared out by its size', async (t) => {
  for (const [sizeMib, freeMib, segmentMib] of [
    [300, 37.5, 4.6875],
    [8192, 1024, 128],
    [2 ** 20, 1024, 256],
  ] as const) {
    const shares = sharesOf(sizeMib * mib)
    const fitted = withinDisk(config, shares)
    const segments = sharedSegments(fitted, shares)
    t.equal(shares.freeMinBytes, freeMib * mib)
    t.equal(segments?.freeMinBytes, freeMib * mib)
    t.ok(Math.abs((segments?.shape.segmentBytes ?? 0) - segmentMib * mib) < 65_536, `${sizeMib} MiB`)
    t.ok(fitted.retrieval.cacheMaxBytes <= 0.75 * sizeMib * mib)
  }
  t.equal(sharedSegments(config, sharesOf(200 * mib)), undefined, 'each content has a file of its own')
  const unknown = sharesOf(Number.POSITIVE_INFINITY)
  t.equal(withinDisk(config, unknown).retrieval.cacheMaxBytes, config.retrieval.cacheMaxBytes)
})

t.test('of a folder that is not there yet the disk above counts, and the shares are said', async (t) => {
  const folder = t.testdir()
  const logged: string[] = []
  const say = (_about: object, words: string): void => void logged.push(words)
  const log = { info: say, warn: say } as unknown as Parameters<typeof sayShares>[3]
  t.same(diskShares(`${folder}/none/deeper`), diskShares(folder))
  sayShares(folder, sharesOf(300 * mib), 0, log)
  sayShares(folder, { ...sharesOf(300 * mib), freeMinBytes: 2 ** 60 }, 0, log)
  t.match(logged, ['room on the disk of DATA_PATH', /content up to 1 MiB is not cached/])
})

t.test('what lies behind the slots of a smaller shape is not marked for others', async (t) => {
  const shape = { cells: 4, segmentBytes: 65_536 }
  const marks = new SegmentMarks(new SharedArrayBuffer(2 ** 16), shape)
  const cells = marks.againBit(0, 0).cells
  const slots = shape.segmentBytes / 512
  for (const slot of [slots, slots + 1, 10 * slots]) {
    marks.ask(0, slot)
    marks.ask(0, slot)
    marks.check(0, slot)
    t.notOk(marks.isChecked(0, slot))
    t.notOk(marks.isRequested(0, slot))
    t.ok(marks.againBit(0, slot).at <= marks.againBit(0, slots - 1).at)
  }
  t.ok(
    cells.every((word) => word === 0),
    'nobody else has a bit of it',
  )
})
