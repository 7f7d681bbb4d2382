import { GraphQLError } from 'graphql'
import type { Page, PageRequest } from '../catalog/index-reader.js'
import type { Row, RowTag } from '../catalog/row.js'
import { heightOf } from '../catalog/row-key.js'
import type { Selection } from '../catalog/selection.js'
import type { StableIndex } from '../clickhouse/stable-index.js'
import { encodeBase64url } from '../format/base64url.js'
import { idBytes, parseId } from '../format/id.js'
import { pageSize, queryError, selectionOf, type TransactionsArguments } from './asking.js'
import type { QueryContext } from './context.js'
import { type Continuation, continued } from './continuation.js'
import { type Position, placeCursor, readRowCursor, rowCursor } from './cursor.js'
import type { SignedHeader } from './headers.js'
import { type JsonText, quoted } from './json-text.js'
import { type Selected, type Writer, type Writers, writeObject } from './selected.js'
import { countOfBoth, type Older, olderRow, pageOfBoth, readOlder } from './stable-pages.js'

const winstonDigits = 12
const intMax = 0x7fff_ffff
/** What stands for the parent of an item that was announced before its bundle: it lies in nothing yet. */
const noParent = quoted(encodeBase64url(new Uint8Array(32)))

/** A signature or key, which the index does not have. */
function writeLate(out: JsonText, row: Row, context: QueryContext, part: keyof SignedHeader): void {
  const late = context.signed(row, part)
  if (late === undefined) out.text += '""'
  else out.wait(late)
}

function writeParent(out: JsonText, row: Row, context: QueryContext, below: readonly Selected[]): void {
  const id = row.place === undefined ? noParent : context.texts.id(row.place.parent)
  if (id === noParent) out.text += 'null'
  else writeObject(out, id, context, below)
}

/** Nearly all queries request `[{"name":...,"value":...},...]`. */
function isPlain([name, value, ...more]: readonly Selected[]): boolean {
  return (
    more.length === 0 &&
    name?.label === '{"name":' &&
    value?.label === ',"value":' &&
    name.write === tag.name &&
    value.write === tag.value
  )
}

function writeTags(out: JsonText, { tags }: Row, context: QueryContext, below: readonly Selected[]): void {
  const plain = isPlain(below)
  context.effort.writing(tags.length)
  let text = '['
  for (let at = 0; at < tags.length; at += 1) {
    if (at > 0) text += ','
    const one = tags[at] as RowTag
    if (plain) text += context.texts.tag(one).both
    else {
      out.text += text
      text = ''
      writeObject(out, one, context, below)
    }
  }
  out.text += `${text}]`
}

const transactionFields: Writers<Row> = {
  id: (out, row) => {
    out.text += quoted(encodeBase64url(row.id))
  },
  anchor: (out, row) => {
    out.text += quoted(encodeBase64url(row.anchor))
  },
  signature: (out, row, context) => {
    if (row.signature === undefined) writeLate(out, row, context, 'signature')
    else out.text += quoted(encodeBase64url(row.signature))
  },
  signatureType: (out, row) => {
    out.text += row.signatureType ?? 'null'
  },
  recipient: (out, row, { texts }) => {
    out.text += row.recipient.length === 0 ? '""' : texts.id(row.recipient)
  },
  owner: writeObject,
  fee: (out, row, context, below) => writeObject(out, row.transfer?.reward ?? 0n, context, below),
  quantity: (out, row, context, below) => writeObject(out, row.transfer?.quantity ?? 0n, context, below),
  data: writeObject,
  tags: writeTags,
  block: (out, { height }, context, below) => {
    const block = height === undefined ? undefined : context.block(height)
    if (block === undefined) out.text += 'null'
    else writeObject(out, block, context, below)
  },
  parent: writeParent,
  bundledIn: writeParent,
  ingested_at: (out, row) => {
    out.text += Math.min(row.seenSeconds, intMax)
  },
}

const owner: Writers<Row> = {
  address: (out, row, { texts }) => {
    out.text += texts.id(row.owner)
  },
  key: (out, row, context) => {
    const key = context.ownerKey(row.owner)
    if (key === undefined) writeLate(out, row, context, 'owner')
    else out.text += key
  },
}

