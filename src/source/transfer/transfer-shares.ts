import { FreeShares, type ReleaseShare } from '../../actor/free-shares.js'
import { partiesOf } from '../../format/ip.js'

/** What a transfer uses of its client's shares. */
export interface TransferShare {
  /** All of its bytes are here, or none are to come. What waits for the disk takes nothing from a source. */
  readonly over: ReleaseShare
  /** Its last reader has left, too. */
  readonly left: ReleaseShare
}

const nobodys: TransferShare = { over: () => undefined, left: () => undefined }

/** What each client has of the transfers under way, and of the places of those that are read. */
export class TransferShares {
  readonly #underWay: FreeShares
  readonly #read: FreeShares

  constructor(transfersMax: number, placesMax: number) {
    this.#underWay = new FreeShares(transfersMax)
    this.#read = new FreeShares(placesMax)
  }

  /** Undefined: the client has its share. What no client requested uses nobody's. */
  take(client: string | undefined): TransferShare | undefined {
    if (client === undefined) return nobodys
    const parties = partiesOf(client)
    const over = this.#underWay.take(client, parties)
    if (typeof over === 'string') return undefined
    const left = this.#read.take(client, parties)
    if (typeof left !== 'string') return { over, left }
    over()
    return undefined
  }
}
