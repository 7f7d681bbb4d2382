import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Test } from 'tap'
import { Dice } from '../../bench/kit/dice.js'
import { systemClock } from '../../src/actor/clock.js'
import { packBlockHeader } from '../../src/catalog/block-header.js'
import type { BulkLimits } from '../../src/catalog/bulk-batch.js'
import { CatalogKeeper } from '../../src/catalog/catalog-keeper.js'
import { Generations } from '../../src/catalog/generations.js'
import type { BlockInput, TransactionInput } from '../../src/catalog/index-protocol.js'
import { ChainIndex } from '../../src/catalog/index-reader.js'
import { openIndexTables } from '../../src/catalog/index-tables.js'
import { packTransactions } from '../../src/catalog/pack.js'
import { openCatalogTables } from '../../src/catalog/tables.js'
import { idOfBytes } from '../../src/format/id.js'
import { tagOf } from '../../src/format/tag.js'
import { sha256 } from '../../src/proof/digest.js'

export function folder(t: Test): string {
  const path = mkdtempSync(join(tmpdir(), 'sluice-l1-'))
  t.teardown(() => rmSync(path, { recursive: true, force: true }))
  return path
}

export interface L1House {
  readonly path: string
  readonly keeper: CatalogKeeper
  readonly index: ChainIndex
  readonly tables: ReturnType<typeof openIndexTables>
  close(): Promise<void>
}

/** An index with its keeper, on this thread. `bulk`: when what comes in bulk becomes a segment. */
export function openL1House(path: string, bulk?: BulkLimits): L1House {
  const generations = new Generations()
  // Rows carry the second in which they were first seen, and cursors with them.
  const still = { ...systemClock, now: () => 5_000_000 }
  const keeper = new CatalogKeeper({ path, touchEveryMs: 0, ...(bulk && { bulk }) }, generations, still)
  const { environment } = openCatalogTables(path)
  const tables = openIndexTables(environment)
  const index = new ChainIndex(environment, generations)
  let closed: Promise<void> | undefined
  return {
    path,
    keeper,
    index,
    tables,
    close() {
      closed ??= environment.close().then(() => keeper.close())
      return closed
    },
  }
}

export function l1House(t: Test, path = join(folder(t), 'catalog')): L1House {
  const house = openL1House(path)
  t.teardown(() => house.close())
  return house
}

export interface MadeBlock {
  readonly block: BlockInput
  readonly transactions: readonly TransactionInput[]
}

/** Blocks 0 to `top` with everything that a column can hold in them; the same seed, the same chain. */
export function* madeChain(top: number, transactionsMax = 7, seed = 5): Generator<MadeBlock> {
  const dice = new Dice(seed)
  let previous = ''
  let weave = 0
  for (let height = 0; height <= top; height += 1) {
    const id = dice.bytes(48).toString('base64url')
    const count = height % 5 === 3 ? 0 : dice.below(transactionsMax + 1)
    const before = weave
    const transactions = Array.from({ length: count }, (_, index) => {
      const made = transactionOf(dice, index, weave)
      weave = made.weaveEnd > 0 ? made.weaveEnd : weave
      return made
    })
    const header = packBlockHeader({
      nonce: dice.bytes(16),
      hash: dice.bytes(48),
      blockSize: String(weave - before),
      difficulty: '115792089039110416381168389782714091630053560834545856346499935466490404274176',
      lastRetarget: String(1_600_000_000 + height),
      rewardAddress: dice.bytes(32),
      rewardPool: '9007199254740995',
      walletList: dice.bytes(48),
      txRoot: dice.bytes(32),
      ...(height < 10
        ? {}
        : { cumulativeDifficulty: '616416144', rate: ['1', '65'], scheduledRate: ['1', '66'] as const }),
    })
    yield {
      block: {
        height,
        id,
        previous,
        timestamp: 1_600_000_000 + height * 120,
        weaveSize: String(weave),
        transactionCount: count,
        header,
      },
      transactions,
    }
    previous = id
  }
}

function transactionOf(dice: Dice, index: number, weave: number): TransactionInput {
  const rank = dice.zipf(40)
  const owner = Buffer.alloc(rank % 2 === 0 ? 512 : 65, rank)
  const size = dice.next() < 0.3 ? 0 : 1 + dice.below(1_000_000)
  const format = dice.next() < 0.2 ? 1 : 2
  const tags = [tagOf('App-Name', `app-${dice.zipf(9)}`)]
  if (dice.next() < 0.5) tags.push(tagOf('content-type', 'text/plain'), tagOf('Content-Type', 'image/png'))
  if (dice.next() < 0.2) tags.push({ name: dice.bytes(4), value: Buffer.of(0, 0xff, 0xfe) }, tagOf('', ''))
  if (dice.next() < 0.1) tags.push(tagOf('Content-Encoding', 'gzip'), tagOf('App-Name', 'again'))
  if (dice.next() < 0.1) tags.push(tagOf('Long', 'x'.repeat(2000)))
  return {
    id: idOfBytes(dice.bytes(32)),
    size,
    owner,
    ownerAddress: sha256(owner),
    index,
    format,
    target: dice.next() < 0.4 ? sha256(Buffer.alloc(65, dice.below(5))) : Buffer.alloc(0),
    anchor: dice.bytes(dice.next() < 0.5 ? 48 : 32),
    tags: dice.next() < 0.1 ? [] : tags,
    signature: dice.bytes(512),
    quantity: dice.next() < 0.1 ? 66_000_000_000_000_000_003n : BigInt(dice.word()),
    reward: dice.next() < 0.1 ? 9_007_199_254_740_993n : BigInt(dice.word()),
    dataRoot: size === 0 ? Buffer.alloc(0) : dice.bytes(32),
    weaveEnd: size === 0 ? 0 : weave + size,
  }
}

/** Puts a chain into the index. */
export async function settle(house: L1House, chain: Iterable<MadeBlock>): Promise<void> {
  const requests = [...chain].map(
    ({ block, transactions }) =>
      ({ kind: 'index-block', block, transactions: packTransactions(transactions) }) as const,
  )
  await house.keeper.handle({ kind: 'all', requests })
  house.index.refresh()
}
