import { Heap } from '../actor/heap.js'
import type { Id } from '../format/id.js'
import type { Hints } from '../source/source-messages.js'

/**
 * What is proven first: content behind names, which many request; then requested content; then what the catalog still
 * lists.
 */
export const priorities = { named: 2, requested: 1, listed: 0 } as const

/** One id with something left to prove. */
export interface Waiting {
  readonly id: Id
  readonly hints: Hints
  readonly priority: number
  /** Looks so far. */
  readonly attempts: number
  /** Not looked at before. */
  readonly dueMs: number
  /** Counts up: what came first. */
  readonly turn: number
}

/** Stale entries (replaced or dropped) that may be in the heaps before they are removed. */
const staleMax = 1024

/**
 * The ids that wait for a proof, each once. Thousands may wait for minutes, and each step takes one. So no operation
 * goes through all of them, which would delay other work of the thread.
 */
export class WaitingList {
  /** By priority. An entry in a heap counts only while it is the one in here. */
  readonly #known: readonly Map<Id, Waiting>[] = [new Map(), new Map(), new Map()]
  readonly #sleeping = new Heap<Waiting>((one, other) => one.dueMs < other.dueMs)
  readonly #due = new Heap<Waiting>(matters)
  #turn = 0

  constructor(private readonly max: number) {}

  get size(): number {
    return this.#known.reduce((sum, { size }) => sum + size, 0)
  }

  /** Entries in memory, stale ones included. */
  get heldInAll(): number {
    return this.#sleeping.size + this.#due.size
  }

  get(id: Id): Waiting | undefined {
    for (const known of this.#known) {
      const waiting = known.get(id)
      if (waiting !== undefined) return waiting
    }
    return undefined
  }

  /** True while this is what the list has of its id. */
  holds(waiting: Waiting): boolean {
    return this.#known[waiting.priority]?.get(waiting.id) === waiting
  }

  /**
   * Puts an id on the list, or replaces its entry. A full list drops the least important entry; false: that is the
   * new one.
   */
  put({ id, hints, priority, dueMs }: Omit<Waiting, 'attempts' | 'turn'>): boolean {
    const before = this.get(id)
    if (before === undefined && this.size >= this.max && !this.#forgetBelow(priority)) return false
    if (before !== undefined) this.remove(before)
    this.#turn += 1
    this.#add({ id, hints, priority, attempts: 0, dueMs, turn: before?.turn ?? this.#turn })
    return true
  }

  /** An attempt gave no result: the next one is at `dueMs`. */
  again(waiting: Waiting, dueMs: number): void {
    this.#add({ ...waiting, attempts: waiting.attempts + 1, dueMs })
  }

  remove(waiting: Waiting): void {
    if (this.holds(waiting)) this.#known[waiting.priority]?.delete(waiting.id)
  }

  /** Of what is due the most important, then what was looked at least, then what came first. It stays on the list. */
  next(nowMs: number): Waiting | undefined {
    for (
      let one = this.#sleeping.first;
      one !== undefined && one.dueMs <= nowMs;
      one = this.#sleeping.first
    ) {
      this.#sleeping.pop()
      if (this.holds(one)) this.#due.push(one)
    }
    for (let one = this.#due.pop(); one !== undefined; one = this.#due.pop()) if (this.holds(one)) return one
    return undefined
  }

  /** When the first of those that are not due will be. */
  get firstDueMs(): number | undefined {
    for (let one = this.#sleeping.first; one !== undefined; one = this.#sleeping.first) {
      if (this.holds(one)) return one.dueMs
      this.#sleeping.pop()
    }
    return undefined
  }

  #add(waiting: Waiting): void {
    this.#known[waiting.priority]?.set(waiting.id, waiting)
    this.#sleeping.push(waiting)
    if (this.heldInAll > this.size + staleMax) this.#tidy()
  }

  #tidy(): void {
    this.#sleeping.clear()
    this.#due.clear()
    for (const known of this.#known) for (const waiting of known.values()) this.#sleeping.push(waiting)
  }

  /** Makes room for something of this priority; false where nothing on the list matters less. */
  #forgetBelow(priority: number): boolean {
    for (const known of this.#known.slice(0, priority)) {
      const [first] = known.keys()
      if (first !== undefined) return known.delete(first)
    }
    return false
  }
}

function matters(one: Waiting, other: Waiting): boolean {
  if (one.priority !== other.priority) return one.priority > other.priority
  return one.attempts === other.attempts ? one.turn < other.turn : one.attempts < other.attempts
}
