import { mkdirSync, renameSync, unlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { BlobFiles } from '../../src/store/blob-files.js'
import { MappedFiles } from '../../src/store/mapped.js'
import { Ticks } from '../../src/store/residence.js'
import { HandClock } from '../http/hand-clock.js'
import { scratch } from '../scratch.js'

const folder = scratch('blob-files')
mkdirSync(folder, { recursive: true })
const file = (name: string, text: string): string => {
  const path = join(folder, name)
  writeFileSync(`${path}.new`, text)
  renameSync(`${path}.new`, path)
  return path
}

function opened(heldMax = 2) {
  const clock = new HandClock()
  const files = new MappedFiles({ mappedMaxBytes: 2 ** 30, filesMax: 4, believeMs: 1000 }, clock)
  const blobs = new BlobFiles(files, heldMax)
  t.teardown(() => {
    blobs.close()
    files.close()
  })
  return { blobs, clock }
}

/** What is believed of files is looked at again. */
function pass(clock: HandClock): void {
  for (let tick = 0; tick < Ticks.lasting; tick += 1) clock.turn(250)
}

type Content = ReturnType<BlobFiles['open']>
async function textOf(content: Content): Promise<string | undefined> {
  if (content === undefined) return undefined
  if (content.sizeBytes === 0) return ''
  // The page cache may have lost the file since it was written.
  for (;;) {
    const bytes = content.read(0, content.sizeBytes)
    if (bytes !== undefined) return Buffer.from(bytes).toString()
    if (!(await content.ready(0, content.sizeBytes))) return undefined
  }
}

for (const often of [false, true]) {
  t.test(`small files, ${often ? 'often' : 'now and then'}`, async (t) => {
    const { blobs, clock } = opened()
    const [one, two] = [file(`one-${often}`, 'first'), file(`two-${often}`, 'second one')]
    const a = blobs.open(one, 5, often)
    t.equal(await textOf(a), 'first')
    const b = blobs.open(two, 10, often)
    t.equal(await textOf(b), 'second one')
    t.equal(await textOf(a), 'first', 'the other one used the buffer meanwhile')
    t.equal(await textOf(b), 'second one')
    for (const [start, end] of [
      [0, 6],
      [-1, 2],
      [3, 3],
      [Number.NaN, 4],
    ] as const)
      t.throws(() => a?.read(start, end), RangeError)
    a?.close()
    b?.close()
    t.equal(blobs.open(join(folder, 'nothing'), 5, often), undefined)
    t.equal(await textOf(blobs.open(file('empty', ''), 0, often)), '')
    t.throws(() => blobs.open(folder, 5, often))
    // Replaced, then removed: seen when the belief ends, at the latest.
    const before = blobs.open(one, 5, often)?.stamp
    file(`one-${often}`, 'other')
    pass(clock)
    const after = blobs.open(one, 5, often)
    t.equal(await textOf(after), 'other')
    t.notSame(after?.stamp, before)
    unlinkSync(one)
    pass(clock)
    t.equal(blobs.open(one, 5, often), undefined)
  })
}

t.test('a reader that waits while its file is replaced never gets bytes of the new one', async (t) => {
  const { blobs } = opened()
  const path = file('waits', 'what was promised')
  const content = blobs.open(path, 17, false)
  blobs.open(file('between', 'others'), 6, false)?.close()
  file('waits', 'something else!!!')
  try {
    t.equal(await textOf(content), 'what was promised', 'it was mapped')
  } catch (error) {
    t.match(error, { message: /replaced/ })
  }
  content?.close()
})

t.test('more files than descriptors, and an unexpected size', async (t) => {
  const { blobs } = opened(3)
  const paths = Array.from({ length: 20 }, (_, at) => file(`many-${at}`, `content ${at}`))
  for (let round = 0; round < 3; round += 1) {
    for (const [at, path] of paths.entries()) {
      const content = blobs.open(path, 9, at % 2 === 0)
      t.equal(await textOf(content), `content ${at}`)
      content?.close()
    }
  }
  const large = blobs.open(file('large', 'x'.repeat(100_000)), 5, false)
  t.equal((await textOf(large))?.length, 100_000)
  large?.close()
})
