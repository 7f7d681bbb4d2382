import { createHash, randomBytes } from 'node:crypto'
import { open, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import t from 'tap'
import { FileWriter } from '../../src/source/file-writer.js'
import { fc } from '../property.js'
import { scratch } from '../scratch.js'

const folder = scratch('file-writer')

t.test('a file gets the bytes in their order, however they are cut, and tells how far it is', async (t) => {
  let at = 0
  await fc.assert(
    fc.asyncProperty(
      fc.array(fc.integer({ min: 1, max: 700_000 }), { minLength: 1, maxLength: 24 }),
      fc.boolean(),
      async (lengths, isLasting) => {
        at += 1
        const path = join(folder, String(at))
        const handle = await open(path, 'w')
        const told: number[] = []
        const onWritten = (written: number): void => void told.push(written)
        const writer = new FileWriter(handle, { isHashed: true, isLasting, onWritten })
        const all = randomBytes(lengths.reduce((sum, length) => sum + length, 0))
        // Whoever gives bytes uses their memory again.
        const lent = Buffer.alloc(700_000)
        let given = 0
        for (const length of lengths) {
          all.copy(lent, 0, given, given + length)
          given += length
          const piece = lent.subarray(0, length)
          await writer.write(isLasting ? Buffer.from(piece) : piece)
          lent.fill(0)
          if (writer.taken !== given) return false
        }
        await writer.drain()
        await handle.close()
        const isHashed = createHash('sha256').update(all).digest().equals(writer.digest())
        const isRising = told.every((bytes, index) => bytes > (told[index - 1] ?? 0))
        return isHashed && isRising && told.at(-1) === all.length && (await readFile(path)).equals(all)
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
  const writer = new FileWriter(writable)
  await writer.write(randomBytes(2 * 1024 * 1024))
  await writable.close()
  await writer.write(randomBytes(1000))
  await writer.rest()
  await t.rejects(writer.drain(), 'what did not reach the file is no success')
  await t.rejects(async () => writer.write(randomBytes(1000)), 'nor does more of it')
  await full.close()
})
