import type { BlockRecord } from '../catalog/block-record.js'
import { decodeBase64url } from '../format/base64url.js'
import { heightsOf, pageSize, queryError, type RangeArgument } from './asking.js'
import type { QueryContext } from './context.js'
import { blockCursor, readBlockCursor } from './cursor.js'
import { quoted } from './json-text.js'
import { type Writers, writeObject } from './selected.js'

const intMax = 0x7fff_ffff

const block: Writers<BlockRecord> = {
  id: (out, { id }) => {
    out.text += quoted(id)
  },
  timestamp: (out, { timestamp }) => {
    out.text += Math.min(timestamp, intMax)
  },
  height: (out, { height }) => {
    out.text += height
  },
  previous: (out, { previous }) => {
    out.text += quoted(previous)
  },
}

/** What writes blocks and lists of them, by the names of the types. */
export const blockWriters = {
  Block: block,
  BlockConnection: {
    pageInfo: (out, { entries, more }, context, below) => {
      const last = entries.at(-1)
      const end = last === undefined ? undefined : blockCursor(last.height)
      writeObject(out, { more, end }, context, below)
    },
    edges: (out, { entries }, context, below) => {
      for (const [at, entry] of entries.entries()) {
        out.text += at === 0 ? '[' : ','
        writeObject(out, entry, context, below)
      }
      out.text += entries.length === 0 ? '[]' : ']'
    },
  } satisfies Writers<BlockPage>,
  BlockEdge: {
    cursor: (out, { height }) => {
      out.text += quoted(blockCursor(height))
    },
    node: writeObject,
  } satisfies Writers<BlockRecord>,
}

export interface BlocksArguments {
  readonly ids?: readonly string[] | null
  readonly height?: RangeArgument | null
  readonly first?: number | null
  readonly after?: string | null
  readonly sort?: 'HEIGHT_ASC' | 'HEIGHT_DESC' | null
}

export interface BlockPage {
  readonly entries: readonly BlockRecord[]
  readonly more: boolean
}

/** The resolver of `Query.block`. */
export function blockById(
  { id }: { readonly id: string },
  { index, effort }: QueryContext,
): BlockRecord | null {
  effort.charge(2)
  const bytes = decodeBase64url(id)
  const height = bytes === undefined ? undefined : index.heightOfBlock(bytes)
  return (height === undefined ? undefined : index.block(height)) ?? null
}

/** The resolver of `Query.blocks`. Where the effort is spent already, a page has one block. */
export function blocks(args: BlocksArguments, { index, limits, effort }: QueryContext): BlockPage {
  effort.values(args)
  const wanted = pageSize(args.first, limits)
  const backwards = args.sort !== 'HEIGHT_ASC'
  const cursor = args.after === '' ? undefined : (args.after ?? undefined)
  const after = cursor === undefined ? undefined : readBlockCursor(cursor)
  if (cursor !== undefined && after === undefined) throw queryError('Invalid block cursor')
  const { minHeight = 0, maxHeight = Number.MAX_SAFE_INTEGER } = heightsOf(args.height)
  const min = !backwards && after !== undefined ? Math.max(minHeight, after + 1) : minHeight
  const max = backwards && after !== undefined ? Math.min(maxHeight, after - 1) : maxHeight
  const ids = args.ids ?? []
  if (ids.length > limits.listMax) throw queryError(`ids may have at most ${limits.listMax} entries`)
  const limit = effort.spent ? 1 : wanted
  const found =
    ids.length === 0
      ? index.blocks(min, max, backwards, limit + 1)
      : byId(ids, index, effort).filter(({ height }) => height >= min && height <= max)
  effort.charge(found.length)
  if (ids.length > 0) found.sort((one, other) => (one.height - other.height) * (backwards ? -1 : 1))
  return { entries: found.slice(0, limit), more: found.length > limit }
}

function byId(
  ids: readonly string[],
  index: QueryContext['index'],
  effort: QueryContext['effort'],
): BlockRecord[] {
  return [...new Set(ids)].flatMap((id) => {
    effort.lookUp(2)
    const bytes = decodeBase64url(id)
    const height = bytes === undefined ? undefined : index.heightOfBlock(bytes)
    const found = height === undefined ? undefined : index.block(height)
    return found === undefined ? [] : [found]
  })
}
