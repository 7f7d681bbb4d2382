import { closeSync, fstatSync, ftruncateSync, openSync, writeFileSync, writeSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import {
  allocate,
  mappedBy,
  mappedNow,
  openAddon,
  openScattered,
  openWritten,
} from '../../native/mapped/mapped.js'
import { openFallback } from '../../native/mapped/mapped-fallback.js'
import type { MappedFile } from '../../native/mapped/mapped-file.js'
import { eventually } from '../eventually.js'
import { fc } from '../property.js'
import { scratch } from '../scratch.js'

const folder = scratch('mapped')

const ways: [name: string, open: (path: string) => MappedFile | undefined][] = [
  ['the fallback', openFallback],
]
if (mappedBy === 'addon') ways.push(['the addon', openAddon], ['the addon, scattered', openScattered])
else t.comment('the addon was not built: only its fallback is tested')

/** Memory goes when the loop has turned after the last view. */
async function untilMapped(count: number): Promise<void> {
  await eventually('so many files are mapped', () => mappedNow().count === count)
}

async function readAll(file: MappedFile, start: number, end: number): Promise<Buffer> {
  if (!(await file.fetch(start, end))) throw new Error('the disk failed')
  if (!file.isResident(start, end, true)) throw new Error('fetched, and yet not in memory')
  const pieces: Buffer[] = []
  for (let at = start; at < end; ) {
    const view = file.view(at, end)
    pieces.push(Buffer.from(view))
    at += view.length
  }
  return Buffer.concat(pieces)
}

for (const [name, open] of ways) {
  t.test(`${name} gives the bytes of every window`, async (t) => {
    let count = 0
    await fc.assert(
      fc.asyncProperty(
        fc.uint8Array({ minLength: 1, maxLength: 20_000 }),
        fc.array(fc.tuple(fc.nat(), fc.nat()), { maxLength: 8 }),
        async (bytes, windows) => {
          count += 1
          const path = join(folder, `${name}-${count}`)
          writeFileSync(path, bytes)
          const file = open(path)
          if (file === undefined) return false
          let same = file.sizeBytes === bytes.length
          for (const [a, b] of windows) {
            const start = a % bytes.length
            const end = start + 1 + (b % (bytes.length - start))
            // Also of ranges that do not lie within the file: it only asks the disk.
            file.ahead(Float64Array.of(start, end, end, 2 ** 40, -1, 3, Number.NaN, 1))
            same &&= (await readAll(file, start, end)).equals(bytes.subarray(start, end))
          }
          file.close()
          return same
        },
      ),
      { numRuns: 60 },
    )
    t.pass('all windows were equal')
  })

  t.test(`${name} opens an empty file, and says where there is none`, (t) => {
    const path = join(folder, `${name}-empty`)
    writeFileSync(path, '')
    const file = open(path)
    t.equal(file?.sizeBytes, 0)
    file?.close()
    t.equal(open(join(folder, 'none')), undefined)
    t.throws(() => open(folder), 'a folder is not a file')
    t.end()
  })
}

for (const [name, open] of [
  ['the fallback', openFallback],
  [mappedBy, openWritten],
] as const) {
  t.test(`${name} shows what is written while it is mapped, and copies it`, async (t) => {
    const path = join(folder, `${name}-written`)
    const descriptor = openSync(path, 'wx+')
    allocate(descriptor, 1_000_000)
    t.equal(fstatSync(descriptor).size, 1_000_000)
    const file = open(path)
    if (file === undefined) throw new Error('it was just made')
    const into = Buffer.alloc(3000)
    t.ok(file.copy(500_000, into) && into.every((byte) => byte === 0))
    writeSync(descriptor, Buffer.alloc(3000, 9), 0, 3000, 500_000)
    const other = open(path)
    t.ok(file.copy(500_000, into) && into.every((byte) => byte === 9))
    t.equal(other?.sizeBytes, 1_000_000)
    if (open !== openFallback && mappedBy === 'addon')
      t.equal(mappedNow().count, 1, 'one mapping, though its time has changed')
    t.equal((await readAll(file, 499_999, 500_001))[1], 9)
    t.throws(() => file.copy(999_999, into))
    ftruncateSync(descriptor, 400_000)
    t.notOk(file.copy(500_000, into), 'a cut file is no end of the program')
    allocate(descriptor, 1_000_000)
    t.ok(file.copy(500_000, into))
    for (const each of [file, other]) each?.close()
    closeSync(descriptor)
  })
}

t.test('room that the disk does not have is the error of the system', async (t) => {
  const descriptor = openSync(join(folder, 'large'), 'wx+')
  t.throws(() => allocate(descriptor, 2 ** 49), { code: /^(ENOSPC|EFBIG)$/ })
  closeSync(descriptor)
  t.throws(() => allocate(descriptor, 5), { code: 'EBADF' })
})

t.test(
  'the addon shares one mapping, gives it back, and leaves no view behind',
  { skip: mappedBy === 'fallback' },
  async (t) => {
    await untilMapped(0)
    const path = join(folder, 'shared')
    writeFileSync(path, Buffer.alloc(100_000, 7))
    const one = openAddon(path)
    const two = openAddon(path)
    if (one === undefined || two === undefined) throw new Error('it was just written')
    t.equal(mappedNow().count, 1)
    t.equal(mappedNow().bytes, 100_000)
    const view = one.view(0, 100_000)
    t.equal(view[99_999], 7)
    one.close()
    t.equal(view.length, 0, 'a view of a closed file is empty, not a crash')
    t.equal(two.view(5, 6)[0], 7)
    const late = two.fetch(0, 100_000)
    two.close()
    t.equal(await late, true, 'a fetch under way holds the memory')
    t.throws(() => two.isResident(0, 1, false))
    await untilMapped(0)
    t.strictSame(mappedNow(), { count: 0, bytes: 0 })
  },
)
