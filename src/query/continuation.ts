import type { ChainIndex } from '../catalog/index-reader.js'
import { arrivalOf, arrivalUnknown, heightEnd, rowKeyBytes, writePendingKey } from '../catalog/row-key.js'
import { type BlockMark, blockMark, type Marks, type Position } from './cursor.js'

/**
 * Forks that a page is continued over without leaving a row out: as many blocks as this. The network keeps 50 blocks for
 * them; deeper ones stop the import until an operator looks.
 */
const forkDepth = 64

const lastId = Buffer.alloc(32, 0xff)

/** Where a page of rows goes on (`PageRequest`). */
export interface Continuation {
  readonly after?: Uint8Array
  readonly given?: Uint8Array
}

/**
 * Where the page after a cursor begins. No row may be left out that existed when the cursor was written, although rows move:
 * into a block, and by a fork into another one or out of all. Rows that may have moved are returned again.
 *
 * Oldest first: rows that came into blocks meanwhile are returned before the page continues with rows without a block. If the
 * marked block left the chain, a fork has replaced it. Then the page goes back by the depth of forks (oldest first), or begins
 * again (newest first).
 */
export function continued(position: Position, backwards: boolean, index: ChainIndex): Continuation {
  const { key, block, vague } = position
  if (vague !== undefined) return continuedVaguely(key, vague, backwards, index)
  const isReplaced = block !== undefined && !isOnChain(block, index)
  const isPending = arrivalOf(key) !== undefined
  // What was mined and came back arrived anew, before the place of the cursor.
  const hasForked = isReplaced || (position.forks !== undefined && position.forks !== index.forks)
  if (backwards) return hasForked ? {} : { after: key }
  const given = isPending ? key : givenKey(position.given)
  const below = block === undefined ? -1 : isReplaced ? block.height - forkDepth : block.height
  const from = isPending || isReplaced ? (below < 0 ? undefined : heightEnd(below)) : key
  return { ...(from === undefined ? {} : { after: from }), ...(given === undefined ? {} : { given }) }
}

/** The row itself has its present place. In a block, all since that block has come to its place later. */
function continuedVaguely(
  key: Uint8Array,
  id: Uint8Array,
  backwards: boolean,
  index: ChainIndex,
): Continuation {
  const row = index.row(id)
  const isWaiting = row !== undefined && row.height === undefined
  if (backwards) return { after: isWaiting ? row.key : key }
  const top = heightEnd(index.topHeight() ?? 0)
  if (isWaiting) return { after: top, given: row.key }
  return { after: row?.height === undefined || row.height === 0 ? top : heightEnd(row.height - 1) }
}

function isOnChain({ height, id }: BlockMark, index: ChainIndex): boolean {
  return index.block(height)?.id.startsWith(id) === true
}

function givenKey(arrival: number | undefined): Buffer | undefined {
  if (arrival === undefined) return undefined
  return writePendingKey(Buffer.alloc(rowKeyBytes), arrival, true, lastId)
}

/** The state of the chain in cursors, for the rows of one answer. */
export class ChainMarks {
  readonly #marks = new Map<number, BlockMark | undefined>()
  readonly #top: number
  readonly #forks: number

  constructor(private readonly index: ChainIndex) {
    this.#top = index.topHeight() ?? -1
    this.#forks = index.forks
  }

  /** `height`: of the row's block, undefined for none. `given`: what the page was continued with. */
  of(height: number | undefined, given: Uint8Array | undefined): Marks {
    // Where its number has no meaning, all of that number is given again.
    const arrival = given === undefined ? undefined : Math.min(arrivalOf(given) ?? 0, arrivalUnknown - 1)
    if (height === undefined) return { block: this.#block(this.#top), forks: this.#forks }
    if (height <= this.#top - forkDepth) return { given: arrival }
    return { block: this.#block(height), given: arrival }
  }

  #block(height: number): BlockMark | undefined {
    if (this.#marks.has(height)) return this.#marks.get(height)
    const block = height < 0 ? undefined : this.index.block(height)
    const mark = block === undefined ? undefined : blockMark(block)
    this.#marks.set(height, mark)
    return mark
  }
}
