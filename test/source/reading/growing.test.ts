import { randomBytes } from 'node:crypto'
import { appendFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { GrowingContent } from '../../../src/source/reading/growing.js'
import { ProgressReader, ProgressTable, progressBytes } from '../../../src/source/reading/progress-table.js'
import type { SourceProgress } from '../../../src/source/source-messages.js'
import { ProgressSlots, TransferProgress } from '../../../src/source/transfer/transfer-progress.js'
import { fc } from '../../property.js'
import { scratch } from '../../scratch.js'
import { drain } from '../rig.js'

const folder = scratch('growing')
let made = 0

/** A file, its slot, and `readers` contents over it, each woken a turn late as over a port. */
function growing(sizeBytes: number, readers: number, base = 0) {
  made += 1
  const path = join(folder, `${made}`)
  writeFileSync(path, '')
  const slots = new ProgressSlots(new ProgressTable(new SharedArrayBuffer(progressBytes(4))))
  const progress = new TransferProgress(slots.table, slots.take()!)
  let closed = 0
  const contents = Array.from({ length: readers }, (_, index) => {
    const progressReader = new ProgressReader(new ProgressTable(slots.table.memory))
    progress.addReader(index, {
      hear: (event: SourceProgress) => setImmediate(() => progressReader.hear(event)),
    })
    const file = {
      path,
      offset: 0,
      base,
      fileBytes: sizeBytes,
      sizeBytes: base + sizeBytes,
      slot: progress.slot,
    }
    return new GrowingContent(file, progressReader, () => {
      closed += 1
      progress.removeReader(index)
    })
  })
  return { path, progress, contents, closed: () => closed }
}

t.test('however the bytes come in, every reader gets all of them and is never left waiting', async (t) => {
  const steps = fc.array(
    fc.record({ bytes: fc.integer({ min: 1, max: 700_000 }), turns: fc.integer({ min: 0, max: 2 }) }),
    {
      minLength: 1,
      maxLength: 6,
    },
  )
  await fc.assert(
    fc.asyncProperty(steps, fc.integer({ min: 1, max: 3 }), async (all, readers) => {
      const body = randomBytes(all.reduce((sum, { bytes }) => sum + bytes, 0))
      const { path, progress, contents, closed } = growing(body.length, readers)
      const reading = contents.map((content) => drain(content, 0, body.length))
      let at = 0
      for (const { bytes, turns } of all) {
        for (let turn = 0; turn < turns; turn += 1) await new Promise((resolve) => setImmediate(resolve))
        appendFileSync(path, body.subarray(at, at + bytes))
        at += bytes
        progress.move(Math.min(at, body.length - 1), 'growing')
      }
      progress.move(body.length, 'whole')
      for (const bytes of await Promise.all(reading)) if (!bytes.equals(body)) return false
      for (const content of contents) content.close()
      return closed() === readers && progress.readers === 0
    }),
    { numRuns: 30 },
  )
  t.pass()
})

t.test('readers that take a part of what they read get what is behind it next', (t) => {
  const turns = fc.array(
    fc.record({ reader: fc.integer({ min: 0, max: 1 }), taken: fc.integer({ min: 1, max: 200_000 }) }),
    { minLength: 1, maxLength: 40 },
  )
  const body = randomBytes(900_000)
  fc.assert(
    fc.property(turns, (all) => {
      const { path, progress, contents } = growing(body.length, 2)
      appendFileSync(path, body)
      const places = [0, 0]
      let isRight = true
      for (const [turn, { reader, taken }] of all.entries()) {
        // More is readable with each turn.
        progress.move(Math.min(body.length, 100_000 * (turn + 1)), 'growing')
        const at = places[reader] ?? 0
        const here = contents[reader]?.read(at, body.length)
        if (here === undefined) continue
        isRight &&= body.subarray(at, at + here.length).equals(here)
        places[reader] = Math.min(body.length - 1, at + Math.min(taken, here.length))
      }
      progress.move(body.length, 'broken')
      isRight &&= contents.every((content) => content.read(0, 10) === undefined)
      for (const content of contents) content.close()
      return isRight
    }),
    { numRuns: 100 },
  )
  t.end()
})

t.test('a broken file wakes those who wait, and gives nothing more', async (t) => {
  const { path, progress, contents } = growing(100, 2)
  appendFileSync(path, randomBytes(50))
  progress.move(50, 'growing')
  t.equal(contents[0]!.read(0, 100)?.length, 50)
  const waiting = contents.map((content) => content.ready(50, 100))
  progress.move(0, 'broken')
  t.same(await Promise.all(waiting), [false, false])
  t.equal(contents[0]!.read(0, 50), undefined)
  t.equal(await contents[0]!.ready(0, 50), false)
  for (const content of contents) content.close()
})

t.test('who has read of a whole file needs its slot no more', async (t) => {
  const { path, progress, contents, closed } = growing(10, 3)
  writeFileSync(path, 'abcdefghij')
  progress.move(4, 'growing')
  const [reading, waiting, idle] = contents
  t.equal(String(Buffer.from(reading!.read(0, 10)!)), 'abcd')
  const ready = waiting!.ready(9, 10)
  t.equal(closed(), 0)
  progress.move(10, 'whole')
  t.equal(await ready, true)
  t.equal(closed(), 0, 'who only waits may still name the bytes to the fetcher')
  t.equal(String(Buffer.from(reading!.read(4, 10)!)), 'efghij')
  t.equal(String(Buffer.from(waiting!.read(9, 10)!)), 'j')
  t.equal(closed(), 2)
  // The next file in the same slot.
  for (const state of ['free', 'growing', 'broken'] as const) {
    progress.move(0, state)
    t.equal(String(Buffer.from(reading!.read(2, 10)!)), 'cdefghij')
    t.equal(await waiting!.ready(9, 10), true)
  }
  t.equal(idle!.read(0, 10), undefined)
  for (const content of contents) content.close()
  t.equal(closed(), 3, 'each leaves once')
})

t.test('a window counts in bytes of the payload', async (t) => {
  const { path, progress, contents } = growing(10, 1, 1000)
  writeFileSync(path, 'abcdefghij')
  progress.move(10, 'whole')
  const [content] = contents
  t.equal(content!.sizeBytes, 1010)
  t.equal(String(Buffer.from(content!.read(1003, 1006)!)), 'def')
  t.throws(() => content!.read(999, 1001), RangeError)
  t.throws(() => content!.read(1005, 1011), RangeError)
  t.throws(() => content!.read(1005, 1005), RangeError)
  await t.rejects(content!.ready(0, 10), RangeError)
  content!.close()
  t.throws(() => content!.close())
})

t.test('slots are bounded, and used again', async (t) => {
  const slots = new ProgressSlots(new ProgressTable(new SharedArrayBuffer(progressBytes(2))))
  const [one, two] = [slots.take(), slots.take()]
  t.not(one, two)
  t.equal(slots.take(), undefined)
  slots.give(one!)
  t.equal(slots.taken, 1)
  t.equal(slots.table.state(one!), 'free')
  t.equal(slots.take(), one)
})
