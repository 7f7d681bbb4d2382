import { createHash } from 'node:crypto'
import {
  Dictionary,
  numberBytes,
  numberOf,
  tagStart,
  tagWord,
  type WordKind,
  wordKind,
} from './dictionary.js'
import { findRow } from './ids.js'
import { type IndexTables, weaveKey } from './index-tables.js'
import { blockRows, prefixOf } from './postings.js'
import { decodeRow, type StoredRow } from './row.js'
import { compareRowKeys, heightStart, rowKey, rowKeyBytes } from './row-key.js'
import type { RowTables } from './row-tables.js'
import { pendingKey, rowPrefixes } from './set-writer.js'
import { isInSpan, type LiveTables } from './table-sets.js'

const noId = Buffer.alloc(32)
const blockRowsMax = 126

/** What a set of tables has. */
export interface CheckedSet {
  /** Rows that count. */
  readonly rows: number
  readonly postings: number
  readonly words: number
  /** Rows that count and are in no block. */
  readonly pending: number
  /** Transactions that count and whose place in the weave is known. */
  readonly placed: number
}

/** Checks one set of tables against itself, and its rows that count against the tables that both have in common. */
export class SetCheck {
  /** Sums over everything that is posted, once as the rows say it and once as the postings do. */
  #promised = new Sum()
  #posted = new Sum()
  #pending = 0
  #placed = 0
  #hidden = 0
  #hiddenPending = 0
  readonly #set: RowTables

  constructor(
    private readonly tables: IndexTables,
    private readonly live: LiveTables,
    private readonly expect: (right: boolean, problem: string) => void,
  ) {
    this.#set = live.tables
  }

  run(): CheckedSet {
    const rows = this.#rows()
    this.#postings()
    const words = this.#words()
    const listed = this.#set.pending.count()
    const pending = this.#pending + this.#hiddenPending
    this.expect(listed === pending, `${listed} pending entries for ${pending} pending rows`)
    const { frozen } = this.tables.sets.state
    if (this.live.span !== undefined) {
      const isRight = frozen?.hiddenRows === this.#hidden && frozen.hiddenPending === this.#hiddenPending
      this.expect(isRight, `${this.#hidden} rows of frozen tables do not count, of ${frozen?.hiddenRows}`)
    }
    if (!this.#promised.equals(this.#posted)) this.#lookEachUp()
    return { rows, postings: this.#posted.count, words, pending: this.#pending, placed: this.#placed }
  }

  #rows(): number {
    let rows = 0
    let root: Buffer | undefined
    for (const { key, value } of this.#set.rows.span({})) {
      const counts = isInSpan(this.live.span, key)
      rows += counts ? 1 : 0
      this.#hidden += counts ? 0 : 1
      const row = this.#decode(key, value)
      if (row === undefined) continue
      const name = row.id.toString('base64url')
      const found = findRow(this.#set, this.#set.runs.ids, row.id)
      this.expect(found?.key.equals(key) === true, `no id leads to ${name}`)
      for (const prefix of rowPrefixes(key, row)) this.#promised.add(prefix, key, 0)
      this.#wordsOf(row, name)
      if (row.height === undefined) {
        if (counts) this.#pending += 1
        else this.#hiddenPending += 1
        const listed = this.#set.pending.view(pendingKey(row.seenSeconds, key)) !== undefined
        this.expect(listed, `${name} is pending and not listed`)
      } else if (counts) {
        if (!row.isItem) root = key as Buffer
        this.#inBlock(key, row, row.height, name, root)
      }
    }
    return rows
  }

  /** `root`: the last transaction of the tables up to this row. */
  #inBlock(key: Uint8Array, row: StoredRow, height: number, name: string, root: Buffer | undefined): void {
    const end = row.transfer?.weaveEnd ?? 0
    if (end > 0) {
      this.#placed += 1
      const there = this.tables.weave.view(weaveKey(end))
      this.expect(
        there !== undefined && Buffer.compare(there, key) === 0,
        `${name} ends at ${end} of the weave and is not listed there`,
      )
    }
    const start = rowKey(height, row.index, false, noId)
    let inRoot = root !== undefined && Buffer.compare(root.subarray(0, 7), start.subarray(0, 7)) === 0
    inRoot ||= hasTransaction(this.tables, start)
    inRoot ||= this.tables.segments.transactionIn(height, row.index) !== undefined
    this.expect(inRoot, `${name} is an item of no transaction`)
    const block = this.tables.blocks.view(heightStart(height).subarray(0, 4))
    this.expect(block !== undefined, `${name} is in block ${height}, which is not there`)
  }

  #decode(key: Uint8Array, record: Uint8Array): (StoredRow & { readonly id: Buffer }) | undefined {
    try {
      const row = decodeRow(key, record)
      return { ...row, id: Buffer.from(row.id) }
    } catch (error) {
      this.expect(false, `a row cannot be read: ${String(error)}`)
      return undefined
    }
  }

