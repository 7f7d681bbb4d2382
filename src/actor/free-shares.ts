/** Gives a place back; calling it again does nothing. */
export type Leave = () => void

/**
 * Places for clients, of which each may take one more only while it holds fewer than are free. One client alone has at most
 * half of them, two have a third each, and a newcomer finds a place while there are fewer clients than places.
 */
export class FreeShares {
  readonly #counts = new Map<string, number>()
  #taken = 0

  constructor(private readonly max: number) {}

  /** Undefined: it has its share. */
  take(client: string): Leave | undefined {
    const count = this.#counts.get(client) ?? 0
    if (count >= this.max - this.#taken) return undefined
    this.#counts.set(client, count + 1)
    this.#taken += 1
    let isHeld = true
    return () => {
      if (!isHeld) return
      isHeld = false
      this.#taken -= 1
      const left = (this.#counts.get(client) ?? 0) - 1
      if (left > 0) this.#counts.set(client, left)
      else this.#counts.delete(client)
    }
  }
}
