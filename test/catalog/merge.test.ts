import t from 'tap'
import type { Attributes } from '../../src/catalog/attributes.js'
import { distrusted, isFullyProven, merge } from '../../src/catalog/merge.js'
import { fc } from '../property.js'
import { anyAttributes } from './arbitrary.js'

const equal = (one?: Uint8Array, other?: Uint8Array): boolean =>
  one !== undefined && other !== undefined && Buffer.compare(one, other) === 0

function fold(all: readonly Attributes[]): Attributes {
  const [first, ...rest] = all
  return rest.reduce((known, learned) => merge(known, learned), merge(undefined, first!))
}

const history = fc.array(anyAttributes, { minLength: 1, maxLength: 6 })

t.test('nothing is verified without a digest', async (t) => {
  fc.assert(
    fc.property(history, (all) => {
      const known = fold(all)
      return !known.verified || known.digest !== undefined
    }),
  )
  t.pass()
})

t.test('a proven digest and its size are replaced only by another proven one', async (t) => {
  fc.assert(
    fc.property(history, anyAttributes, (all, learned) => {
      const known = fold(all)
      const after = merge(known, learned)
      if (!known.verified || learned.verified) return true
      return after.verified && equal(after.digest, known.digest) && after.size === known.size
    }),
  )
  t.pass()
})

t.test('each field is one that was learned, and never becomes unknown again', async (t) => {
  const names = ['contentType', 'contentEncoding', 'digest', 'height', 'place', 'header'] as const
  fc.assert(
    fc.property(history, (all) => {
      const known = fold(all)
      for (const name of names) {
        const stated = all.map((one) => one[name]).filter((value) => value !== undefined)
        if (
          stated.length > 0 &&
          known[name] === undefined &&
          name !== 'contentEncoding' &&
          name !== 'contentType'
        ) {
          return false
        }
        if (known[name] !== undefined && !stated.includes(known[name])) return false
      }
      return true
    }),
  )
  t.pass()
})

t.test('learning the same twice changes nothing', async (t) => {
  fc.assert(
    fc.property(history, anyAttributes, (all, learned) => {
      const once = merge(fold(all), learned)
      t.same(merge(once, learned), once)
    }),
    { numRuns: 50 },
  )
})

t.test('trust belongs to the bytes that a trusted source sent', async (t) => {
  const id = 'A'.repeat(43) as Attributes['id']
  const one = { id, size: 1, verified: false, trusted: true, digest: Buffer.alloc(32, 1) }
  const other = { id, size: 2, verified: false, trusted: false, digest: Buffer.alloc(32, 2) }
  t.equal(merge(one, other).trusted, false)
  t.equal(merge(one, { ...other, digest: one.digest }).trusted, true)
})

t.test('the type that the item itself names wins over what a server says', async (t) => {
  fc.assert(
    fc.property(anyAttributes, anyAttributes, (known, learned) => {
      const { header: _header, ...stated } = learned
      const after = merge(known, { ...stated, contentType: 'text/liar' })
      return known.header === undefined || after.contentType !== 'text/liar'
    }),
  )
  t.pass()
})

t.test('a wrong digest is forgotten with everything its sender stated', async (t) => {
  fc.assert(
    fc.property(anyAttributes, (known) => {
      const left = distrusted(known)
      if (known.header === undefined && known.place === undefined) return left === undefined
      return left !== undefined && left.digest === undefined && !left.verified && !left.trusted
    }),
  )
  t.equal(isFullyProven({ id: 'x' as Attributes['id'], size: 1, verified: false, trusted: true }), true)
})
