import { GraphQLError } from 'graphql'
import { OutOfEffort } from '../catalog/effort.js'
import type { Page, PageRequest } from '../catalog/index-reader.js'
import type { Row } from '../catalog/row.js'
import { heightOf } from '../catalog/row-key.js'
import type { Selection } from '../catalog/selection.js'
import type { StableIndex } from '../clickhouse/stable-index.js'
import type { QueryContext } from './context.js'
import { type Continuation, continued } from './continuation.js'
import { type Position, placeCursor, rowCursor } from './cursor.js'
import { JsonText } from './json-text.js'
import { type Selected, writeObject } from './selected.js'
import { countOfBoth, type Older, pageOfBoth, readOlder } from './stable-pages.js'

const intMax = 0x7fff_ffff

const shorter = 'The page is shorter than it could be: go on from its last cursor'

/** An edge of a page: its row, and what its cursor depends on. */
export interface RowEdge {
  readonly row: Row
  /** Where the page ended early, for its last edge: so that the next page does not read the same rows again. */
  readonly place?: Uint8Array | undefined
  /** What the page was continued with. */
  readonly given: Uint8Array | undefined
}

/** The cursor of an edge. */
export function cursorOf({ row, place, given }: RowEdge, { marks }: QueryContext): string {
  if (place !== undefined) return placeCursor(place, marks.of(heightOf(place), given))
  return rowCursor(row, marks.of(row.height, given))
}

/** The end of a page, for `pageInfo`. */
export interface PageEnd {
  readonly more: boolean
  readonly end: string | undefined
}

/** Steps that are charged for writing a row: one, and for some tags one, because most texts are at hand. */
const tagsPerStep = 4

/** What a query selects of a page. */
export interface PageParts {
  /** What is selected of the edges, each time that the query selects them. */
  readonly edges: readonly (readonly Selected[])[]
  /** The end of the page apart from its edges (`pageInfo.endCursor`). */
  readonly takesEnd: boolean
  readonly takesTags: boolean
  readonly takesCount: boolean
}

/** A page, and its edges as JSON: a list for each time that they are selected. */
interface WrittenPage extends Page<Row> {
  readonly texts: readonly JsonText[]
}

/**
 * A page of rows; nothing is read before a field needs it. Its edges are written before anything else of it, so that it can end
 * where the answer becomes too large or too slow: `pageInfo` then says that there are more. A page that has rows has at least
 * one, however large.
 */
export class TransactionConnection {
  #page: WrittenPage | undefined
  /** Null: counting takes too long. */
  #count: number | null | undefined
  #from: Continuation = {}
  /** Rows that ClickHouse has, where it has a part of them. */
  #older: Older | undefined

  constructor(
    private readonly wanted: Selection,
    private readonly request: Pick<PageRequest, 'backwards' | 'limit'>,
    private readonly position: Position | undefined,
    private readonly parts: PageParts,
  ) {}

  /**
   * Throws a GraphQLError where nothing was found within the effort and the answer would have no cursor to continue
   * from.
   */
  #found(context: QueryContext): WrittenPage {
    if (this.#page !== undefined) return this.#page
    const [wanted, request] = [this.wanted, this.#request(context)]
    const page =
      this.#older === undefined
        ? context.index.rows(wanted, request, context.effort)
        : pageOfBoth({ wanted, request }, this.#older, context)
    this.#page = this.#written(this.#usable(page, context), context)
    return this.#page
  }

  /** The page up to the last row that there is room and time for. */
  #written(page: Page<Row>, context: QueryContext): WrittenPage {
    const { effort } = context
    const texts = this.parts.edges.map(() => new JsonText((chars) => effort.written(chars)))
    if (texts.length === 0) return { ...page, texts }
    const { entries, place } = page
    let rows = 0
    for (; rows < entries.length && (rows === 0 || context.hasRoom); rows += 1) {
      const row = entries[rows] as Row
      const edge = { row, given: this.#from.given, place: rows === entries.length - 1 ? place : undefined }
      if (!this.#isWritten(edge, texts, rows, context)) break
    }
    for (const text of texts) text.text += rows === 0 ? '[]' : ']'
    if (rows === entries.length) return { ...page, texts }
    context.warn('PARTIAL_RESULT', shorter)
    return { entries: entries.slice(0, rows), more: true, texts }
  }

  /** Writes an edge into all lists of them. False: there was no time for it, and nothing of it is left. */
  #isWritten(edge: RowEdge, texts: readonly JsonText[], at: number, context: QueryContext): boolean {
    const marks = texts.map((text) => text.mark())
    try {
      const write = (): void => {
        for (const [list, text] of texts.entries()) {
          text.text += at === 0 ? '[' : ','
          writeObject(text, edge, context, this.parts.edges[list] ?? [])
          text.count()
        }
      }
      if (at === 0) context.effort.firstRow(write)
      else write()
      context.effort.charge(1 + edge.row.tags.length / tagsPerStep)
      return true
    } catch (error) {
      if (at === 0 || !(error instanceof OutOfEffort)) throw error
      for (const [list, mark] of marks.entries()) texts[list]?.goBack(mark)
      return false
    }
  }

  #request(context: QueryContext): PageRequest {
    const { position, request } = this
    if (position?.vague !== undefined) context.effort.lookUp(context.index.rowSteps)
    if (position !== undefined) this.#from = continued(position, request.backwards, context.index)
    const { takesTags } = this.parts
    return { ...request, ...this.#from, takesTags, tagsMaxBytes: context.roomBytes }
  }

  #usable(page: Page<Row>, context: QueryContext): Page<Row> {
    const { place, entries } = page
    if (place !== undefined && entries.length === 0 && !this.parts.takesEnd) {
      throw new GraphQLError(
        'Nothing was found yet in the time that a query has: go on from the cursor in the extensions of this error ' +
          '(or ask for pageInfo { endCursor }), or narrow the query, by heights for example',
        { extensions: { code: 'QUERY_TOO_EXPENSIVE', cursor: this.#placeCursor(place, context) } },
      )
    }
    if (place !== undefined) {
      context.warn('PARTIAL_RESULT', shorter)
    }
    return page
  }

  #placeCursor(place: Uint8Array, { marks }: QueryContext): string {
    return placeCursor(place, marks.of(heightOf(place), this.#from.given))
  }

  /** Reads what lies in ClickHouse before anything is written. Throws or rejects with a GraphQLError. */
  prepared(context: QueryContext, stable: StableIndex): this | Promise<this> {
    const { wanted } = this
    const { takesCount } = this.parts
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

  /** The edges as JSON, where `selected` is what the query selects of them. */
  edges(context: QueryContext, selected: readonly Selected[]): JsonText {
    const text = this.#found(context).texts[this.parts.edges.indexOf(selected)]
    if (text === undefined) throw new Error('a page was opened without its edges')
    return text
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
