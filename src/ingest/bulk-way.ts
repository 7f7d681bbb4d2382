import type { BulkPart, BulkReply } from '../catalog/bulk-protocol.js'
import type { CatalogRequest } from '../catalog/catalog-messages.js'

/** What is to be done when so many requests are listed. */
interface Waiting {
  readonly taken: number
  readonly act: () => void
}

/** The importer's side of an import in bulk (`BulkRequest`). */
export class BulkWay {
  #session: number | undefined
  #beginning: Promise<unknown> | undefined
  #taken = 0
  #listed = 0
  readonly #waiting: Waiting[] = []

  /** Resolves when there is a session; `send` is called once to begin it. */
  async begun(send: (request: CatalogRequest) => Promise<unknown>): Promise<void> {
    if (this.#session !== undefined) return
    this.#beginning ??= send({ kind: 'bulk-begin' })
    await this.#beginning
  }

  /** The request as part of the session, where it brings rows; else as it is. */
  inBulk(request: CatalogRequest): CatalogRequest {
    const parts = partsOf(request)
    if (parts === undefined || this.#session === undefined) return request
    return { kind: 'bulk', session: this.#session, parts }
  }

  /** Lists all that was taken; undefined where nothing was. */
  end(): CatalogRequest | undefined {
    return this.#session === undefined ? undefined : { kind: 'bulk-end', session: this.#session }
  }

  /** A reply of the keeper. Replies come in any order. */
  note(reply: BulkReply | undefined): void {
    if (reply === undefined) return
    this.#session = reply.session
    this.#taken = Math.max(this.#taken, reply.taken)
    this.#listed = Math.max(this.#listed, reply.listed)
    while (this.#waiting[0] !== undefined && this.#waiting[0].taken <= this.#listed)
      this.#waiting.shift()?.act()
  }

  /** Does `act` when all that was replied to so far is in the index. */
  whenListed(act: () => void): void {
    if (this.#listed >= this.#taken) act()
    else this.#waiting.push({ taken: this.#taken, act })
  }
}

/** The parts of a request that may go in bulk; undefined where any of it may not. */
function partsOf(request: CatalogRequest): BulkPart[] | undefined {
  switch (request.kind) {
    case 'all': {
      const parts = request.requests.map(partsOf)
      const known = parts.flatMap((some) => some ?? [])
      return parts.includes(undefined) ? undefined : known
    }
    case 'index-block':
    case 'index-transactions':
    case 'learn':
    case 'judged':
      return [request]
    case 'index-items':
      return request.optimistic === true ? undefined : [request]
    default:
      return undefined
  }
}
