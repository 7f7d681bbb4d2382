import { randomBytes } from 'node:crypto'
import t from 'tap'
import { type Clock, systemClock } from '../../src/actor/clock.js'
import { type Block, parseBlockHash } from '../../src/chain/chain.js'
import { WeaveSearch } from '../../src/chain/weave-search.js'
import { isRefusal, type Refusal, refuse } from '../../src/format/refusal.js'
import { fc } from '../property.js'

function hash() {
  const parsed = parseBlockHash(randomBytes(48).toString('base64url'))
  if (parsed === undefined) throw new Error('no hash')
  return parsed
}

/** A chain in memory that counts what it is asked. */
class Blocks {
  requested = 0
  readonly list: Block[] = []

  constructor(sizes: readonly number[]) {
    for (const size of sizes) this.add(size)
  }

  add(blockSize: number): void {
    const weaveSize = (this.list.at(-1)?.weaveSize ?? 0) + blockSize
    const height = this.list.length
    this.list.push({ hash: hash(), height, timestamp: 0, transactionIds: [], weaveSize, blockSize })
  }

  currentBlock = (): Promise<Block | Refusal> => this.blockByHeight(this.list.length - 1)

  blockByHeight = async (height: number): Promise<Block | Refusal> => {
    this.requested += 1
    return this.list[height] ?? refuse('unknown', 'upstream', 'no such block')
  }

  /** By looking at every block. */
  holding(offset: number): number | undefined {
    return this.list.find(({ weaveSize }) => offset <= weaveSize)?.height
  }
}

/** Time that stands still until it is moved. */
function handClock(): Clock & { move(ms: number): void } {
  let now = 0
  return {
    ...systemClock,
    monotonic: () => now,
    move(ms) {
      now += ms
    },
  }
}

t.test('the block that holds a byte is found, whatever the sizes of blocks are', async () => {
  const sizes = fc.array(fc.oneof(fc.constant(0), fc.integer({ min: 1, max: 10_000 })), {
    minLength: 1,
    maxLength: 300,
  })
  await fc.assert(
    fc.asyncProperty(sizes, fc.array(fc.double({ min: 0, max: 1, noNaN: true })), async (given, shares) => {
      const blocks = new Blocks(given)
      const search = new WeaveSearch(blocks, systemClock)
      const end = blocks.list.at(-1)?.weaveSize ?? 0
      for (const share of shares) {
        const offset = 1 + Math.floor(share * (end + 2))
        const found = await search.find(offset)
        if (isRefusal(found)) {
          if (offset <= end || found.refused !== 'unknown') return false
        } else if (found.height !== blocks.holding(offset)) return false
      }
      return true
    }),
  )
})

t.test('a long chain takes some twenty requests, a known region none', async (t) => {
  const sizes = Array.from({ length: 200_000 }, (_, at) => (at % 7 === 0 ? 0 : (at * 7919) % 1_000_003))
  const blocks = new Blocks(sizes)
  const search = new WeaveSearch(blocks, handClock())
  const offset = (blocks.list[123_456]?.weaveSize ?? 0) - 5
  t.match(await search.find(offset), { height: blocks.holding(offset) })
  t.ok(blocks.requested <= 2 * 18 + 1, `${blocks.requested} questions`)
  blocks.requested = 0
  t.match(await search.find(offset + 1), { height: blocks.holding(offset + 1) })
  t.equal(blocks.requested, 0, 'the same block again')
})

t.test('the tip is remembered for a moment, shorter for offsets beyond it', async (t) => {
  const blocks = new Blocks([100, 100])
  const clock = handClock()
  const search = new WeaveSearch(blocks, clock)
  t.match(await search.find(201), { refused: 'unknown' })
  blocks.add(100)
  t.match(await search.find(201), { refused: 'unknown' }, 'at once: nobody asked again')
  t.equal(blocks.requested, 1)
  clock.move(300)
  t.match(await search.find(201), { height: 2 })
})

t.test('what a fork replaced is not used any more', async (t) => {
  const blocks = new Blocks([100, 100, 100, 100])
  const clock = handClock()
  const search = new WeaveSearch(blocks, clock)
  t.match(await search.find(150), { height: 1 })
  blocks.list.length = 1
  for (const size of [20, 20, 100, 100]) blocks.add(size)
  clock.move(2000)
  t.match(await search.find(150), { height: 3 })
  t.match(await search.find(130), { height: 2 })
})

t.test('nodes whose blocks contradict each other, or lack one, are no proof of absence', async (t) => {
  const liar = new Blocks([100, 100, 100, 100, 100])
  const twisted = { ...(liar.list[2] as Block), weaveSize: 90, blockSize: 10 }
  liar.list[2] = twisted
  t.match(await new WeaveSearch(liar, systemClock).find(250), { refused: 'upstream' })
  const holey = new Blocks([100, 100, 100, 100, 100])
  const search = new WeaveSearch(
    {
      currentBlock: holey.currentBlock,
      blockByHeight: async (height) =>
        height === 2 ? refuse('unknown', 'upstream', 'pruned') : holey.blockByHeight(height),
    },
    systemClock,
  )
  t.match(await search.find(250), { refused: 'upstream' })
})
