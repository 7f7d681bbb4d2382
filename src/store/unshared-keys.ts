import { randomUUID } from 'node:crypto'
import type { Environment, Table } from './lmdb.js'

/** How far a machine has followed the changes of its cluster. */
export interface SharedPosition {
  /** Names the database of the cluster. */
  readonly cluster: string
  /** Version of the last change that was taken over. */
  readonly version: number
  /** Names the transaction that wrote this version: another one stands there after a backup was restored. */
  readonly stamp: string
}

/** Version of a position while what a machine has is being listed for the cluster: nothing was followed yet. */
export const joining = -1

/** A key whose state here the cluster does not have yet. */
export interface Unshared {
  readonly key: string
  /** A UUID, another for each change. */
  readonly token: string
  /** It was there before the machine joined: what the cluster has of the key goes over it. */
  readonly isInitial: boolean
}

const positionKey = Buffer.from('position')
/** The first byte of a value in the list, before the token. */
const [changed, initial] = [0, 1] as const

/**
 * Keys of an environment that were changed here and not given to the cluster yet, in the transactions that change them. The list
 * has keys alone: what is given is the state of the key then. Nothing is listed before the machine joins a cluster.
 */
export class UnsharedKeys {
  readonly #unshared: Table
  readonly #state: Table

  /** Takes two tables of the environment. */
  constructor(private readonly environment: Environment) {
    this.#unshared = environment.table('unshared')
    this.#state = environment.table('sharing')
  }

  /** Only inside a `write` of the environment, by each change of this machine. */
  note(key: string, isInitial = false): void {
    if (this.#state.get(positionKey) === undefined) return
    const found = Buffer.from(key)
    // What changes meanwhile must not be taken for what was there before.
    if (isInitial && this.#unshared.get(found) !== undefined) return
    const token = Buffer.from(randomUUID())
    this.#unshared.put(found, Buffer.concat([Buffer.of(isInitial ? initial : changed), token]))
  }

  has(key: string): boolean {
    return this.#unshared.get(Buffer.from(key)) !== undefined
  }

  /** Keys in their order, so many at most. */
  list(limit: number): Unshared[] {
    this.environment.refresh()
    return [...this.#unshared.span({ limit })].map(({ key, value }) => ({
      key: Buffer.from(key).toString(),
      token: Buffer.from(value).toString('latin1', 1),
      isInitial: value[0] === initial,
    }))
  }

  get count(): number {
    this.environment.refresh()
    return this.#unshared.count()
  }

  /** The cluster has these; a key that was changed again since stays. Only inside a `write`. */
  settle(given: readonly Unshared[]): void {
    for (const { key, token } of given) {
      const found = this.#unshared.get(Buffer.from(key))
      const isSame = found !== undefined && Buffer.from(found).toString('latin1', 1) === token
      if (isSame) this.#unshared.remove(Buffer.from(key))
    }
  }

  /** Undefined: this machine is in no cluster. */
  position(): SharedPosition | undefined {
    this.environment.refresh()
    const found = this.#state.get(positionKey)
    return found === undefined ? undefined : (JSON.parse(Buffer.from(found).toString()) as SharedPosition)
  }

  /** Only inside a `write`. */
  setPosition(position: SharedPosition): void {
    this.#state.put(positionKey, Buffer.from(JSON.stringify(position)))
  }

  /** The machine leaves its cluster: nothing is listed any more. */
  leave(): void {
    this.environment.write(() => {
      this.#unshared.clear()
      this.#state.clear()
    })
  }
}
