import { GraphQLError } from 'graphql'
import type { Page } from '../catalog/index-reader.js'
import type { Row } from '../catalog/row.js'
import type { Selection } from '../catalog/selection.js'
import { encodeBase64url } from '../format/base64url.js'
import { idBytes, parseId } from '../format/id.js'
import { pageSize, selectionOf, type TransactionsArguments, wrong } from './asking.js'
import type { QueryContext } from './context.js'
import { readRowCursor, rowCursor } from './cursor.js'
import type { SignedHeader } from './headers.js'
import { type JsonText, quoted } from './json-text.js'
import { type Selected, type Writers, writeObject } from './selected.js'

const winstonDigits = 12
const intMax = 0x7fff_ffff
/** What stands for the parent of an item that was announced before its bundle: it lies in nothing yet. */
const noParent = quoted(encodeBase64url(new Uint8Array(32)))

/** A signature or key in base64url: now, or when it is there. */
function writeSigned(
  out: JsonText,
  row: Row,
  context: QueryContext,
  known: Uint8Array | undefined,
  part: keyof SignedHeader,
): void {
  if (known !== undefined) out.text += quoted(encodeBase64url(known))
  else {
    const header = context.header(row)
    out.wait(header.then((found) => (found === undefined ? '""' : quoted(encodeBase64url(found[part])))))
  }
}

function writeParent(out: JsonText, row: Row, context: QueryContext, below: readonly Selected[]): void {
  const id = row.place === undefined ? noParent : context.texts.id(row.place.parent)
  if (id === noParent) out.text += 'null'
  else writeObject(out, id, context, below)
}

/** `[{"name":...,"value":...},...]` is what nearly everybody asks for. */
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
  let text = '['
  for (let at = 0; at < tags.length; at += 1) {
    if (at > 0) text += ','
    const number = tags[at] as number
    if (plain) text += context.texts.tag(number).both
    else {
      out.text += text
      text = ''
      writeObject(out, number, context, below)
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
  signature: (out, row, context) => writeSigned(out, row, context, row.signature, 'signature'),
  signatureType: (out, row) => {
    out.text += row.signatureType ?? 'null'
  },
  recipient: (out, row, { texts }) => {
    out.text += row.recipient === 0 ? '""' : texts.id(row.recipient)
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
  key: (out, row, context) => writeSigned(out, row, context, context.index.ownerKey(row.owner), 'owner'),
}

const data: Writers<Row> = {
  size: (out, row) => {
    out.text += `"${row.size}"`
  },
  type: (out, { tags }, { texts }) => {
    const type = tags.find((number) => texts.tag(number).isContentType)
    out.text += type === undefined ? 'null' : texts.tag(type).value
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

/** By its number. */
const tag = {
  name: (out, number, { texts }) => {
    out.text += texts.tag(number).name
  },
  value: (out, number, { texts }) => {
    out.text += texts.tag(number).value
  },
} as const satisfies Writers<number>

/** By its id in JSON. */
const holder: Writers<string> = {
  id: (out, id) => {
    out.text += id
  },
}

/** A page of rows; nothing is read before a field asks for it. */
export class TransactionConnection {
  #page: Page<Row> | undefined

  constructor(
    private readonly wanted: Selection,
    private readonly backwards: boolean,
    private readonly after: Uint8Array | undefined,
    private readonly limit: number,
  ) {}

  /** Throws a GraphQLError where nothing was found with the effort there was. */
  page(context: QueryContext): Page<Row> {
    if (this.#page !== undefined) return this.#page
    const { backwards, limit, after } = this
    const request = { backwards, limit, ...(after === undefined ? {} : { after }) }
    const page = context.index.rows(this.wanted, request, context.effort)
    if (page.partial && page.entries.length === 0) {
      throw new GraphQLError(
        'Nothing was found in the time that a query has: narrow it, by heights for example',
        { extensions: { code: 'QUERY_TOO_EXPENSIVE' } },
      )
    }
    if (page.partial) {
      context.warn('PARTIAL_RESULT', 'The page is shorter than it could be: go on from its last cursor')
    }
    this.#page = page
    return page
  }

  count(context: QueryContext): number | null {
    const count = context.index.count(this.wanted, context.effort)
    if (count !== undefined && count <= intMax) return count
    context.warn('PARTIAL_RESULT', 'The count is left out: it takes too long')
    return null
  }
}

const connection: Writers<TransactionConnection> = {
  pageInfo: (out, rows, context, below) => writeObject(out, rows.page(context).more, context, below),
  edges: (out, rows, context, below) => {
    let lead = '['
    const { entries } = rows.page(context)
    for (const row of entries) {
      out.text += lead
      lead = ','
      writeObject(out, row, context, below)
    }
    out.text += entries.length === 0 ? '[]' : ']'
  },
  count: (out, rows, context) => {
    out.text += rows.count(context)
  },
}

const edge: Writers<Row> = {
  cursor: (out, row) => {
    out.text += quoted(rowCursor(row))
  },
  node: writeObject,
}

/** Whether there are more behind the page. */
const pageInfo: Writers<boolean> = {
  hasNextPage: (out, more) => {
    out.text += more
  },
}

/** What writes transactions and lists of them, by the names of the types. */
export const transactionWriters = {
  ...{ Transaction: transactionFields, Owner: owner, MetaData: data, Amount: amount, Tag: tag },
  ...{ Bundle: holder, Parent: holder, PageInfo: pageInfo },
  ...{ TransactionConnection: connection, TransactionEdge: edge },
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
export function transaction({ id }: { readonly id: string }, { index }: QueryContext): Row | null {
  const parsed = parseId(id)
  return (parsed === undefined ? undefined : index.row(idBytes(parsed))) ?? null
}
