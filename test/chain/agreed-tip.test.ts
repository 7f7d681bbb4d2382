/** A node that stands still, or lies, decides neither the height nor the anchor of transactions. */
import t from 'tap'
import { agreedAnchor, agreedHeight, areHeightsClear } from '../../src/chain/agreed-tip.js'
import { type BlockHash, parseBlockHash } from '../../src/chain/chain.js'
import { isRefusal, refuse } from '../../src/format/refusal.js'

const silent = refuse('upstream', 'upstream', 'no answer')
const anchorOf = (number: number): BlockHash => {
  const hash = parseBlockHash(Buffer.alloc(48, number).toString('base64url'))
  if (hash === undefined) throw new Error('no hash')
  return hash
}
const [good, old] = [anchorOf(1), anchorOf(2)]

t.test('the height', (t) => {
  t.equal(agreedHeight([100]), 100)
  t.equal(agreedHeight([100, 2e9]), 100, 'of two the lower')
  for (const lie of [0, 40, 2e9]) t.equal(agreedHeight([100, lie, 101]), lie > 101 ? 101 : 100)
  t.equal(agreedHeight([100, silent]), 100)
  t.ok(isRefusal(agreedHeight([silent, 2e9, silent])))
  t.equal(agreedHeight([100, silent, 101]), 100)
  t.ok(areHeightsClear([100, 101], 3))
  t.notOk(areHeightsClear([100, 2e9], 3), 'the third decides')
  t.notOk(areHeightsClear([100], 3))
  t.end()
})

t.test('the anchor', (t) => {
  t.equal(agreedAnchor([{ height: 100, anchor: good }]), good)
  t.equal(agreedAnchor([{ height: silent, anchor: good }]), good)
  t.equal(
    agreedAnchor([
      { height: 40, anchor: old },
      { height: 100, anchor: good },
      { height: 101, anchor: good },
    ]),
    good,
    'not that of a node which stands still',
  )
  t.equal(agreedAnchor([silent, { height: 100, anchor: good }, silent]), good)
  t.ok(isRefusal(agreedAnchor([silent, silent])))
  t.end()
})
