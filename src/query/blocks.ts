import type { BlockRecord } from '../catalog/block.js'
import { decodeBase64url } from '../format/base64url.js'
import { heightsOf, pageSize, type RangeArgument, wrong } from './asking.js'
import type { QueryContext } from './context.js'
import { blockCursor, readBlockCursor } from './cursor.js'

/** One block, as GraphQL reads it. */
export class BlockNode {
  readonly id: string
  readonly timestamp: number
  readonly height: number
  readonly previous: string

  constructor(block: BlockRecord) {
    this.id = block.id
    this.timestamp = block.timestamp
    this.height = block.height
    this.previous = block.previous
  }
}

export interface BlocksArguments {
  readonly ids?: readonly string[] | null
  readonly height?: RangeArgument | null
  readonly first?: number | null
  readonly after?: string | null
  readonly sort?: 'HEIGHT_ASC' | 'HEIGHT_DESC' | null
}

interface BlockConnection {
  readonly pageInfo: { readonly hasNextPage: boolean }
  readonly edges: readonly { readonly cursor: string; readonly node: BlockNode }[]
}

/** The resolver of `Query.block`. */
export function block({ id }: { readonly id: string }, { index }: QueryContext): BlockNode | null {
  const bytes = decodeBase64url(id)
  const height = bytes === undefined ? undefined : index.heightOfBlock(bytes)
  const found = height === undefined ? undefined : index.block(height)
  return found === undefined ? null : new BlockNode(found)
}

/** The resolver of `Query.blocks`. */
export function blocks(asked: BlocksArguments, { index, limits }: QueryContext): BlockConnection {
  const limit = pageSize(asked.first, limits)
  const backwards = asked.sort !== 'HEIGHT_ASC'
  const cursor = asked.after === '' ? undefined : (asked.after ?? undefined)
  const after = cursor === undefined ? undefined : readBlockCursor(cursor)
  if (cursor !== undefined && after === undefined) throw wrong('Invalid block cursor')
  const { minHeight = 0, maxHeight = Number.MAX_SAFE_INTEGER } = heightsOf(asked.height)
  const min = !backwards && after !== undefined ? Math.max(minHeight, after + 1) : minHeight
  const max = backwards && after !== undefined ? Math.min(maxHeight, after - 1) : maxHeight
  const ids = asked.ids ?? []
  if (ids.length > limits.listMax) throw wrong(`ids may have at most ${limits.listMax} entries`)
  const found =
    ids.length === 0
      ? index.blocks(min, max, backwards, limit + 1)
      : byId(ids, index).filter(({ height }) => height >= min && height <= max)
  if (ids.length > 0) found.sort((one, other) => (one.height - other.height) * (backwards ? -1 : 1))
  return {
    pageInfo: { hasNextPage: found.length > limit },
    edges: found
      .slice(0, limit)
      .map((record) => ({ cursor: blockCursor(record.height), node: new BlockNode(record) })),
  }
}

function byId(ids: readonly string[], index: QueryContext['index']): BlockRecord[] {
  return [...new Set(ids)].flatMap((id) => {
    const bytes = decodeBase64url(id)
    const height = bytes === undefined ? undefined : index.heightOfBlock(bytes)
    const found = height === undefined ? undefined : index.block(height)
    return found === undefined ? [] : [found]
  })
}
