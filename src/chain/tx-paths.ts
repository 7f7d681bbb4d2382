import { BoundedMap } from '../actor/bounded-map.js'
import type { Clock } from '../actor/clock.js'
import { encodeBase64url } from '../format/base64url.js'
import { isRefusal } from '../format/refusal.js'
import { provenTree, validateTxPath } from '../proof/block-tree.js'
import { equalBytes } from '../proof/digest.js'
import type { Chunk } from './chain.js'
import type { BlockStretch, OffsetIndex, WeaveSpan } from './span.js'

/** Proofs remembered, about 1 KiB each. */
const pathsMax = 1024
/** Trees of blocks remembered, up to 1 MB each. */
const treesMax = 4
/** How long a proof that a fork may change is remembered, and that no proof was found. */
const passingMs = 30_000

type BlockTree = NonNullable<ReturnType<typeof provenTree>>

interface Known {
  /** Undefined: no proof was found. */
  readonly path: Uint8Array | undefined
  readonly untilMs: number
}

/** Where missing parts are requested. */
export interface PathSources {
  /** The block that holds the offset. */
  block(offset: number): Promise<BlockStretch | undefined>
  /** Asks nodes for the chunk until one gives what `wanted` takes. */
  chunk(offset: number, wanted: (chunk: Chunk) => boolean): Promise<void>
}

/**
 * Proofs (tx_path) from a block's tx_root down to the data root of a transaction in it. It comes with the chunk of a
 * node; otherwise it is built from the block's transactions, where the index has all of them; otherwise another node
 * is queried.
 */
export class TxPaths {
  readonly #known = new BoundedMap<string, Known>(pathsMax)
  readonly #trees = new BoundedMap<string, BlockTree>(treesMax)

  constructor(
    private readonly index: OffsetIndex | undefined,
    private readonly clock: Clock,
  ) {}

  /** The span with its proof, or without one where none was found a moment ago; undefined where it was not looked for. */
  known(span: WeaveSpan): WeaveSpan | undefined {
    if (span.txPath !== undefined) return span
    const known = this.#known.get(keyOf(span, this.#block(span)))
    return known === undefined || this.clock.monotonic() >= known.untilMs
      ? undefined
      : proven(span, known.path)
  }

  /** The span with its proof; `given` came with its chunk. Without a proof where none is valid. */
  async complete(span: WeaveSpan, given: Uint8Array | undefined, sources: PathSources): Promise<WeaveSpan> {
    const known = this.known(span)
    if (known !== undefined) return known
    const indexed = this.#block(span)
    const block = indexed ?? (await sources.block(span.start))
    const path = block && (await this.#path(span, given, block, sources))
    const isFinal = path !== undefined && (indexed !== undefined || span.settled)
    const untilMs = isFinal ? Number.POSITIVE_INFINITY : this.clock.monotonic() + passingMs
    this.#known.set(keyOf(span, indexed), { path, untilMs })
    return proven(span, path)
  }

  async #path(
    span: WeaveSpan,
    given: Uint8Array | undefined,
    block: BlockStretch,
    sources: PathSources,
  ): Promise<Uint8Array | undefined> {
    if (given !== undefined && leadsTo(given, span, block)) return given
    const built = this.#built(span, block)
    if (built !== undefined) return built
    let found: Uint8Array | undefined
    await sources.chunk(span.start, ({ txPath }) => {
      if (txPath === undefined || !leadsTo(txPath, span, block)) return false
      found = txPath
      return true
    })
    return found
  }

  #block({ height }: WeaveSpan): BlockStretch | undefined {
    return height === undefined ? undefined : this.index?.block(height)
  }

  #built(span: WeaveSpan, block: BlockStretch): Uint8Array | undefined {
    const whole = span.height === undefined ? undefined : this.#treeOf(span.height, block)
    const at = whole?.leaves.findIndex(({ start, id }) => {
      return id === span.id && block.before + start + 1 === span.start
    })
    return whole === undefined || at === undefined || at < 0 ? undefined : whole.tree.path(at)
  }

  /**
   * Trees are kept, because one takes some 30 ms for a block of 1,000 transactions, and requests for one of these are
   * often followed by requests for the others.
   */
  #treeOf(height: number, block: BlockStretch): BlockTree | undefined {
    const key = encodeBase64url(block.txRoot)
    const known = this.#trees.get(key)
    if (known !== undefined) return known
    const transactions = this.index?.transactions(height)
    const built = transactions === undefined ? undefined : provenTree(transactions, block)
    if (built !== undefined) this.#trees.set(key, built)
    return built
  }
}

function proven(span: WeaveSpan, txPath: Uint8Array | undefined): WeaveSpan {
  return txPath === undefined ? span : { ...span, txPath }
}

/** A fork may put a transaction at the same place of another block: the root of an indexed block distinguishes them. */
function keyOf({ start, dataRoot }: WeaveSpan, block: BlockStretch | undefined): string {
  return `${start}/${encodeBase64url(dataRoot)}/${block === undefined ? '' : encodeBase64url(block.txRoot)}`
}

function leadsTo(path: Uint8Array, span: WeaveSpan, { txRoot, before, sizeBytes }: BlockStretch): boolean {
  const offset = span.start - before - 1
  const leaf = validateTxPath({ txRoot, offset, blockSize: sizeBytes, path })
  if (isRefusal(leaf)) return false
  const isThere = leaf.start === offset && leaf.end - leaf.start === span.sizeBytes
  return isThere && equalBytes(leaf.dataHash, span.dataRoot)
}