const data: Writers<Row> = {
  size: (out, row) => {
    out.text += `"${row.size}"`
  },
  type: (out, row, context) => {
    out.text += context.contentType(row)
  },
}

/** An amount in the smallest unit and in the unit that people use. */
const amount: Writers<bigint> = {
  winston: (out, winston) => {
    out.text += `"${winston}"`
  },
  ar: (out, winston) => {
    const digits = winston.toString().padStart(winstonDigits + 1, '0')
    const point = digits.length - winstonDigits
    out.text += `"${digits.slice(0, point)}.${digits.slice(point)}"`
  },
}

const tag = {
  name: (out, one, { texts }) => {
    out.text += texts.tag(one).name
  },
  value: (out, one, { texts }) => {
    out.text += texts.tag(one).value
  },
} as const satisfies Writers<RowTag>

/** By its id in JSON. */
const holder: Writers<string> = {
  id: (out, id) => {
    out.text += id
  },
}

/** An edge of a page: its row, and what its cursor depends on. */
interface Edge {
  readonly row: Row
  /** Where the page ended early, for its last edge. */
  readonly place?: Uint8Array | undefined
  /** What the page was continued with. */
  readonly given: Uint8Array | undefined
}

function cursorOf({ row, place, given }: Edge, { marks }: QueryContext): string {
  if (place !== undefined) return placeCursor(place, marks.of(heightOf(place), given))
  return rowCursor(row, marks.of(row.height, given))
}

/** The end of a page, for `pageInfo`. */
interface PageEnd {
  readonly more: boolean
  readonly end: string | undefined
}

/** Steps that are charged for writing a row: one, and for some tags one, because most texts are at hand. */
const tagsPerStep = 4

/** A page of rows; nothing is read before a field needs it. */
export class TransactionConnection {
  #page: Page<Row> | undefined
  /** Null: counting takes too long. */
  #count: number | null | undefined
  #from: Continuation = {}
  /** Of ClickHouse, where it has a part of the rows. */
  #older: Older | undefined

  constructor(
    private readonly wanted: Selection,
    private readonly request: Pick<PageRequest, 'backwards' | 'limit'>,
    private readonly position: Position | undefined,
    /** The query selects the end of the page apart from its edges (`pageInfo.endCursor`). */
    private readonly takesEnd: boolean,
  ) {}

