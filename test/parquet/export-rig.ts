import { join } from 'node:path'
import { DuckDBInstance } from '@duckdb/node-api'
import type { Test } from 'tap'
import { Dice } from '../../bench/kit/dice.js'
import { systemClock } from '../../src/actor/clock.js'
import { silentLog } from '../../src/actor/log.js'
import type { ItemInput } from '../../src/catalog/index-protocol.js'
import { packItems } from '../../src/catalog/pack.js'
import { type Id, idOfBytes } from '../../src/format/id.js'
import { isRefusal, type Refusal } from '../../src/format/refusal.js'
import { tagOf } from '../../src/format/tag.js'
import type { ExportOrder, ExportReply, ExportState } from '../../src/parquet/export-protocol.js'
import { Exporter } from '../../src/parquet/exporter.js'
import { sha256 } from '../../src/proof/digest.js'
import { folder, type L1House, l1House, madeChain, settle } from './l1-chain.js'

export const order: ExportOrder = {
  outputDir: 'all',
  startHeight: 0,
  endHeight: 120,
  maxFileRows: 1_000_000,
  heightPartitionSize: 1000,
  skipL1Transactions: false,
  skipL1Tags: false,
}
export const itemsEach = 3

export interface Rig {
  readonly house: L1House
  readonly exporter: Exporter
  readonly root: string
  /** Roots of the bundles, with their heights. */
  readonly bundles: readonly { readonly id: Id; readonly height: number }[]
  readonly items: readonly ItemInput[]
}

/** An index of 131 blocks in which every tenth block has a bundle; the last 10 blocks are not final. */
export async function rig(t: Test): Promise<Rig> {
  const house = l1House(t)
  const chain = [...madeChain(130)]
  await settle(house, chain)
  const dice = new Dice(7)
  const found = chain.flatMap(({ block, transactions }) => {
    const [first] = transactions
    return block.height % 10 === 1 && first !== undefined ? [{ id: first.id, height: block.height }] : []
  })
  const items: ItemInput[] = []
  for (const { id } of found) {
    const made = Array.from({ length: itemsEach }, (_, at): ItemInput => {
      const owner = dice.bytes(at === 0 ? 512 : 32)
      return {
        id: idOfBytes(dice.bytes(32)),
        size: 100 + at,
        owner,
        ownerAddress: sha256(owner),
        target: Buffer.alloc(0),
        anchor: dice.bytes(32),
        tags: [tagOf('Content-Type', 'text/css')],
        signatureType: at === 0 ? 1 : 2,
        parentId: id,
        headerSize: 1100,
        parentItemOffset: 160 + at * 1300,
        rootItemOffset: 160 + at * 1300,
      }
    })
    await house.keeper.handle({ kind: 'index-items', rootId: id, items: packItems(made) })
    items.push(...made)
  }
  const root = join(folder(t), 'parquet')
  const exporter = new Exporter(house.index, { root, forkDepth: 10 }, systemClock, silentLog)
  t.teardown(() => exporter.stop())
  return { house, exporter, root, bundles: found, items }
}

export function stateOf(reply: ExportReply | Refusal): ExportState {
  if (isRefusal(reply) || reply.state === undefined) throw new Error('there is no export')
  return reply.state
}

/** Begins an export and waits for its end. */
export async function whole(exporter: Exporter, change: Partial<ExportOrder> = {}): Promise<ExportState> {
  const { jobId } = stateOf(exporter.handle({ export: 'begin', order: { ...order, ...change } }))
  for (;;) {
    const state = stateOf(exporter.handle({ export: 'state', jobId }))
    if (state.status !== 'running') return state
    await new Promise((resolve) => setTimeout(resolve, 5))
  }
}

/** Asks DuckDB, in a database of its own. */
export async function duck(): Promise<(text: string) => Promise<unknown[][]>> {
  const connection = await (await DuckDBInstance.create()).connect()
  return async (text) => (await connection.runAndReadAll(text)).getRowsJson() as unknown[][]
}
