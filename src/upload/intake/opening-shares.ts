import { type OpeningLine, openingLines, weightOf } from '../records/opening-lines.js'

/**
 * Which line of bundles that wait to be opened goes next: the one that has used least of its share (`weightOf`). A line that had
 * none starts with what the one that was served last has used, so that no line saves up turns.
 */
export class OpeningShares {
  readonly #used = openingLines.map(() => 0)
  #busy: ReadonlySet<OpeningLine> = new Set()
  #stand = 0

  /** `hasSome`: whether a line has something to open. Undefined: none has. */
  next(hasSome: (line: OpeningLine) => boolean): OpeningLine | undefined {
    const busy = openingLines.filter(hasSome)
    for (const line of busy)
      if (!this.#busy.has(line)) this.#used[line] = Math.max(this.#usedBy(line), this.#stand)
    this.#busy = new Set(busy)
    const [first, ...others] = busy
    if (first === undefined) return undefined
    const next = others.reduce((least, one) => (this.#usedBy(one) < this.#usedBy(least) ? one : least), first)
    this.#stand = this.#usedBy(next)
    return next
  }

  /** A line has had so much done: items, and more for many bytes. */
  charge(line: OpeningLine, cost: number): void {
    this.#used[line] = this.#usedBy(line) + cost / weightOf(line)
  }

  #usedBy(line: OpeningLine): number {
    return this.#used[line] ?? 0
  }
}
