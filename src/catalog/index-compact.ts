import { rmSync } from 'node:fs'
import type { Environment, Table } from '../store/lmdb.js'
import { RunWriter } from '../store/run-writer.js'
import { numberBytes, numberOf, type WordKind, wordKey, wordKind } from './dictionary.js'
import { placeOf } from './ids.js'
import type { IndexTables } from './index-tables.js'
import { IndexWriter, noFlush } from './index-writer.js'
import { blockKey, blockRows, prefixOf } from './postings.js'
import { decodeRow } from './row.js'
import { rowKeyBytes } from './row-key.js'
import { idRuns, ledgerOf, type RowTables, tagRuns, wordRuns } from './row-tables.js'
import type { FlushLimits } from './segment-upkeep.js'
import { spillLimits } from './spill.js'

/** What compacting did. */
export interface CompactReport {
  readonly blocksBefore: number
  readonly blocksAfter: number
  readonly wordsDropped: number
}

/** Entries that one transaction changes: a kill loses at most so much work, and never half of it. */
const portion = 20_000
const blockMax = 126

/**
 * Takes stable rows out of the tables and merges segments, as far as `flush` says. Then rewrites postings in full blocks and
 * drops the words that no row uses. Only while no keeper has the index open: a keeper remembers words. The room is freed inside
 * the file; `Environment.copyTo` writes a smaller one.
 */
export function compactIndex(tables: IndexTables, flush: FlushLimits = noFlush): CompactReport {
  const writer = new IndexWriter(tables, spillLimits, { ...flush, isLast: true })
  while (writer.tendSegments() === 'more');
  const retired = writer.takeRetired()
  writer.close()
  const reports = tables.sets.sets.map((set) => compactSet(tables.environment, set))
  for (const path of retired) rmSync(path, { force: true })
  const sum = (part: keyof CompactReport): number => reports.reduce((all, report) => all + report[part], 0)
  return {
    blocksBefore: sum('blocksBefore'),
    blocksAfter: sum('blocksAfter'),
    wordsDropped: sum('wordsDropped'),
  }
}

function compactSet(environment: Environment, tables: RowTables): CompactReport {
  const blocksBefore = tables.postings.count()
  for (let from: Buffer | undefined = Buffer.alloc(0); from !== undefined; ) {
    const start: Buffer = from
    from = environment.write(() => fill(tables.postings, start))
  }
  const wordsDropped = dropWords(environment, tables)
  rewriteRuns(environment, tables)
  return { blocksBefore, blocksAfter: tables.postings.count(), wordsDropped }
}

/** Makes one file of each kind, without what is gone. */
function rewriteRuns(environment: Environment, tables: RowTables): void {
  const hasWord = (high: number | undefined, low: number | undefined): boolean =>
    tables.numbers.view(numberBytes((high ?? 0) * 2 ** 32 + (low ?? 0))) !== undefined
  const hasRow = (words: Uint32Array, at: number): boolean => {
    const key = Buffer.alloc(rowKeyBytes)
    key.set(placeOf(words, at), 0)
    key.writeUInt32BE(words[at] as number, 7)
    key.writeUInt32BE(words[at + 1] as number, 11)
    const found = tables.rows.ceiling(key)?.key
    return found !== undefined && Buffer.compare(found.subarray(0, 15), key.subarray(0, 15)) === 0
  }
  const kinds = [
    { runs: tables.runs.ids, shape: idRuns, keep: hasRow },
    {
      runs: tables.runs.words,
      shape: wordRuns,
      keep: (words: Uint32Array, at: number) => hasWord(words[at + 2], words[at + 3]),
    },
    {
      runs: tables.runs.tags,
      shape: tagRuns,
      keep: (words: Uint32Array, at: number) => hasWord(words[at + 6], words[at + 7]),
    },
  ]
  for (const { runs, shape, keep } of kinds) {
    const writer = new RunWriter(runs, ledgerOf(tables, shape), spillLimits)
    environment.write(() => writer.rewrite(keep))
    runs.isOwn = false
  }
}

