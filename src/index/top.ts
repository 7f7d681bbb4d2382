/** The `max` numbers with the highest counts: a heap, the least on top. */
export class Top {
  readonly #numbers: number[] = []
  readonly #counts: number[] = []

  constructor(private readonly max: number) {}

  add(number: number, count: number): void {
    const size = this.#numbers.length
    if (size < this.max) {
      this.#numbers.push(number)
      this.#counts.push(count)
      this.#rise(size)
    } else if (count > (this.#counts[0] ?? Number.POSITIVE_INFINITY)) {
      this.#numbers[0] = number
      this.#counts[0] = count
      this.#sink()
    }
  }

  /** The numbers, the highest count first; of the same count, the lower number. */
  sorted(): number[] {
    const order = this.#numbers.map((number, at) => ({ number, count: this.#counts[at] as number }))
    order.sort((one, other) => other.count - one.count || one.number - other.number)
    return order.map(({ number }) => number)
  }

  #swap(one: number, other: number): void {
    const [number, count] = [this.#numbers[one] as number, this.#counts[one] as number]
    this.#numbers[one] = this.#numbers[other] as number
    this.#counts[one] = this.#counts[other] as number
    this.#numbers[other] = number
    this.#counts[other] = count
  }

  #rise(from: number): void {
    for (let at = from; at > 0; ) {
      const up = (at - 1) >> 1
      if ((this.#counts[up] as number) <= (this.#counts[at] as number)) return
      this.#swap(at, up)
      at = up
    }
  }

  #sink(): void {
    const counts = this.#counts
    for (let at = 0; ; ) {
      let least = at
      for (let below = 2 * at + 1; below <= 2 * at + 2 && below < counts.length; below += 1) {
        if ((counts[below] as number) < (counts[least] as number)) least = below
      }
      if (least === at) return
      this.#swap(at, least)
      at = least
    }
  }
}
