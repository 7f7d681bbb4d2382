/** A binary heap: adding a value and taking the first one take time in log2 of their number. */
export class Heap<T> {
  readonly #values: T[] = []

  constructor(private readonly isBefore: (one: T, other: T) => boolean) {}

  get size(): number {
    return this.#values.length
  }

  /** Undefined where there is none. */
  get first(): T | undefined {
    return this.#values[0]
  }

  push(value: T): void {
    let at = this.#values.push(value) - 1
    while (at > 0) {
      const above = (at - 1) >> 1
      const other = this.#values[above] as T
      if (!this.isBefore(value, other)) break
      this.#values[at] = other
      at = above
    }
    this.#values[at] = value
  }

  /** Takes the first. */
  pop(): T | undefined {
    const first = this.#values[0]
    const last = this.#values.pop()
    if (this.#values.length > 0) this.#sink(last as T)
    return first
  }

  clear(): void {
    this.#values.length = 0
  }

  #sink(value: T): void {
    const { length } = this.#values
    let at = 0
    for (;;) {
      let below = 2 * at + 1
      if (below >= length) break
      const right = below + 1
      if (right < length && this.isBefore(this.#values[right] as T, this.#values[below] as T)) below = right
      const other = this.#values[below] as T
      if (!this.isBefore(other, value)) break
      this.#values[at] = other
      at = below
    }
    this.#values[at] = value
  }
}
