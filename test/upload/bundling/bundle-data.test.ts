import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { idOfBytes } from '../../../src/format/id.js'
import { logFileName } from '../../../src/store/segments/log-file.js'
import { BundleData } from '../../../src/upload/bundling/bundle-data.js'
import type { AcceptedItem } from '../../../src/upload/records/uploads.js'
import { fc } from '../../property.js'

const fileBytes = 3 * 2 ** 20

t.test('a bundle is its items, however they lie in the log', async (t) => {
  const folder = t.testdir()
  const files = [1, 2, 3].map((number) => {
    const bytes = Buffer.from(
      Array.from({ length: fileBytes }, (_, at) => (at * 31 + number * 7 + (at >> 8)) & 255),
    )
    writeFileSync(join(folder, logFileName(number)), bytes)
    return bytes
  })
  const itemOf = (at: number, file: number, offset: number, sizeBytes: number): AcceptedItem => ({
    id: idOfBytes(Buffer.alloc(32, at)),
    headerSize: 10,
    owner: 'o'.repeat(43),
    receivedMs: at,
    deadlineHeight: 1,
    winc: '0',
    place: { file, offset, sizeBytes },
  })
  const size = fc.oneof(fc.integer({ min: 1, max: 3000 }), fc.integer({ min: 1, max: 1_500_000 }))
  /** One item behind the other, or anywhere. */
  const steps = fc.array(
    fc.record({
      file: fc.integer({ min: 1, max: 3 }),
      gap: fc.option(fc.integer({ min: 0, max: 20_000 })),
      size,
    }),
    { minLength: 1, maxLength: 30 },
  )
  await fc.assert(
    fc.asyncProperty(steps, fc.nat(fileBytes), async (wanted, anywhere) => {
      let [file, end] = [1, 0]
      const items = wanted.map(({ gap, size: wantedBytes, ...step }, at) => {
        file = gap === null ? step.file : file
        const offset = (gap === null ? anywhere : end + gap) % (fileBytes - 1)
        const sizeBytes = Math.min(wantedBytes, fileBytes - offset)
        end = offset + sizeBytes
        return itemOf(at, file, offset, sizeBytes)
      })
      const data = new BundleData(items, folder)
      const pieces: Buffer[] = []
      for await (const piece of data.pieces()) pieces.push(Buffer.from(piece))
      const expected = items.map(({ place }) =>
        (files[place.file - 1] as Buffer).subarray(place.offset, place.offset + place.sizeBytes),
      )
      const whole = Buffer.concat(pieces)
      const chunks: Buffer[] = []
      for await (const { bytes } of data.chunks()) chunks.push(Buffer.from(bytes))
      if (whole.length !== data.sizeBytes || !Buffer.concat(chunks).equals(whole)) return false
      return whole.subarray(data.header.length).equals(Buffer.concat(expected))
    }),
    { numRuns: 60 },
  )
  const cut = new BundleData([itemOf(0, 1, fileBytes - 10, 20)], folder)
  await t.rejects(cut.tree(), /file 1 of the log of uploads is cut/)
  await t.rejects(new BundleData([itemOf(0, 9, 0, 20)], folder).tree(), { code: 'ENOENT' })
})
