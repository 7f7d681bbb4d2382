import { FreeShares, type ReleaseShare } from '../../actor/free-shares.js'
import { greediest, type Holdings } from '../../actor/greediest.js'

interface Holder {
  readonly client: string
  /** Ends the request for a client that holds fewer places; absent once its head came. */
  end: (() => void) | undefined
}

/** A place of one request. */
export interface TakenPlace {
  /** From now on it makes room for nobody: a client reads what it brings. */
  headCame(): void
  /** Calling it again does nothing. */
  readonly leave: ReleaseShare
}

const byClient: Holdings<Holder> = {
  clientOf: ({ client }) => client,
  lead: 1,
  levels: 3,
  isNested: true,
  mayGo: ({ end }) => end !== undefined,
}

/**
 * Places for requests to one peer, until their answers are over: as many for one client as `FreeShares` gives. Beyond that a
 * request without a head makes room for a client whose places are fewer, bodies included: who has its share ends nobody's.
 */
export class PeerPlaces {
  readonly #shares: FreeShares
  readonly #holders = new Set<Holder>()

  constructor(max: number) {
    this.#shares = new FreeShares(max)
  }

  /** Whether one more request of this client finds a place, or another one makes room for it. */
  hasRoom(client: string): boolean {
    return this.#shares.fullness(client) === undefined || this.#makesRoom(client) !== undefined
  }

  /** A place; one that makes room for it is ended. `end` ends this one. */
  take(client: string, end: () => void): TakenPlace {
    if (this.#shares.fullness(client) !== undefined) {
      const other = this.#makesRoom(client)
      const act = other?.end
      if (other !== undefined) other.end = undefined
      act?.()
    }
    return this.#add({ client, end })
  }

  /** A place beyond all bounds, for the rest of a body that broke. */
  force(client: string): ReleaseShare {
    return this.#add({ client, end: undefined }).leave
  }

  #makesRoom(client: string): Holder | undefined {
    return greediest(this.#holders, client, byClient)?.find(({ end }) => end !== undefined)
  }

  #add(holder: Holder): TakenPlace {
    this.#holders.add(holder)
    const give = this.#shares.force(holder.client)
    return {
      headCame() {
        holder.end = undefined
      },
      leave: () => {
        this.#holders.delete(holder)
        give()
      },
    }
  }
}
