import { GraphQLError } from 'graphql'
import type { Page } from '../catalog/index-reader.js'
import type { Row } from '../catalog/row.js'
import type { Selection } from '../catalog/selection.js'
import { encodeBase64url } from '../format/base64url.js'
import { idBytes, parseId } from '../format/id.js'
import { pageSize, selectionOf, type TransactionsArguments, wrong } from './asking.js'
import { BlockNode } from './blocks.js'
import type { QueryContext } from './context.js'
import { readRowCursor, rowCursor } from './cursor.js'

const contentType = 'Content-Type'
const winstonDigits = 12
const intMax = 0x7fff_ffff

/** An amount in the smallest unit and in the unit that people use. */
function amount(winston: bigint): { winston: string; ar: string } {
  const digits = winston.toString().padStart(winstonDigits + 1, '0')
  const point = digits.length - winstonDigits
  return { winston: winston.toString(), ar: `${digits.slice(0, point)}.${digits.slice(point)}` }
}

/** One row, as GraphQL reads it: each method is a field, worked out when it is asked for. */
class TransactionNode {
  constructor(private readonly row: Row) {}

  id(): string {
    return encodeBase64url(this.row.id)
  }

  anchor(): string {
    return encodeBase64url(this.row.anchor)
  }

  signature(_: unknown, context: QueryContext): string | Promise<string> {
    const { signature } = this.row
    if (signature !== undefined) return encodeBase64url(signature)
    return context
      .header(this.row)
      .then((header) => (header === undefined ? '' : encodeBase64url(header.signature)))
  }

  signatureType(): number | null {
    return this.row.signatureType ?? null
  }

  recipient(_: unknown, { index }: QueryContext): string {
    return this.row.recipient === 0 ? '' : encodeBase64url(index.words.bytes(this.row.recipient))
  }

  owner(): OwnerNode {
    return new OwnerNode(this.row)
  }

  fee(): ReturnType<typeof amount> {
    return amount(this.row.transfer?.reward ?? 0n)
  }

  quantity(): ReturnType<typeof amount> {
    return amount(this.row.transfer?.quantity ?? 0n)
  }

  data(_: unknown, context: QueryContext): { size: string; type: string | null } {
    const tag = this.row.tags.find((number) => context.tagName(number) === contentType)
    const type = tag === undefined ? null : context.index.words.value(tag).toString('utf8')
    return { size: String(this.row.size), type }
  }

  tags(_: unknown, context: QueryContext): { name: string; value: string }[] {
    return this.row.tags.map((number) => ({
      name: context.tagName(number),
      value: context.index.words.value(number).toString('utf8'),
    }))
  }

  block(_: unknown, { index }: QueryContext): BlockNode | null {
    const block = this.row.height === undefined ? undefined : index.block(this.row.height)
    return block === undefined ? null : new BlockNode(block)
  }

  bundledIn(_: unknown, { index }: QueryContext): { id: string } | null {
    const { place } = this.row
    const id = place === undefined ? undefined : index.words.bytes(place.parent)
    // An item that was announced before its bundle lies in nothing yet.
    return id === undefined || id.every((byte) => byte === 0) ? null : { id: encodeBase64url(id) }
  }

  parent(_: unknown, context: QueryContext): { id: string } | null {
    return this.bundledIn(_, context)
  }

  ingested_at(): number {
    return Math.min(this.row.seenSeconds, intMax)
  }
}

class OwnerNode {
  constructor(private readonly row: Row) {}

  address(_: unknown, { index }: QueryContext): string {
    return encodeBase64url(index.words.bytes(this.row.owner))
  }

  key(_: unknown, context: QueryContext): string | Promise<string> {
    const key = context.index.ownerKey(this.row.owner)
    if (key !== undefined) return encodeBase64url(key)
    return context
      .header(this.row)
      .then((header) => (header === undefined ? '' : encodeBase64url(header.owner)))
  }
}

/** A page of rows; nothing is read before a field asks for it. */
class TransactionConnection {
  #page: Page<Row> | undefined

  constructor(
    private readonly wanted: Selection,
    private readonly backwards: boolean,
    private readonly after: Uint8Array | undefined,
    private readonly limit: number,
  ) {}

  pageInfo(_: unknown, context: QueryContext): { hasNextPage: boolean } {
    return { hasNextPage: this.#read(context).more }
  }

  edges(_: unknown, context: QueryContext): { cursor: () => string; node: TransactionNode }[] {
    return this.#read(context).entries.map((row) => ({
      cursor: () => rowCursor(row),
      node: new TransactionNode(row),
    }))
  }

  count(_: unknown, context: QueryContext): number | null {
    const count = context.index.count(this.wanted, context.effort)
    if (count !== undefined && count <= intMax) return count
    context.warn('PARTIAL_RESULT', 'The count is left out: it takes too long')
    return null
  }

  #read(context: QueryContext): Page<Row> {
    if (this.#page !== undefined) return this.#page
    const { backwards, limit, after } = this
    const request = { backwards, limit, ...(after === undefined ? {} : { after }) }
    const page = context.index.rows(this.wanted, request, context.effort)
    if (page.partial && page.entries.length === 0) {
      throw new GraphQLError(
        'Nothing was found in the time that a query has: narrow it, by heights for example',
        {
          extensions: { code: 'QUERY_TOO_EXPENSIVE' },
        },
      )
    }
    if (page.partial) {
      context.warn('PARTIAL_RESULT', 'The page is shorter than it could be: go on from its last cursor')
    }
    this.#page = page
    return page
  }
}

/** The resolver of `Query.transactions`. */
export function transactions(asked: TransactionsArguments, { limits }: QueryContext): TransactionConnection {
  const wanted = selectionOf(asked, limits)
  // Clients that page in a loop begin with an empty cursor.
  const cursor = asked.after === '' ? undefined : (asked.after ?? undefined)
  const after = cursor === undefined ? undefined : readRowCursor(cursor)
  if (cursor !== undefined && after === undefined) throw wrong('Invalid transaction cursor')
  return new TransactionConnection(wanted, asked.sort !== 'HEIGHT_ASC', after, pageSize(asked.first, limits))
}

/** The resolver of `Query.transaction`. */
export function transaction(
  { id }: { readonly id: string },
  { index }: QueryContext,
): TransactionNode | null {
  const parsed = parseId(id)
  const row = parsed === undefined ? undefined : index.row(idBytes(parsed))
  return row === undefined ? null : new TransactionNode(row)
}
