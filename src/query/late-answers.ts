interface Waiting {
  readonly bytes: number
  /** Ends its wait. */
  readonly end: () => void
}

/**
 * Answers that wait for content, and lie in memory meanwhile. Where they are too large together, the largest one waits no longer:
 * so many large ones cannot fill the memory of a thread, and take nothing from small ones.
 */
export class LateAnswers {
  readonly #waiting = new Set<Waiting>()
  #bytes = 0

  constructor(private readonly maxBytes: number) {}

  /** Bytes of all that wait. */
  get bytes(): number {
    return this.#bytes
  }

  /** Waits with so many bytes for what arrives. False: the room was needed before that. */
  async until(arrived: Promise<unknown>, bytes: number): Promise<boolean> {
    let end = (): void => undefined
    const ended = new Promise<false>((resolve) => {
      end = () => resolve(false)
    })
    const own = { bytes, end }
    this.#waiting.add(own)
    this.#bytes += bytes
    this.#makeRoom()
    const isWhole = await Promise.race([arrived.then(() => true), ended])
    this.#remove(own)
    return isWhole
  }

  #makeRoom(): void {
    while (this.#bytes > this.maxBytes) {
      let largest: Waiting | undefined
      for (const one of this.#waiting) if (one.bytes > (largest?.bytes ?? 0)) largest = one
      if (largest === undefined) return
      this.#remove(largest)
      largest.end()
    }
  }

  #remove(one: Waiting): void {
    if (this.#waiting.delete(one)) this.#bytes -= one.bytes
  }
}
