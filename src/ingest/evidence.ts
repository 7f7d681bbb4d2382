import type { Attributes } from '../catalog/attributes.js'
import type { Id } from '../format/id.js'
import { isRefusal, type Refusal } from '../format/refusal.js'
import type { Transaction } from '../format/transaction.js'
import { equalBytes, runningSha256 } from '../proof/digest.js'
import { isBoundById } from '../proof/transaction-proof.js'
import type { BlobProver } from '../source/proving/prover.js'
import type { Directories } from '../source/roots/directories.js'
import { isFailure, Locating, type LocationLimits } from '../source/roots/item-location.js'
import type { OpenRoot } from '../source/roots/items.js'
import { learnedOfItem, learnedOfTransaction } from '../source/roots/learned.js'
import { SignedPlaces } from '../source/roots/signed-places.js'
import type { Transactions } from '../source/roots/transaction-headers.js'
import type { Learned, Source } from '../source/source.js'
import type { Hints } from '../source/source-messages.js'
import type { BlobStore } from '../store/blobs.js'

/** `undecided`: no node could be reached that has the proof, or it is not known where the item lies. */
export type ProofVerdict =
  | { readonly kind: 'proven'; readonly learned: Learned }
  | { readonly kind: 'wrong'; readonly reason: string }
  /** `isAway`: no node answered, which proves nothing about this payload. */
  | { readonly kind: 'undecided'; readonly reason: string; readonly isAway?: true }

export interface EvidenceParts {
  readonly store: Pick<BlobStore, 'part'>
  readonly prover: BlobProver
  readonly transactions: Transactions
  /** Proven bytes of a root. */
  readonly openRoot: OpenRoot
  /** Proven payloads of transactions, chunk by chunk. */
  readonly chunks: Source
  readonly limits: LocationLimits
  /** Those of roots that were opened for readers. */
  readonly directories?: Directories
}

const undecided = (reason: string): Extract<ProofVerdict, { kind: 'undecided' }> => ({
  kind: 'undecided',
  reason,
})

/** Compares payloads on disk with what the chain proves about their ids. */
export class Evidence {
  readonly #signed = new SignedPlaces()

  constructor(private readonly parts: EvidenceParts) {}

  /** Whether the blob `digest` is the payload of `known.id`. `hints`: where an item may lie. */
  async judge(
    known: Attributes,
    digest: Uint8Array,
    hints: Hints,
    signal: AbortSignal,
  ): Promise<ProofVerdict> {
    const rootId = known.place?.rootId ?? hints.rootId
    if (rootId !== undefined && rootId !== known.id) return this.#item(known, digest, rootId, hints, signal)
    const transaction = await this.parts.transactions.header(known.id, signal)
    if (!isRefusal(transaction)) return this.#transaction(known, digest, transaction, signal)
    const { refused, message } = transaction
    if (refused === 'unknown') return undecided('no transaction, and no root is known')
    return refused === 'upstream' || refused === 'late'
      ? { ...undecided(message), isAway: true }
      : undecided(message)
  }

  async #transaction(
    known: Attributes,
    digest: Uint8Array,
    transaction: Transaction,
    signal: AbortSignal,
  ): Promise<ProofVerdict> {
    if (!isBoundById(transaction)) return undecided('its id vouches for no data')
    const { id, dataRoot, dataSize } = transaction
    const proven: ProofVerdict = { kind: 'proven', learned: learnedOfTransaction(transaction) }
    if (known.size !== dataSize) return { kind: 'wrong', reason: `the signed size is ${dataSize}` }
    const part = this.parts.store.part(digest)
    const root = await this.parts.prover.dataRoot(part, dataSize)
    if (isRefusal(root)) return undecided(root.message)
    if (root !== undefined && equalBytes(root, dataRoot)) return proven
    // Data may be cut otherwise than usual; then only the chunks themselves can decide.
    const truth = await this.#digestOfChunks(id, signal)
    if (isRefusal(truth)) return undecided(truth.message)
    return equalBytes(truth, digest)
      ? proven
      : { kind: 'wrong', reason: 'the chunks of the chain are others' }
  }

  async #digestOfChunks(id: Id, signal: AbortSignal): Promise<Uint8Array | Refusal> {
    const provenance = { hops: 0, via: [], forward: false }
    const found = await this.parts.chunks.open({ id, hints: {}, provenance, avoid: new Set() }, signal)
    if (isRefusal(found)) return found
    const hash = runningSha256()
    for await (const piece of found.body) {
      if (isRefusal(piece)) return piece
      hash.update(piece)
    }
    return hash.digest()
  }

  async #item(
    known: Attributes,
    digest: Uint8Array,
    rootId: Id,
    hints: Hints,
    signal: AbortSignal,
  ): Promise<ProofVerdict> {
    const root = await this.parts.openRoot(rootId, signal)
    if (isRefusal(root)) return undecided(root.message)
    try {
      const guide = {
        path: known.place?.path ?? hints.path,
        itemOffset: known.place?.rootItemOffset ?? hints.itemOffset,
      }
      const { limits, directories } = this.parts
      const located = await new Locating(root, known.id, limits, signal, directories).locate(guide)
      // That the item is not in a root that a hint named proves nothing about the bytes.
      if (isRefusal(located))
        return undecided(isFailure(located) ? located.message : 'not in the root that was named')
      const { header, place } = located
      const signed = await this.parts.prover.isPayload(this.parts.store.part(digest), header)
      if (isRefusal(signed)) return undecided(signed.message)
      if (signed === undefined) return undecided('the blob is gone')
      // The header is the owner's. Whether these bytes lie behind it, too, nobody has looked.
      if (signed) return { kind: 'proven', learned: { ...learnedOfItem(header), place } }
      // The header in the bundle may be a copy, in front of what nobody signed: that proves nothing about the blob.
      const listed = { header, start: place.rootItemOffset, itemSize: place.itemSize }
      const isOwners = await this.#signed.check(root, listed, signal)
      return isOwners === true
        ? { kind: 'wrong', reason: 'the owner signed another payload' }
        : undecided(isOwners.message)
    } finally {
      await root.close()
    }
  }
}
