import { type BundleLimits, standardBundleLimits } from '../format/bundle.js'
import { type BundleEvent, BundleReader } from '../format/bundle-reader.js'
import type { Id } from '../format/id.js'
import type { Refusal } from '../format/refusal.js'
import { ItemVerifier } from './item-verifier.js'

export interface BundleFindings {
  /** Items that the bundle's header names. */
  readonly items: number
  /** Items that their owners signed. */
  readonly sound: number
  /** The first few that are not, with the reason. */
  readonly unsound: readonly { readonly id: Id; readonly refusal: Refusal }[]
  /** Why the bundle could not be read to its end, if it could not. */
  readonly broken: Refusal | undefined
}

/** Most bad items that are listed: one is enough to distrust a bundle, some more help to find the cause. */
const unsoundMax = 10

/** Verifies every item of a bundle that arrives in pieces: holds one item's header at a time, and no payload. */
export class BundleVerifier {
  readonly #reader: BundleReader
  readonly #unsound: { readonly id: Id; readonly refusal: Refusal }[] = []
  #items = 0
  #sound = 0
  #broken: Refusal | undefined
  #current: ItemVerifier | undefined

  constructor(limits: BundleLimits = standardBundleLimits) {
    this.#reader = new BundleReader(limits)
  }

  /** Takes the next bytes of the bundle. */
  update(bytes: Uint8Array): void {
    for (const event of this.#reader.push(bytes)) this.#take(event)
  }

  /** What was found out. Once only, after the last bytes. */
  finish(): BundleFindings {
    for (const event of this.#reader.end()) this.#take(event)
    return { items: this.#items, sound: this.#sound, unsound: this.#unsound, broken: this.#broken }
  }

  #take(event: BundleEvent): void {
    if (event.kind === 'payload') this.#current?.update(event.bytes)
    else if (event.kind === 'header') this.#current = new ItemVerifier(event.header)
    else if (event.kind === 'end') this.#close()
    else if (event.kind === 'entries') this.#items = event.count
    else if (event.kind === 'bad') this.#refuse(event.entry.id, event.refusal)
    else if (event.kind === 'broken') this.#broken = event.refusal
  }

  #close(): void {
    const held = this.#current?.finish()
    if (held === true) this.#sound++
    else if (held !== undefined && this.#current !== undefined) this.#refuse(this.#current.header.id, held)
    this.#current = undefined
  }

  #refuse(id: Id, refusal: Refusal): void {
    if (this.#unsound.length < unsoundMax) this.#unsound.push({ id, refusal })
  }
}
