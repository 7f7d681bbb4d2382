import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { mappedBy, mappedNow, openAddon } from '../../native/mapped/mapped.js'
import type { MappedFile } from '../../native/mapped/mapped-file.js'
import { openTwin } from '../../native/mapped/twin.js'
import { eventually } from '../eventually.js'
import { fc } from '../property.js'
import { scratch } from '../scratch.js'

const folder = scratch('mapped')

const doors: [name: string, open: (path: string) => MappedFile | undefined][] = [['the twin', openTwin]]
if (mappedBy === 'addon') doors.push(['the addon', openAddon])
else t.comment('the addon was not built: only its twin is tested')

/** Memory goes when the loop has turned after the last view. */
async function untilMapped(count: number): Promise<void> {
  await eventually(() => mappedNow().count === count)
}

async function readAll(file: MappedFile, start: number, end: number): Promise<Buffer> {
  if (!(await file.fetch(start, end))) throw new Error('the disk failed')
  if (!file.settle(start, end, true)) throw new Error('fetched, and yet not in memory')
  const pieces: Buffer[] = []
  for (let at = start; at < end; ) {
    const view = file.view(at, end)
    pieces.push(Buffer.from(view))
    at += view.length
  }
  return Buffer.concat(pieces)
}

for (const [name, open] of doors) {
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

t.test(
  'the addon shares one mapping, gives it back, and leaves no view behind',
  { skip: mappedBy === 'twin' },
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
    t.throws(() => two.settle(0, 1, false))
    await untilMapped(0)
    t.strictSame(mappedNow(), { count: 0, bytes: 0 })
  },
)
