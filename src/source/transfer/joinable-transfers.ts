import type { Id } from '../../format/id.js'
import type { ContentRequest } from '../source-messages.js'
import { hintsKey, type TrailRules, trailKey } from '../upstream/trail.js'
import type { ContentTransfer } from './content-transfer.js'

/** Which bytes a transfer brings: the whole payload, or the window of its request alone. */
export type TransferExtent = 'whole' | 'window'

/** Transfers under way that further requests may join: by their key, and those of whole payloads by id. */
export class JoinableTransfers {
  readonly #byKey = new Map<string, ContentTransfer>()
  readonly #keys = new Map<ContentTransfer, string>()
  readonly #wholes = new Map<Id, Set<ContentTransfer>>()

  /** `trail`: which hops of a request change whom it is passed on to. */
  constructor(private readonly trail: TrailRules) {}

  get all(): readonly ContentTransfer[] {
    return [...this.#byKey.values()]
  }

  /**
   * Transfers that may serve this request, the best first. One of the whole payload that has bytes serves every request. One that
   * has none yet may still fail because of the hints or hops of its client: only a request with the same ones joins it. Otherwise
   * the hints of one client would decide for another. `extents`: what it may bring.
   */
  candidatesFor(request: ContentRequest, extents: readonly TransferExtent[]): ContentTransfer[] {
    const withBytes = [...(this.#wholes.get(request.id) ?? [])].filter(
      ({ announced }) => announced !== undefined,
    )
    const alike = extents.flatMap((extent) => this.#byKey.get(this.#keyOf(request, extent)) ?? [])
    return [...withBytes, ...alike]
  }

  has(transfer: ContentTransfer): boolean {
    return this.#keys.has(transfer)
  }

  /** From now on others join the transfer that was begun for `request`. */
  add(request: ContentRequest, extent: TransferExtent, transfer: ContentTransfer): void {
    const key = this.#keyOf(request, extent)
    this.#byKey.set(key, transfer)
    this.#keys.set(transfer, key)
    const { id, window } = transfer.request
    if (window === undefined) this.#wholes.set(id, (this.#wholes.get(id) ?? new Set()).add(transfer))
  }

  /** Nobody joins it from now on. */
  remove(transfer: ContentTransfer): void {
    const key = this.#keys.get(transfer)
    if (key === undefined) return
    this.#keys.delete(transfer)
    if (this.#byKey.get(key) === transfer) this.#byKey.delete(key)
    const { id } = transfer.request
    const ofId = this.#wholes.get(id)
    if (ofId?.delete(transfer) === true && ofId.size === 0) this.#wholes.delete(id)
  }

  /** What the client of a request gives that may change its result: hops and hints, as one text. '' where it gives neither. */
  variantOf({ provenance, hints }: ContentRequest): string {
    const hops = trailKey(provenance, this.trail)
    const place = hintsKey(hints)
    return hops === '' && place === '' ? '' : `${hops} ${place}`
  }

  /** All that may change the result of a transfer: id, window, hops and hints. */
  #keyOf(request: ContentRequest, extent: TransferExtent): string {
    const { id, window } = request
    const ends = window?.mayEndEarlier === true ? '?' : ''
    const part = extent === 'window' && window !== undefined ? `${window.start}-${window.end}${ends}` : ''
    return `${id} ${part} ${this.variantOf(request)}`
  }
}