  /**
   * Throws a GraphQLError where nothing was found within the effort and the answer would have no cursor to continue
   * from.
   */
  #found(context: QueryContext): Page<Row> {
    if (this.#page !== undefined) return this.#page
    const [wanted, request] = [this.wanted, this.#request(context)]
    const page =
      this.#older === undefined
        ? context.index.rows(wanted, request, context.effort)
        : pageOfBoth({ wanted, request }, this.#older, context)
    this.#page = this.#usable(page, context)
    return this.#page
  }

  #request(context: QueryContext): PageRequest {
    const { position, request } = this
    if (position?.vague !== undefined) context.effort.lookUp(context.index.rowSteps)
    if (position !== undefined) this.#from = continued(position, request.backwards, context.index)
    return { ...request, ...this.#from }
  }

  #usable(page: Page<Row>, context: QueryContext): Page<Row> {
    const { place, entries } = page
    if (place !== undefined && entries.length === 0 && !this.takesEnd) {
      throw new GraphQLError(
        'Nothing was found yet in the time that a query has: go on from the cursor in the extensions of this error ' +
          '(or ask for pageInfo { endCursor }), or narrow the query, by heights for example',
        { extensions: { code: 'QUERY_TOO_EXPENSIVE', cursor: this.#placeCursor(place, context) } },
      )
    }
    if (place !== undefined) {
      context.warn('PARTIAL_RESULT', 'The page is shorter than it could be: go on from its last cursor')
    }
    return page
  }

  #placeCursor(place: Uint8Array, { marks }: QueryContext): string {
    return placeCursor(place, marks.of(heightOf(place), this.#from.given))
  }

  /** Reads what lies in ClickHouse before anything is written. Throws or rejects with a GraphQLError. */
  prepared(context: QueryContext, stable: StableIndex, takesCount: boolean): this | Promise<this> {
    const { wanted } = this
    const older = readOlder({ wanted, takesCount, request: this.#request(context) }, context, stable)
    const keep = (read: Older): this => {
      this.#older = read
      return this
    }
    return older instanceof Promise ? older.then(keep) : keep(older)
  }

  end(context: QueryContext): PageEnd {
    const { entries, more, place } = this.#found(context)
    const row = entries.at(-1)
    if (place !== undefined) return { more, end: this.#placeCursor(place, context) }
    return { more, end: row === undefined ? undefined : cursorOf({ row, given: this.#from.given }, context) }
  }

  /**
   * The last edge of a page that ended early has the cursor of where it ended: so that the next page does not read
   * the same rows again.
   */
  edges(context: QueryContext): Edge[] {
    const { entries, place } = this.#found(context)
    const { given } = this.#from
    return entries.map((row, at) => ({ row, given, place: at === entries.length - 1 ? place : undefined }))
  }

  count(context: QueryContext): number | null {
    if (this.#count === undefined) this.#count = this.#counted(context)
    return this.#count
  }

  #counted(context: QueryContext): number | null {
    const count =
      this.#older === undefined
        ? context.index.count(this.wanted, context.effort)
        : countOfBoth(this.wanted, this.#older, context)
    if (count !== undefined && count <= intMax) return count
    context.warn('PARTIAL_RESULT', 'The count is left out: it takes too long')
    return null
  }
}

const connection: Writers<TransactionConnection> = {
  pageInfo: (out, rows, context, below) => writeObject(out, rows.end(context), context, below),
  edges: (out, rows, context, below) => {
    const edges = rows.edges(context)
    const { effort } = context
    let lead = '['
    for (const edge of edges) {
      out.text += lead
      lead = ','
      writeObject(out, edge, context, below)
      effort.charge(1 + edge.row.tags.length / tagsPerStep)
    }
    out.text += edges.length === 0 ? '[]' : ']'
  },
  count: (out, rows, context) => {
    out.text += rows.count(context)
  },
}

const edge: Writers<Edge> = {
  cursor: (out, edge, context) => {
    out.text += quoted(cursorOf(edge, context))
  },
  node: (out, { row }, context, below) => writeObject(out, row, context, below),
}

const endCursor: Writer<PageEnd> = (out, { end }) => {
  out.text += end === undefined ? 'null' : quoted(end)
}

const pageInfo: Writers<PageEnd> = {
  hasNextPage: (out, { more }) => {
    out.text += more
  },
  endCursor,
}

/** What writes transactions and lists of them, by the names of the types. */
export const transactionWriters = {
  Transaction: transactionFields,
  Owner: owner,
  MetaData: data,
  Amount: amount,
  Tag: tag,
  Bundle: holder,
  Parent: holder,
  PageInfo: pageInfo,
  TransactionConnection: connection,
  TransactionEdge: edge,
}

/** The resolver of `Query.transactions`. */
export function transactions(
  args: TransactionsArguments,
  context: QueryContext,
  below: readonly Selected[],
): TransactionConnection | Promise<TransactionConnection> {
  const { limits, effort, stable } = context
  effort.values(args)
  const wanted = selectionOf(args, limits)
  // Some clients send an empty cursor for the first page.
  const cursor = args.after === '' ? undefined : (args.after ?? undefined)
  const position = cursor === undefined ? undefined : readRowCursor(cursor)
  if (cursor !== undefined && position === undefined) throw queryError('Invalid transaction cursor')
  const page = { backwards: args.sort !== 'HEIGHT_ASC', limit: pageSize(args.first, limits) }
  const takesEnd = below.some(({ below: inner }) => inner.some(({ write }) => write === endCursor))
  const found = new TransactionConnection(wanted, page, position, takesEnd)
  if (stable === undefined) return found
  const takesCount = below.some(({ write }) => write === connection.count)
  return found.prepared(context, stable, takesCount)
}

/** The resolver of `Query.transaction`. */
export function transaction(
  { id }: { readonly id: string },
  context: QueryContext,
): Row | null | Promise<Row | null> {
  const { index, effort, stable } = context
  effort.lookUp(index.rowSteps)
  const parsed = parseId(id)
  if (parsed === undefined) return null
  const bytes = idBytes(parsed)
  const row = index.row(bytes)
  if (row !== undefined || stable === undefined) return row ?? null
  return olderRow(bytes, context, stable).then((found) => found ?? null)
}
