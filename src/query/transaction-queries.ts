import type { Row, RowTag } from '../catalog/row.js'
import { encodeBase64url } from '../format/base64url.js'
import { idBytes, parseId } from '../format/id.js'
import { pageSize, queryError, selectionOf, type TransactionsArguments } from './asking.js'
import type { QueryContext } from './context.js'
import { readRowCursor } from './cursor.js'
import type { SignedHeader } from './headers.js'
import { type JsonText, quoted } from './json-text.js'
import { type Selected, type Writer, type Writers, writeObject } from './selected.js'
import { olderRow } from './stable-pages.js'
import { cursorOf, type PageEnd, type RowEdge, TransactionConnection } from './transaction-page.js'

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

/** Writes a bundle by its id in JSON. */
const holder: Writers<string> = {
  id: (out, id) => {
    out.text += id
  },
}

const connection: Writers<TransactionConnection> = {
  pageInfo: (out, rows, context, below) => writeObject(out, rows.end(context), context, below),
  edges: (out, rows, context, below) => out.append(rows.edges(context, below)),
  count: (out, rows, context) => {
    out.text += rows.count(context)
  },
}

const edge: Writers<RowEdge> = {
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
  const found = new TransactionConnection(wanted, page, position, {
    edges: below.filter(({ write }) => write === connection.edges).map((edges) => edges.below),
    takesEnd: below.some(({ below: inner }) => inner.some(({ write }) => write === endCursor)),
    takesTags: takesTags(below),
    takesCount: below.some(({ write }) => write === connection.count),
  })
  return stable === undefined ? found : found.prepared(context, stable)
}

/** Whether anything is written out of the tags of rows. */
function takesTags(selected: readonly Selected[]): boolean {
  return selected.some(({ write, below }) => write === writeTags || write === data.type || takesTags(below))
}

/** The resolver of `Query.transaction`. */
export function transaction(
  { id }: { readonly id: string },
  context: QueryContext,
  below: readonly Selected[],
): Row | null | Promise<Row | null> {
  const { index, effort, stable } = context
  effort.lookUp(index.rowSteps)
  const parsed = parseId(id)
  if (parsed === undefined) return null
  const bytes = idBytes(parsed)
  const row = index.row(bytes, takesTags(below))
  if (row !== undefined || stable === undefined) return row ?? null
  return olderRow(bytes, context, stable).then((found) => found ?? null)
}
