import { FairSlots } from '../actor/fair-slots.js'
import type { Block, Chain } from '../chain/chain.js'
import { type HeaderChain, type VerifiedHeader, verifiedHeader } from '../chain/verified-header.js'
import type { Id } from '../format/id.js'
import { isRefusal, type Refusal } from '../format/refusal.js'
import type { Transaction } from '../format/transaction.js'
import type { BlockTransaction } from '../proof/block-tree.js'
import { weaveEnds } from './weave-ends.js'

export type SupplyChain = HeaderChain & Pick<Chain, 'blockByHeight'>

/** A transaction in its block. */
export interface SuppliedTransaction {
  readonly transaction: Transaction
  /** Same as `VerifiedHeader` has it; empty where it is not known yet. */
  readonly treeRoot: Uint8Array
  readonly index: number
  /** Offset of the last byte of its data in the weave (1-based), proven; 0 while not known, and without data. */
  readonly weaveEnd: number
}

/** A block with those of its transactions that could be had. */
export interface BroughtBlock {
  readonly block: Block
  readonly transactions: readonly SuppliedTransaction[]
  readonly missing: readonly { readonly id: Id; readonly index: number; readonly refusal: Refusal }[]
}

interface RequestedBlock {
  readonly brought: Promise<BroughtBlock | Refusal>
  ready: BroughtBlock | undefined
}

/**
 * Blocks with their transactions, fetched ahead: at most `aheadMax` blocks at once (fetched or being fetched), and at
 * most `headersMax` headers of transactions at the same time.
 */
export class Supply {
  readonly #requested = new Map<number, RequestedBlock>()
  readonly #turns: FairSlots
  #abort = new AbortController()

  constructor(
    private readonly chain: SupplyChain,
    private readonly aheadMax: number,
    headersMax: number,
    /** False: headers are not verified. */
    private readonly judges = true,
  ) {
    this.#turns = FairSlots.unbounded(headersMax)
  }

  /** The block at this height where it has arrived. */
  ready(height: number): BroughtBlock | undefined {
    return this.#requested.get(height)?.ready
  }

  /** Waits for the block at this height, and requests those behind it (up to `last`) meanwhile. */
  async take(height: number, last: number): Promise<BroughtBlock | Refusal> {
    this.drop(height - 1)
    const end = Math.min(last, height + this.aheadMax - 1)
    for (let at = height; at <= end; at += 1) if (!this.#requested.has(at)) this.#ask(at)
    const requested = this.#requested.get(height)
    if (requested === undefined) throw new RangeError(`block ${height} is behind ${last}`)
    const brought = await requested.brought
    // A failed block is fetched again by the next call.
    if (isRefusal(brought) && this.#requested.get(height) === requested) this.#requested.delete(height)
    return brought
  }

  /** Blocks up to this height are needed no more. */
  drop(height: number): void {
    for (const at of this.#requested.keys()) if (at <= height) this.#requested.delete(at)
  }

  /** Forgets everything: nodes may be on another branch now. */
  clear(): void {
    this.#abort.abort()
    this.#abort = new AbortController()
    this.#requested.clear()
  }

  #ask(height: number): void {
    const brought = this.#bring(height, this.#abort.signal)
    const requested: RequestedBlock = { brought, ready: undefined }
    this.#requested.set(height, requested)
    void brought.then((found) => {
      if (!isRefusal(found)) requested.ready = found
    })
  }

  async #bring(height: number, signal: AbortSignal): Promise<BroughtBlock | Refusal> {
    const block = await this.chain.blockByHeight(height, { signal })
    if (isRefusal(block)) return block
    const headers = await Promise.all(
      block.transactionIds.map(async (id, index) => {
        return {
          id,
          index,
          header: await this.#turns.run(() => verifiedHeader(this.chain, id, { signal }, this.judges)),
        }
      }),
    )
    const ends = weaveEnds(
      block,
      headers.flatMap(({ header }) => (isRefusal(header) ? [] : [leafOf(header)])),
    )
    const transactions = headers.flatMap(({ id, index, header }) => {
      if (isRefusal(header)) return []
      return [{ ...header, index, weaveEnd: ends.get(id) ?? 0 }]
    })
    const missing = headers.flatMap(({ id, index, header }) =>
      isRefusal(header) ? [{ id, index, refusal: header }] : [],
    )
    return { block, transactions, missing }
  }
}

function leafOf({ transaction, treeRoot }: VerifiedHeader): BlockTransaction {
  const { id, format, dataSize } = transaction
  return { id, format, dataSize, dataRoot: treeRoot }
}
