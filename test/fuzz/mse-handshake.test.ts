/** Encrypted connections whose first words are cut, spoilt or made up. */
import { ok } from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import t from 'tap'
import {
  type Encryption,
  MseInitiator,
  MseResponder,
  type Step,
  veiledInfohash,
} from '../../src/torrent/mse-handshake.js'
import { fc } from '../property.js'
import { fuzz } from './fuzz.js'

const hidden = randomBytes(20)
const parts = {
  unveil: (veiled: Buffer) => (veiled.equals(veiledInfohash(hidden)) ? hidden : undefined),
  mayAgree: () => true,
}

/** Bytes from one side to the other, cut at will, until neither says more. */
function converse(strict: boolean, answering: Encryption, cuts: readonly number[], spoil: number) {
  const sides = { asking: new MseInitiator(hidden, strict), answering: new MseResponder(answering, parts) }
  const ways = { asking: sides.asking.begin(), answering: Buffer.alloc(0) as Buffer }
  const steps: { asking?: Step; answering?: Step } = {}
  let sentBytes = 0
  for (let turn = 0; turn < 8; turn += 1) {
    const [from, to] =
      turn % 2 === 0 ? (['asking', 'answering'] as const) : (['answering', 'asking'] as const)
    const stream = Buffer.from(ways[from])
    ways[from] = Buffer.alloc(0)
    if (spoil >= sentBytes && spoil < sentBytes + stream.length) stream[spoil - sentBytes]! ^= 1
    sentBytes += stream.length
    let at = 0
    for (const size of [...cuts, stream.length]) {
      const end = Math.min(stream.length, at + size)
      if (end === at || (steps[to] !== undefined && steps[to].kind !== 'more')) continue
      const step = sides[to].push(stream.subarray(at, end))
      if (step.kind !== 'end' && step.reply !== undefined) ways[to] = Buffer.concat([ways[to], step.reply])
      steps[to] = step
      at = end
    }
  }
  return { ...steps, sentBytes }
}

const policies = fc.constantFrom<Encryption>('accept', 'prefer', 'require')

// Fewer than others: each computes four secrets.
const runs = { numRuns: 300 }

t.test('both sides agree however the stream is cut, and exchange the same bytes', async () => {
  const cuttings = fc.array(fc.integer({ min: 1, max: 300 }), { maxLength: 9 })
  const property = fc.property(fc.boolean(), policies, cuttings, (strict, policy, cuts) => {
    const { asking, answering } = converse(strict, policy, cuts, Number.POSITIVE_INFINITY)
    ok(asking?.kind === 'agreed' && answering?.kind === 'agreed')
    const isHidden = strict || policy === 'require'
    ok((asking.seal !== undefined) === isHidden && (answering.seal !== undefined) === isHidden)
    const word = Buffer.from('the same word')
    const there = Buffer.from(word)
    asking.seal?.(there)
    answering.open?.(there)
    const back = Buffer.from(word)
    answering.seal?.(back)
    asking.open?.(back)
    ok(there.equals(word) && back.equals(word))
  })
  fc.assert(property, runs)
})

t.test('a flipped bit ends an agreement, or was in a pad', async () => {
  const property = fc.property(fc.nat(1400), (spoil) => {
    const { asking, answering, sentBytes } = converse(true, 'require', [], spoil)
    ok(asking !== undefined || answering !== undefined)
    if (spoil >= sentBytes) ok(asking?.kind === 'agreed')
    // Behind the keys: what names the torrent, and both lists of words.
    if (spoil < 96) ok(answering?.kind !== 'agreed')
  })
  fc.assert(property, runs)
})

fuzz('first words that are no agreement', fc.uint8Array({ maxLength: 1500 }), (bytes) => {
  const step = new MseResponder('accept', parts).push(Buffer.from(bytes))
  ok(step.kind !== 'agreed' && (bytes.length < 96 + 532 || step.kind === 'end'))
})
