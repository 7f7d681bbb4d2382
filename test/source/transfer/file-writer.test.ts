import { createHash, randomBytes } from 'node:crypto'
import { open, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import t from 'tap'
import { systemClock } from '../../../src/actor/clock.js'
import { FileWriter } from '../../../src/source/transfer/file-writer.js'
import { WritePace } from '../../../src/source/transfer/write-pace.js'
import { fc } from '../../property.js'
import { scratch } from '../../scratch.js'

const folder = scratch('file-writer')

/** By a clock that goes on by the next of these steps, again and again, whenever it is looked at. */
function paceOf(stepsMs: readonly number[]): WritePace {
  let [ms, looks] = [0, 0]
  const monotonic = (): number => {
    ms += stepsMs[looks % stepsMs.length] ?? 0
    looks += 1
    return ms
  }
  return new WritePace({ ...systemClock, monotonic })
}

/** Of a disk that is slow from the first write on. */
const slow = [400, 11]

t.test('a file gets the bytes in their order, however they are cut, and tells how far it is', async (t) => {
  let at = 0
  await fc.assert(
    fc.asyncProperty(
      fc.array(fc.integer({ min: 1, max: 700_000 }), { minLength: 1, maxLength: 24 }),
      fc.boolean(),
      fc.array(fc.constantFrom(0, 11, 700), { minLength: 1, maxLength: 7 }),
      async (lengths, isLasting, stepsMs) => {
        at += 1
        const path = join(folder, String(at))
        const handle = await open(path, 'w')
        const reported: number[] = []
        const onWritten = (written: number): void => void reported.push(written)
        const writer = new FileWriter(handle, { isHashed: true, isLasting, onWritten, pace: paceOf(stepsMs) })
        const all = randomBytes(lengths.reduce((sum, length) => sum + length, 0))
        // Whoever gives bytes uses their memory again.
        const borrowed = Buffer.alloc(700_000)
        let given = 0
        for (const length of lengths) {
          all.copy(borrowed, 0, given, given + length)
          given += length
          const piece = borrowed.subarray(0, length)
          await writer.write(isLasting ? Buffer.from(piece) : piece)
          borrowed.fill(0)
          if (writer.taken !== given) return false
        }
        await writer.drain()
        await handle.close()
        const isHashed = createHash('sha256').update(all).digest().equals(writer.digest())
        const isRising = reported.every((bytes, index) => bytes > (reported[index - 1] ?? 0))
        return isHashed && isRising && reported.at(-1) === all.length && (await readFile(path)).equals(all)
      },
    ),
    { numRuns: 40 },
  )
  t.pass('the same bytes')
})

t.test('a full disk is told to who writes, or at the end', async (t) => {
  const full = await open('/dev/full', 'w')
  t.throws(() => new FileWriter(full).write(randomBytes(1000)), { code: 'ENOSPC' }, 'at the first bytes')
  // A device that takes the first bytes, and none of those behind.
  const path = join(folder, 'full')
  const writable = await open(path, 'w')
  const writer = new FileWriter(writable, { pace: paceOf(slow) })
  const prompt = new FileWriter(writable, { pace: paceOf([0]) })
  for (const each of [writer, prompt]) await each.write(randomBytes(2 * 1024 * 1024))
  await writable.close()
  t.throws(() => prompt.write(randomBytes(1000)), 'at once where this thread writes')
  await t.rejects(prompt.drain(), 'and at the end')
  await writer.write(randomBytes(1000))
  await writer.rest()
  await t.rejects(writer.drain(), 'what did not reach the file is no success')
  await t.rejects(async () => writer.write(randomBytes(1000)), 'nor does more of it')
  await full.close()
})

t.test('a disk that is slow keeps a thread from its other work once, and is given a second', async (t) => {
  let ms = 0
  const pace = new WritePace({ ...systemClock, monotonic: () => ms })
  const path = join(folder, 'slow')
  const handle = await open(path, 'w')
  const reported: number[] = []
  const writer = new FileWriter(handle, { pace, onWritten: (written) => void reported.push(written) })
  const piece = randomBytes(256 * 1024)
  const next = async (): Promise<boolean> => {
    const before = reported.length
    const writing = writer.write(piece)
    const isAtOnce = reported.length > before
    await writing
    await writer.drain()
    return isAtOnce
  }
  for (let at = 0; at < 8; at += 1) await next()
  t.equal(await next(), true, 'behind the first bytes as well')
  pace.timed(() => {
    ms += 11
  })
  t.equal(await next(), false, 'not by this thread')
  ms += 999
  t.equal(await next(), false)
  ms += 1
  t.equal(await next(), true, 'by this thread again')
  await handle.close()
  t.equal((await readFile(path)).length, reported.at(-1))
})
