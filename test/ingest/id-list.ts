import type { Id } from '../../src/format/id.js'

interface Bucket {
  readonly ids: Set<Id>
  /** The same in order, from the last question until the next change. */
  sorted: readonly Id[] | undefined
}

const bucketOf = (id: Id): string => id.slice(0, 2)

/** Ids in order, in 4,096 buckets by their first two letters: a change costs one bucket, not the whole list. */
export class IdList {
  readonly #buckets = new Map<string, Bucket>()
  /** Names of buckets in order, from the last question until the next one that is new. */
  #names: readonly string[] | undefined
  #size = 0

  get size(): number {
    return this.#size
  }

  has(id: Id): boolean {
    return this.#buckets.get(bucketOf(id))?.ids.has(id) === true
  }

  add(id: Id): void {
    const name = bucketOf(id)
    let bucket = this.#buckets.get(name)
    if (bucket === undefined) {
      bucket = { ids: new Set(), sorted: undefined }
      this.#buckets.set(name, bucket)
      this.#names = undefined
    }
    if (bucket.ids.has(id)) return
    bucket.ids.add(id)
    bucket.sorted = undefined
    this.#size += 1
  }

  delete(id: Id): void {
    const bucket = this.#buckets.get(bucketOf(id))
    if (bucket?.ids.delete(id) !== true) return
    bucket.sorted = undefined
    this.#size -= 1
  }

  /** At most `limit` ids behind `after`, or from the first one on. */
  list(after: Id | undefined, limit: number): Id[] {
    const found: Id[] = []
    this.#names ??= [...this.#buckets.keys()].sort()
    for (const name of this.#names) {
      if (after !== undefined && name < bucketOf(after)) continue
      const bucket = this.#buckets.get(name)
      if (bucket === undefined) continue
      bucket.sorted ??= [...bucket.ids].sort()
      for (const id of bucket.sorted) if (after === undefined || id > after) found.push(id)
      if (found.length >= limit) break
    }
    return found.slice(0, limit)
  }
}