  #wordsOf(row: StoredRow, name: string): void {
    const { owner, recipient, place } = row
    const used: [number, WordKind][] = row.tags.map((tag) => [tag, wordKind.tag])
    used.push([owner, wordKind.address])
    if (recipient !== 0) used.push([recipient, wordKind.address])
    if (place !== undefined) used.push([place.parent, wordKind.bundle])
    for (const [number, kind] of used) {
      this.expect(
        this.#set.numbers.view(numberBytes(number))?.[0] === kind,
        `${name} uses the missing word ${number}`,
      )
    }
  }

  #postings(): void {
    let before: { prefix: number; last: Buffer } | undefined
    for (const { key, value } of this.#set.postings.span({})) {
      const prefix = prefixOf(key)
      const rows = blockRows(key, value)
      this.expect(
        rows.length % rowKeyBytes === 0 && rows.length <= blockRowsMax * rowKeyBytes,
        `a block of ${rows.length} bytes under ${prefix}`,
      )
      let last = before?.prefix === prefix ? before.last : undefined
      for (let at = 0; at + rowKeyBytes <= rows.length; at += rowKeyBytes) {
        const row = rows.subarray(at, at + rowKeyBytes)
        this.expect(
          last === undefined || compareRowKeys(last, 0, row, 0) < 0,
          `postings out of order under ${prefix}`,
        )
        this.#posted.add(prefix, rows, at)
        last = row
      }
      before = { prefix, last: last ?? rows }
    }
  }

  /** Only where the sums differ: which postings are there and should not be. */
  #lookEachUp(): void {
    const { count } = this.#promised
    this.expect(false, `${this.#posted.count} postings where the rows have ${count}`)
    for (const { key, value } of this.#set.postings.span({})) {
      const rows = blockRows(key, value)
      const prefix = prefixOf(key)
      for (let at = 0; at < rows.length; at += rowKeyBytes) {
        const row = rows.subarray(at, at + rowKeyBytes)
        const record = this.#set.rows.get(row)
        const has = record !== undefined && rowPrefixes(row, decodeRow(row, record)).includes(prefix)
        this.expect(has, `a posting under ${prefix} leads to no row of it`)
      }
    }
  }

  #words(): number {
    let [words, tags] = [0, 0]
    const known = new Dictionary(this.#set)
    for (const { key, value } of this.#set.numbers.span({})) {
      words += 1
      const kind = value[0] as WordKind
      const bytes = value.subarray(1)
      this.expect(known.number(kind, bytes) === numberOf(key), `word ${numberOf(key)} cannot be found`)
      if (kind === wordKind.tag) {
        tags += 1
        const name = this.#set.numbers.view(bytes.subarray(0, tagWord(0, noId).length - noId.length))
        this.expect(name?.[0] === wordKind.name, `the tag ${numberOf(key)} has no name`)
      }
    }
    const ordered = this.#orderedTags()
    this.expect(ordered === tags, `${ordered} tags in order of ${tags}`)
    for (const { key, value } of this.#set.owners.span({})) {
      const address = this.#set.numbers.get(key)?.subarray(1)
      const right =
        address !== undefined && Buffer.compare(createHash('sha256').update(value).digest(), address) === 0
      this.expect(right, `the owner's key of word ${numberOf(key)} does not have its address`)
    }
    return words
  }

  /** Tags that a search by prefix finds: those of the table, and those of the runs that are still there. */
  #orderedTags(): number {
    let tags = 0
    for (const { key, value } of this.#set.words.span({ start: Buffer.of(wordKind.tag) })) {
      if (key[0] !== wordKind.tag) break
      this.expect(
        this.#set.numbers.view(value) !== undefined,
        `a word leads to the missing ${numberOf(value)}`,
      )
      tags += 1
    }
    for (const file of this.#set.runs.tags.files().values()) {
      for (let record = 0; record < file.count; record += 1) {
        const at = file.at(record)
        const number = (file.words[at + 6] as number) * 2 ** 32 + (file.words[at + 7] as number)
        const word = this.#set.numbers.view(numberBytes(number))
        const start =
          word === undefined ? new Uint32Array(0) : tagStart(numberOf(word.subarray(1, 6)), word.subarray(6))
        const isRight =
          word?.[0] === wordKind.tag && start.every((each, index) => file.words[at + index] === each)
        this.expect(isRight || word === undefined, `the tag ${number} is not where its value belongs`)
        if (isRight) tags += 1
      }
    }
    return tags
  }
}

/** Whether the tables have a transaction at a position of a block: `start` is the first key that it can have. */
export function hasTransaction({ sets }: Pick<IndexTables, 'sets'>, start: Buffer): boolean {
  return sets.live().some(({ tables: { rows }, span }) => {
    const found = rows.ceiling(start)?.key
    const isIt = found !== undefined && Buffer.compare(found.subarray(0, 7), start.subarray(0, 7)) === 0
    return isIt && isInSpan(span, found)
  })
}

/**
 * A sum over a set of postings that does not depend on their order: two sets with the same sum are the same
 * (FNV-1a, twice).
 */
class Sum {
  count = 0
  #one = 0
  #two = 0

  add(prefix: number, rows: Uint8Array, at: number): void {
    this.count += 1
    let one = (0x811c9dc5 ^ (prefix >>> 0)) | 0
    let two = (0x01234567 ^ Math.floor(prefix / 2 ** 20)) | 0
    for (let byte = at; byte < at + rowKeyBytes; byte += 1) {
      one = Math.imul(one ^ (rows[byte] as number), 0x01000193)
      two = Math.imul(two + (rows[byte] as number), 0x5bd1e995) ^ (two >>> 13)
    }
    this.#one = (this.#one + one) | 0
    this.#two = (this.#two + two) | 0
  }

  equals(other: Sum): boolean {
    return this.count === other.count && this.#one === other.#one && this.#two === other.#two
  }
}
