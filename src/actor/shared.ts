/** Numbers that every thread reads, in shared memory: no message, no lock. */

/** A number in shared memory, for those who watch whether it changes. */
export interface Cell {
  readonly cells: Int32Array
  readonly at: number
}

/** The height of the chain's tip as far as this program knows it, and a counter of reports that the chain is longer. */
export class Tip {
  readonly #cells: Int32Array

  /** `memory` of at least 8 bytes, the same on every thread. */
  constructor(readonly memory: SharedArrayBuffer = new SharedArrayBuffer(8)) {
    this.#cells = new Int32Array(memory)
  }

  /** Holds `height` + 1. */
  get cell(): Cell {
    return { cells: this.#cells, at: 0 }
  }

  /** Height of the tip; -1 while unknown. */
  get height(): number {
    return Atomics.load(this.#cells, 0) - 1
  }

  /** Only the thread that follows the chain calls this. */
  move(height: number): void {
    if (Atomics.exchange(this.#cells, 0, height + 1) !== height + 1) this.grew()
  }

  /** Changes whenever a thread learned that the chain is longer than known: what was absent before may exist now. */
  get growths(): number {
    return Atomics.load(this.#cells, 1)
  }

  /** Reports, from any thread, that a node knows a longer chain. */
  grew(): void {
    Atomics.add(this.#cells, 1, 1)
  }
}

/** What a follower of the chain does: `idle` before it begins, `halted` where the operator must decide. */
export const followingStates = ['idle', 'importing', 'following', 'halted', 'finished'] as const
export type FollowingState = (typeof followingStates)[number]

/** Progress of the index against the chain, and how many bundles wait. One thread writes it. */
export class Following {
  readonly #cells: Float64Array

  /** `memory` of at least `Following.bytes` bytes, the same on every thread. */
  constructor(readonly memory: SharedArrayBuffer = new SharedArrayBuffer(Following.bytes)) {
    this.#cells = new Float64Array(memory)
  }

  static readonly bytes: number = 6 * 8

  get state(): FollowingState {
    return followingStates[this.#cells[0] ?? 0] ?? 'idle'
  }

  set state(state: FollowingState) {
    this.#cells[0] = followingStates.indexOf(state)
  }

  /** Height of the highest block in the index; -1 without any. */
  get height(): number {
    return (this.#cells[1] ?? 0) - 1
  }

  set height(height: number) {
    this.#cells[1] = height + 1
  }

  /** Blocks a second within the last seconds; 0 while nothing is imported. */
  get blocksPerSecond(): number {
    return this.#cells[2] ?? 0
  }

  set blocksPerSecond(rate: number) {
    this.#cells[2] = rate
  }

  get bundlesWaiting(): number {
    return this.#cells[3] ?? 0
  }

  set bundlesWaiting(count: number) {
    this.#cells[3] = count
  }

  /** Transactions of indexed blocks that no node gave yet. */
  get missing(): number {
    return this.#cells[4] ?? 0
  }

  set missing(count: number) {
    this.#cells[4] = count
  }

  /** When the last data item came into the index, in milliseconds since 1970; 0: none since the start. */
  get itemIndexedMs(): number {
    return this.#cells[5] ?? 0
  }

  set itemIndexedMs(ms: number) {
    this.#cells[5] = ms
  }
}

/** What a start ends with, each at its own time, while the sockets of the gateway answer already. */
export const lateParts = ['site', 'upload', 'payment'] as const
export type LatePart = (typeof lateParts)[number]

/** Which late parts of the start are there. The main thread writes it. */
export class Readiness {
  readonly #cells: Int32Array

  /** `memory` of at least `Readiness.bytes` bytes, the same on every thread. */
  constructor(readonly memory: SharedArrayBuffer = new SharedArrayBuffer(Readiness.bytes)) {
    this.#cells = new Int32Array(memory)
  }

  static readonly bytes: number = lateParts.length * 4

  has(part: LatePart): boolean {
    return Atomics.load(this.#cells, lateParts.indexOf(part)) === 1
  }

  add(part: LatePart): void {
    Atomics.store(this.#cells, lateParts.indexOf(part), 1)
  }
}