/** Fills the blocks of whole prefixes from `start` on; the key to go on at, undefined at the end. */
function fill(table: Table, start: Uint8Array): Buffer | undefined {
  const entries = [...table.span({ start, limit: portion })]
  const last = entries.at(-1)
  const whole = last === undefined || entries.length < portion
  const end = last === undefined ? 0 : prefixOf(last.key)
  // The last prefix may go on behind this portion; alone, it is filled as far as it is here.
  const alone = entries[0] !== undefined && prefixOf(entries[0].key) === end
  let at = 0
  while (at < entries.length) {
    const prefix = prefixOf((entries[at] as { key: Uint8Array }).key)
    if (!whole && !alone && prefix === end) return blockKey(prefix, Buffer.alloc(rowKeyBytes))
    const own: { key: Uint8Array; value: Uint8Array }[] = []
    for (
      let entry = entries[at];
      entry !== undefined && prefixOf(entry.key) === prefix;
      at += 1, entry = entries[at]
    ) {
      own.push(entry)
    }
    fillOne(table, prefix, own)
  }
  return whole || last === undefined ? undefined : Buffer.concat([last.key, Buffer.of(0)])
}

function fillOne(
  table: Table,
  prefix: number,
  entries: readonly { key: Uint8Array; value: Uint8Array }[],
): void {
  const rows = Buffer.concat(entries.map(({ key, value }) => blockRows(key, value)))
  const count = rows.length / rowKeyBytes
  if (entries.length === Math.ceil(count / blockMax)) return
  for (const { key } of entries) table.remove(key)
  for (let from = 0; from < count; from += blockMax) {
    const end = Math.min(from + blockMax, count) * rowKeyBytes
    table.put(blockKey(prefix, rows, from * rowKeyBytes), rows.subarray((from + 1) * rowKeyBytes, end))
  }
}

function dropWords(environment: Environment, tables: RowTables): number {
  const used = usedWords(tables)
  const unused: number[] = []
  for (const key of tables.numbers.keys({})) {
    const number = numberOf(key)
    if (!used.has(number)) unused.push(number)
  }
  for (let at = 0; at < unused.length; at += portion) {
    environment.write(() => {
      for (const number of unused.slice(at, at + portion)) dropWord(tables, number)
    })
  }
  return unused.length
}

function dropWord(tables: RowTables, number: number): void {
  const key = numberBytes(number)
  const word = tables.numbers.get(key)
  if (word === undefined) return
  tables.words.remove(wordKey(word[0] as WordKind, word.subarray(1)))
  tables.numbers.remove(key)
  tables.owners.remove(key)
}

function usedWords(tables: RowTables): Marks {
  const used = new Marks()
  for (const { key, value } of tables.rows.span({})) {
    const row = decodeRow(key, value)
    for (const tag of row.tags) used.add(tag)
    used.add(row.owner)
    used.add(row.recipient)
    if (row.place !== undefined) used.add(row.place.parent)
  }
  for (const { key, value } of tables.numbers.span({})) {
    if (value[0] === wordKind.tag && used.has(numberOf(key))) used.add(numberOf(value.subarray(1, 6)))
  }
  return used
}

/** A set of word numbers: a bit each, because there may be hundreds of millions. */
class Marks {
  #bits = new Uint8Array(1 << 16)

  add(number: number): void {
    const at = Math.floor(number / 8)
    if (at >= this.#bits.length) {
      const larger = new Uint8Array(Math.max(at + 1, this.#bits.length * 2))
      larger.set(this.#bits)
      this.#bits = larger
    }
    this.#bits[at] = (this.#bits[at] as number) | (1 << (number % 8))
  }

  has(number: number): boolean {
    return (((this.#bits[Math.floor(number / 8)] ?? 0) >> (number % 8)) & 1) === 1
  }
}
