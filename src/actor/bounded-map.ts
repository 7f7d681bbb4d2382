/** A map of at most `max` entries. Setting one makes it the youngest; where there is no room the oldest goes. */
export class BoundedMap<Key, Value> extends Map<Key, Value> {
  constructor(private readonly max: number) {
    super()
  }

  override set(key: Key, value: Value): this {
    this.delete(key)
    super.set(key, value)
    if (this.size > this.max) {
      const [oldest] = this.keys()
      if (oldest !== undefined) this.delete(oldest)
    }
    return this
  }
}
