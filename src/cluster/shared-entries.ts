import type { SharedPosition } from '../store/unshared-keys.js'

/** Lists that all machines of a cluster have. */
export type SharedListName = 'blocks' | 'names' | 'grants'

/** The state of one key of a list. */
export interface SharedState {
  readonly list: SharedListName
  readonly key: string
  /** JSON; undefined: the key is not in the list any more. */
  readonly body: string | undefined
  /** Between two states with ranks the higher one counts; 0: the one that comes last. */
  readonly rank: number
}

/** A change of one machine. */
export interface SharedChange extends SharedState {
  /** A UUID: what is given twice is carried out once. */
  readonly token: string
  /** What the machine had before it joined: it counts only where the cluster knows nothing of the key. */
  readonly isInitial: boolean
}

/** A state as the cluster has it. */
export interface SharedEntry extends SharedState {
  readonly version: number
  /** The machine that changed it. */
  readonly node: string
}

/** How far the changes of a cluster go. */
export interface SharedHead extends SharedPosition {
  /** Names the transaction that wrote the requested version; undefined: there is none. */
  readonly stampThen: string | undefined
}

/**
 * The lists of a cluster, in the order in which they were changed. Each method rejects where they cannot be reached; `push` also
 * where they can only be read.
 */
export interface SharedEntries {
  /** `version`: whose stamp is requested. */
  head(version: number): Promise<SharedHead>
  /** Carries out changes, all or none. Resolves with the states that hold instead of those that do not count. */
  push(changes: readonly SharedChange[]): Promise<SharedEntry[]>
  /** States with versions behind `after`, up to `until`, in the order of their versions. */
  since(lists: readonly SharedListName[], after: number, until: number, limit: number): Promise<SharedEntry[]>
}

/** One kind of lists on this machine. */
export interface SharedSide {
  readonly lists: readonly SharedListName[]
  position(): SharedPosition | undefined
  /**
   * Lists everything that this machine has. `position`: where it follows from then. `isRestored`: the database went back to an
   * older state. Then what is blocked here is blocked, whatever the database says of a time before. Else all of it is initial.
   */
  shareAll(position: SharedPosition, isRestored: boolean): Promise<void>
  unshared(limit: number): readonly SharedChange[]
  readonly unsharedCount: number
  /** The cluster has the changes; `instead`: what it has where they did not count. */
  settle(changes: readonly SharedChange[], instead: readonly SharedEntry[]): void
  takeOver(entries: readonly SharedEntry[], position: SharedPosition): void
}
