/**
 * Remembers at least the `max` entries used last and at most twice as many: two maps, the older one is
 * dropped whole when the younger is full.
 */
export class Recent<Key, Value> {
  #young = new Map<Key, Value>()
  #old = new Map<Key, Value>()

  constructor(private readonly max: number) {}

  get(key: Key): Value | undefined {
    const young = this.#young.get(key)
    if (young !== undefined) return young
    const old = this.#old.get(key)
    if (old !== undefined) this.set(key, old)
    return old
  }

  set(key: Key, value: Value): void {
    if (this.#young.size >= this.max) {
      this.#old = this.#young
      this.#young = new Map()
    }
    this.#young.set(key, value)
  }
}
