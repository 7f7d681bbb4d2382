import { FairSlots } from '../../actor/fair-slots.js'
import { type AnySignal, signalOf } from '../../actor/lazy-signal.js'
import type { Requester } from '../../actor/requester.js'
import type { Chain } from '../../chain/chain.js'
import { Gathered } from '../../format/gathered.js'
import { isRefusal, type Refusal, refuse } from '../../format/refusal.js'
import type { Transaction } from '../../format/transaction.js'
import { DataRootHasher } from '../../proof/data-root.js'
import { equalBytes } from '../../proof/digest.js'
import { isBoundById, verifyTransaction } from '../../proof/transaction-proof.js'
import { unknownEverywhere } from '../refusals.js'
import type { Found, Source, Wanted } from '../source.js'
import { cut } from '../upstream/cut.js'
import { windowIn } from '../window-in.js'
import { learnedOfTransaction } from './learned.js'
import type { Transactions } from './transaction-headers.js'

/** Nodes give data in one piece up to this size only. */
const dataMaxBytes = 12 * 1024 * 1024

/** Data of format 1 that is gathered at once, to be verified: each up to `dataMaxBytes`. */
const gatheredMax = 4

/**
 * The data of small transactions, which nodes return in one piece. Format 2 is proven by its data root at the end. The
 * signature of format 1 covers the data itself, so it is verified before the first byte is returned.
 */
export class TxData implements Source {
  readonly name = 'tx-data'
  readonly #gathering = FairSlots.unbounded(gatheredMax)

  constructor(
    private readonly transactions: Transactions,
    private readonly chain: Pick<Chain, 'transactionData'>,
  ) {}

  async open(wanted: Wanted, ending: AnySignal): Promise<Found | Refusal> {
    const signal = signalOf(ending)
    if (wanted.avoid.has(this.name)) return unknownEverywhere()
    const header = await this.transactions.headerFor(wanted, signal)
    if (isRefusal(header)) return header
    if (header.dataSize > dataMaxBytes) return unknownEverywhere()
    const window = wanted.window && windowIn(wanted.window, header.dataSize)
    if (isRefusal(window)) return window
    const requester = { client: wanted.client, signal }
    const body =
      header.format === 1 ? await this.#inline(header, requester) : await this.#rooted(header, requester)
    if (isRefusal(body)) return body
    return {
      name: this.name,
      origin: this.name,
      sizeBytes: header.dataSize,
      body: window === undefined ? body : cut(body, window.start, window.end + 1, 'read'),
      trusted: true,
      proven: isBoundById(header),
      learned: learnedOfTransaction(header),
      hints: {},
    }
  }

  async #inline(header: Transaction, requester: Requester): Promise<AsyncIterable<Uint8Array> | Refusal> {
    const known = this.transactions.takeInline(header)
    if (known !== undefined || header.dataSize === 0) return one(known ?? header.data)
    const turn = await this.#gathering.wait(requester.client, requester.signal)
    if (isRefusal(turn)) return turn
    try {
      const flow = await this.chain.transactionData(header.id, header.dataSize, requester)
      if (isRefusal(flow)) return flow
      const gathered = new Gathered(header.dataSize)
      for await (const piece of flow.bytes) {
        if (isRefusal(piece)) return piece
        gathered.add(piece)
      }
      const data = gathered.bytes()
      const held = verifyTransaction({ ...header, data })
      return held === true ? one(data) : held
    } finally {
      turn()
    }
  }

  async #rooted(
    header: Transaction,
    requester: Requester,
  ): Promise<AsyncIterable<Uint8Array | Refusal> | Refusal> {
    if (header.dataSize === 0) return one(new Uint8Array(0))
    const flow = await this.chain.transactionData(header.id, header.dataSize, requester)
    return isRefusal(flow) ? flow : rooted(flow.bytes, header)
  }
}

async function* one(data: Uint8Array): AsyncGenerator<Uint8Array, undefined> {
  if (data.length > 0) yield data
  return undefined
}

/** Passes the pieces on; the last is held back until the data root was seen to be right. */
async function* rooted(
  pieces: AsyncIterable<Uint8Array | Refusal>,
  { dataRoot, dataSize, id }: Transaction,
): AsyncGenerator<Uint8Array | Refusal, undefined> {
  const hasher = new DataRootHasher(dataSize)
  let held: Uint8Array | undefined
  for await (const piece of pieces) {
    if (isRefusal(piece)) {
      yield piece
      return undefined
    }
    hasher.update(piece)
    if (held !== undefined) yield held
    held = piece
  }
  const tree = hasher.finish()
  if (isRefusal(tree)) yield tree
  else if (!equalBytes(tree.root, dataRoot)) {
    yield refuse('forged', 'upstream', `the data of ${id} does not have its data root`)
  } else if (held !== undefined) yield held
  return undefined
}
