import { type Dictionary, inKey, inRecord, numberOf, tagStart, tagWord, wordKind } from './dictionary.js'
import type { Looks } from './row-source.js'
import type { RowTables } from './row-tables.js'

/** Tags of one name whose value begins with one of some texts. */
export class TagStarts {
  /** None of them begins with another one; in the order of bytes. */
  readonly #starts: readonly Buffer[]
  /** Undefined: no row has a tag of this name. */
  readonly #name: number | undefined

  constructor(
    private readonly tables: RowTables,
    private readonly dictionary: Dictionary,
    name: Uint8Array,
    starts: readonly Uint8Array[],
  ) {
    this.#name = dictionary.number(wordKind.name, name)
    this.#starts = withoutLonger(starts)
  }

  /** Whether a tag (its number) is one of them. */
  has(tag: number): boolean {
    const bytes = this.dictionary.bytes(tag)
    if (numberOf(bytes.subarray(0, 5)) !== this.#name) return false
    const value = bytes.subarray(5)
    // Of all that come before the value, only the last can be its start: between a text and what begins with it lies only
    // what begins with it, too.
    const before = this.#starts[lastBefore(this.#starts, value)]
    return before !== undefined && value.subarray(0, before.length).equals(before)
  }

  /** Numbers of all of them; undefined where so many would have to be looked at that `looks` ran out. */
  numbers(looks: Looks): number[] | undefined {
    const name = this.#name
    if (name === undefined) return []
    const found: number[] = []
    for (const start of this.#starts) {
      looks.left -= 1
      this.#inTable(name, start, looks, found)
      this.#inRuns(name, start, looks, found)
      if (looks.left < 0) return undefined
    }
    return found
  }

  #inTable(name: number, start: Buffer, looks: Looks, found: number[]): void {
    const from = Buffer.concat([Buffer.of(wordKind.tag), tagWord(name, start.subarray(0, inKey))])
    for (const { key, value } of this.tables.words.span({ start: from })) {
      if (looks.left < 0 || Buffer.compare(key.subarray(0, from.length), from) !== 0) return
      looks.left -= 1
      const tag = numberOf(value)
      if (start.length <= inKey || this.has(tag)) found.push(tag)
    }
  }

  #inRuns(name: number, start: Buffer, looks: Looks, found: number[]): void {
    const from = tagStart(name, start)
    const whole = Math.min(start.length, inRecord) >> 2
    const shift = 32 - (Math.min(start.length, inRecord) & 3) * 8
    // Zeros may be the end of a short value, and of a name's number not all is there.
    const isSure = start.length <= inRecord && start.at(-1) !== 0 && name < 2 ** 32
    this.tables.runs.tags.scan(from, (words, at) => {
      for (let word = 0; word <= whole; word += 1) if (words[at + word] !== from[word]) return true
      const isBehind =
        shift < 32 && (words[at + whole + 1] as number) >>> shift !== (from[whole + 1] as number) >>> shift
      if (isBehind || looks.left < 0) return true
      looks.left -= 1
      const tag = (words[at + 6] as number) * 2 ** 32 + (words[at + 7] as number)
      if (isSure || this.has(tag)) found.push(tag)
      return false
    })
  }
}

/** The texts in order, without those that begin with another one of them. */
export function withoutLonger(texts: readonly Uint8Array[]): Buffer[] {
  const kept: Buffer[] = []
  for (const text of texts.map((bytes) => Buffer.from(bytes)).sort(Buffer.compare)) {
    const last = kept.at(-1)
    if (last === undefined || !text.subarray(0, last.length).equals(last)) kept.push(text)
  }
  return kept
}

/** Position of the last text that is not behind `bytes`; -1 where all are. */
function lastBefore(texts: readonly Buffer[], bytes: Uint8Array): number {
  let low = 0
  let high = texts.length
  while (low < high) {
    const middle = (low + high) >>> 1
    if (Buffer.compare(texts[middle] as Buffer, bytes) <= 0) low = middle + 1
    else high = middle
  }
  return low - 1
}
