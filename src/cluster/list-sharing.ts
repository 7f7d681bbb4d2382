import type { Log } from '../actor/log.js'
import type { SharedPosition } from '../store/unshared-keys.js'
import type { SharedEntries, SharedHead, SharedSide } from './shared-entries.js'

/** Changes in one transaction, of the database and of this machine. */
const atOnce = 1000

/** The database belongs to another cluster than the one this machine is in. */
export class ForeignCluster extends Error {
  constructor() {
    super(
      'CLUSTER_DATABASE_URL names the database of another cluster than the one this machine is in; ' +
        'to join it with the block list and the names of this machine, stop it and run: sluice cluster leave',
    )
    this.name = 'ForeignCluster'
  }
}

/** What a round has done. */
export interface SharingRound {
  readonly pushed: number
  readonly taken: number
  /** How far this machine has followed. */
  readonly version: number
}

/**
 * Gives the changes of this machine to the cluster, and takes over those of others. Each machine has whole lists of its own,
 * which its requests read: without the database they stay as they are.
 */
export class ListSharing {
  constructor(
    private readonly entries: SharedEntries,
    private readonly sides: readonly SharedSide[],
    private readonly log: Pick<Log, 'warn' | 'info'>,
  ) {}

  /** Changes that the cluster does not have yet. */
  get unshared(): number {
    return this.sides.reduce((sum, { unsharedCount }) => sum + unsharedCount, 0)
  }

  /** True where this machine has followed the cluster before. */
  get hasFollowed(): boolean {
    return this.sides.every((side) => (side.position()?.version ?? -1) >= 0)
  }

  /** Rejects where the database cannot be reached; what was done until then stays. */
  async round(): Promise<SharingRound> {
    const sum = { pushed: 0, taken: 0, version: 0 }
    let failure: unknown
    for (const side of this.sides) {
      const from = await this.#positionOf(side)
      // A database that can only be read still has changes of others.
      sum.pushed += await this.#push(side).catch((error: unknown) => {
        failure = error
        return 0
      })
      sum.taken += await this.#follow(side, from)
      sum.version = Math.max(sum.version, side.position()?.version ?? 0)
    }
    if (failure !== undefined) throw failure
    return sum
  }

  /** Where this side follows from. What it has is listed for the cluster where it joins, or where a backup was restored. */
  async #positionOf(side: SharedSide): Promise<SharedPosition> {
    const known = side.position()
    const isRestored = known !== undefined && known.version >= 0
    const head = await this.entries.head(Math.max(0, known?.version ?? 0))
    if (isRestored) {
      if (known.cluster !== head.cluster && head.version > 0) throw new ForeignCluster()
      if (isContinued(known, head)) return known
      this.log.warn(
        { known: known.version, there: head.version },
        'the database of the cluster has older data than this machine: its lists are compared from the beginning',
      )
    }
    const start = { cluster: head.cluster, version: 0, stamp: '' }
    await side.shareAll(start, isRestored)
    return start
  }

  async #push(side: SharedSide): Promise<number> {
    for (let pushed = 0; ; ) {
      const changes = side.unshared(atOnce)
      if (changes.length === 0) return pushed
      side.settle(changes, await this.entries.push(changes))
      pushed += changes.length
    }
  }

  async #follow(side: SharedSide, from: SharedPosition): Promise<number> {
    for (let position = from, taken = 0; ; ) {
      const head = await this.entries.head(position.version)
      if (!isContinued(position, head)) return taken
      if (head.version === position.version) return taken
      const page = await this.entries.since(side.lists, position.version, head.version, atOnce)
      const last = page.at(-1)?.version ?? 0
      const isAll = page.length < atOnce
      const { stampThen = '' } = isAll ? { stampThen: head.stamp } : await this.entries.head(last)
      position = { cluster: head.cluster, version: isAll ? head.version : last, stamp: stampThen }
      side.takeOver(page, position)
      taken += page.length
      if (isAll) return taken
    }
  }
}

/** The database still has the transaction up to which this machine has followed. */
function isContinued({ cluster, version, stamp }: SharedPosition, head: SharedHead): boolean {
  if (cluster !== head.cluster || head.version < version) return false
  return version === 0 || head.stampThen === stamp
}
