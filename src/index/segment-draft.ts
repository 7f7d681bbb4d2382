import { VarWriter } from '../format/varbytes.js'
import { type Footer, writeFooter } from './footer.js'
import { encodeForms, type Form, FormNumbers } from './forms.js'
import { GroupWriter } from './groups.js'
import { IdTableWriter } from './id-table.js'
import { rowFlag, rowsPerStart, startBytes, zigzag } from './row-record.js'
import { SectionSpool, SegmentOutput } from './segment-output.js'
import { WordWriter } from './word-writer.js'

/** What a segment that was written is. */
export interface WrittenSegment {
  readonly rows: number
  /** Size of the file. */
  readonly bytes: number
}

type Numbers = { -readonly [Name in keyof Footer]?: number }

/** Bytes that any number of a row of so many takes. */
export function rowBytesOf(rowCount: number): number {
  let bytes = 1
  while (2 ** (8 * bytes) < rowCount) bytes += 1
  return bytes
}

/**
 * A segment while it is written, part by part: words, then `beginRows`, rows, then `beginIds`, ids, then `beginKeys`, public
 * keys, then `finish`. Whoever gives up calls `drop`.
 */
export class SegmentDraft {
  readonly words: WordWriter
  /** A row: `beginRow`, its words and facts in here, `endRow`. */
  readonly row: VarWriter = new VarWriter()
  /** Indexed by the number of a word: its code in rows. */
  codes: Uint32Array = new Uint32Array(0)
  formNumbers: FormNumbers = new FormNumbers([])
  ids: IdTableWriter
  readonly #out: SegmentOutput
  readonly #spools: { readonly [Name in 'blocks' | 'tops' | 'starts' | 'groups' | 'keys']: SectionSpool }
  readonly #groups: GroupWriter
  readonly #numbers: Numbers = {}
  #forms: readonly Form[] = []
  #short: readonly number[] = []
  #rows = 0
  #keyCount = 0
  #keysAt = 0
  #seenSeconds = 0

  /** `rowCount`: how many rows it will have. */
  constructor(
    path: string,
    private readonly rowCount: number,
  ) {
    this.#out = new SegmentOutput(path)
    this.#spools = {
      blocks: new SectionSpool(path, 'blocks'),
      tops: new SectionSpool(path, 'tops'),
      starts: new SectionSpool(path, 'starts'),
      groups: new SectionSpool(path, 'groups'),
      keys: new SectionSpool(path, 'keys'),
    }
    this.words = new WordWriter(this.#out, this.#spools, rowBytesOf(rowCount))
    this.#groups = new GroupWriter(this.#spools.groups)
    this.ids = new IdTableWriter(this.#out, rowCount)
    this.#numbers.words = 0
  }

  /** Ends the words, and gives the frequent ones short codes. */
  beginRows(forms: readonly Form[]): void {
    this.words.finish()
    this.#begin('wordBlocks')
    this.#spools.blocks.moveTo(this.#out)
    this.#forms = forms
    this.formNumbers = new FormNumbers(forms)
    this.#short = this.words.top.sorted()
    const short = this.#short.length
    this.codes = Uint32Array.from({ length: this.words.codedCount }, (_, number) => short + number)
    for (const [code, number] of this.#short.entries()) this.codes[number] = code
    this.#begin('rows')
  }

  #begin(section: keyof Footer): void {
    this.#numbers[section] = this.#out.position
  }

  /** The next row in the order of the chain. */
  beginRow(height: number, place: number, seenSeconds: number): void {
    this.#groups.add(this.#rows, height, place, seenSeconds)
    this.#seenSeconds = seenSeconds
    this.row.reset()
  }

  /** Writes the flags into the row, and the id behind them; `flags` are those of the row itself. */
  head(flags: number, id: Uint8Array, at: number): void {
    const difference = this.#seenSeconds - this.#groups.seenSeconds
    const { row } = this
    row.u8(difference === 0 ? flags : flags | rowFlag.seen)
    row.range(id, at, at + 32)
    if (difference !== 0) row.uint(zigzag(difference))
  }

  endRow(): void {
    const out = this.#out
    if (this.#rows % rowsPerStart === 0) this.#spools.starts.uint(out.position, startBytes)
    this.#uint(this.row.size)
    out.write(this.row.written)
    this.#rows += 1
  }

  #uint(value: number): void {
    let rest = value
    for (; rest >= 0x80; rest = Math.floor(rest / 0x80)) this.#out.u8((rest % 0x80) + 0x80)
    this.#out.u8(rest)
  }

  beginIds(): void {
    if (this.#rows !== this.rowCount) throw new Error(`${this.#rows} rows instead of ${this.rowCount}`)
    this.#begin('starts')
    this.#spools.starts.moveTo(this.#out)
    this.#begin('groups')
    this.#spools.groups.moveTo(this.#out)
    this.#begin('ids')
  }

  beginKeys(): void {
    this.#begin('buckets')
    this.ids.finish()
    this.#begin('forms')
    this.#out.write(encodeForms(this.#forms))
    this.#begin('shortCodes')
    const cell = Buffer.allocUnsafe(4)
    for (const number of this.#short) {
      cell.writeUInt32LE(number, 0)
      this.#out.write(cell)
    }
    this.#begin('keys')
    this.#keysAt = this.#out.position
  }

  /** The public key of an address (32 bytes), in the order of addresses. */
  ownerKey(address: Uint8Array, key: Uint8Array): void {
    this.#spools.keys.uint(this.#out.position - this.#keysAt, 5)
    this.#keyCount += 1
    this.#out.write(address)
    this.#uint(key.length)
    this.#out.write(key)
  }

  /** All of it is on the disk on return, under its name. */
  finish(): WrittenSegment {
    this.#begin('keyStarts')
    this.#spools.keys.moveTo(this.#out)
    this.#begin('tops')
    this.#spools.tops.moveTo(this.#out)
    this.#begin('end')
    const { words } = this
    const bytes = writeFooter(this.#out, {
      ...(this.#numbers as Footer),
      rowCount: this.#rows,
      groupCount: this.#groups.count,
      wordCount: words.wordCount,
      codedCount: words.codedCount,
      wordBlockCount: words.blockCount,
      formCount: this.#forms.length,
      shortCount: this.#short.length,
      keyCount: this.#keyCount,
      lowest: this.#groups.lowest,
      highest: this.#groups.highest,
    })
    return { rows: this.#rows, bytes }
  }

  /** Removes what was written, where it was not finished. */
  drop(): void {
    this.#out.drop()
    for (const spool of Object.values(this.#spools)) spool.drop()
  }
}
