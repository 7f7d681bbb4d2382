import { equal, ok } from 'node:assert/strict'
import t from 'tap'
import { chunkSizeMax, chunkSizeMin, chunkSizes } from '../../src/format/chunk.js'
import { fixtureJson } from '../fixture-file.js'
import { fc } from '../property.js'

const vectors = fixtureJson<Record<string, { chunks: number[] }>>('vectors.json')

for (const [name, { chunks }] of Object.entries(vectors).filter(([name]) => name.startsWith('merkle_'))) {
  const size = Number(name.slice('merkle_'.length))
  t.test(`${size} bytes are cut as an independent library cuts them`, async (t) => {
    t.strictSame(
      [...chunkSizes(size)].filter((each) => each > 0),
      chunks,
    )
  })
}

t.test('an empty chunk ends data of a multiple of 256 KiB, and only that', async (t) => {
  for (const size of [0, chunkSizeMax, 3 * chunkSizeMax]) t.equal([...chunkSizes(size)].at(-1), 0)
  fc.assert(
    fc.property(fc.integer({ min: 1, max: 20 * chunkSizeMax }), (size) => {
      const sizes = [...chunkSizes(size)]
      equal(
        sizes.reduce((sum, each) => sum + each, 0),
        size,
      )
      equal(sizes.at(-1) === 0, size % chunkSizeMax === 0)
      ok(sizes.every((each) => each <= chunkSizeMax))
      const small = sizes.filter((each) => each > 0 && each < chunkSizeMin)
      ok(small.length === 0 || sizes.length === 1)
    }),
  )
  t.pass('held for every sample')
})
