import type { Attributes } from '../catalog/attributes.js'
import { isPending } from '../chain/passing.js'
import type { Id } from '../format/id.js'
import { isRefusal, type Refusal } from '../format/refusal.js'
import type { Transaction } from '../format/transaction.js'
import { equalBytes, runningSha256 } from '../proof/digest.js'
import { isBoundById } from '../proof/transaction-proof.js'
import type { BlobProver, PayloadClaim } from '../source/proving/prover.js'
import { Directories } from '../source/roots/directories.js'
import type { LocatedItem, LocationLimits } from '../source/roots/item-location.js'
import type { OpenRoot } from '../source/roots/items.js'
import { learnedOfItem, learnedOfTransaction } from '../source/roots/learned.js'
import type { RootBytes } from '../source/roots/root-bytes.js'
import { SignedPlaces } from '../source/roots/signed-places.js'
import type { Transactions } from '../source/roots/transaction-headers.js'
import { WantedItems } from '../source/roots/wanted-items.js'
import type { Learned, Source } from '../source/source.js'
import type { Hints } from '../source/source-messages.js'
import type { BlobStore } from '../store/blobs.js'

/** `undecided`: no node could be reached that has the proof, or it is not known where the item lies. */
export type ProofVerdict =
  | { readonly kind: 'proven'; readonly learned: Learned }
  | { readonly kind: 'wrong'; readonly reason: string }
  | Undecided

export interface Undecided {
  readonly kind: 'undecided'
  readonly reason: string
  /**
   * `absent`: no node has the transaction. `pending`: it is in no block yet. `elsewhere`: the root was read, and the item is not
   * there. `away`: no node answered, which says nothing about the content. Absent: some other failure, which may pass.
   */
  readonly because?: 'absent' | 'pending' | 'elsewhere' | 'away'
}

/** A content on disk that is to be proven: whether the blob `digest` is the payload of `known.id`. */
export interface ProofClaim {
  readonly known: Attributes
  readonly digest: Uint8Array
  /** Where an item may lie. */
  readonly hints: Hints
  /** A client named the place. The bytes were brought from elsewhere, so it is not reported as theirs where it proves them. */
  readonly isClients?: true
}

/** What came of the claims of one root. */
export interface Judgement {
  readonly verdicts: ReadonlyMap<Id, ProofVerdict>
  /** Milliseconds of processor time of other threads. */
  readonly ranMs: number
}

export interface EvidenceParts {
  readonly store: Pick<BlobStore, 'part'>
  readonly prover: BlobProver
  readonly transactions: Transactions
  /** Proven bytes of a root. */
  readonly openRoot: OpenRoot
  /** Proven payloads of transactions, chunk by chunk. */
  readonly chunks: Source
  readonly limits: LocationLimits
  /** Those of roots that were opened before. */
  readonly directories?: Directories
}

/** Payloads up to this size are judged many at once; these bounds are of one task of the pool. */
const [smallBytes, batchBytes, batchMax] = [2 ** 20, 2 ** 22, 64] as const

/** Hashing on other threads, where they do not say how long it took. */
const hashMsPerMb = 2

function undecided(reason: string, because?: Undecided['because']): Undecided {
  return { kind: 'undecided', reason, ...(because === undefined ? {} : { because }) }
}

/** What a refusal of nodes means for a proof. */
function hindered(refusal: Refusal): Undecided {
  const { refused, message } = refusal
  if (refused === 'unknown') return undecided(message, isPending(refusal) ? 'pending' : 'absent')
  return undecided(message, refused === 'upstream' || refused === 'late' ? 'away' : undefined)
}

/** The same of a part of the data: that one chunk cannot be had does not mean that no node answers. */
function unread(refusal: Refusal): Undecided {
  const { reason, because } = hindered(refusal)
  return undecided(reason, because === 'away' ? undefined : because)
}

/** Compares payloads on disk with what the chain proves about their ids. */
export class Evidence {
  readonly #signed = new SignedPlaces()
  readonly #directories: Directories

  constructor(private readonly parts: EvidenceParts) {
    this.#directories = parts.directories ?? new Directories()
  }

  /** Judges one content; its root is that of its known place, else of the hint, else itself. */
  async judge(
    known: Attributes,
    digest: Uint8Array,
    hints: Hints,
    signal: AbortSignal,
  ): Promise<ProofVerdict> {
    const rootId = known.place?.rootId ?? hints.rootId ?? known.id
    const { verdicts } = await this.judgeAll(rootId, [{ known, digest, hints }], signal)
    return verdicts.get(known.id) ?? undecided('it was not judged')
  }

  /**
   * Judges contents that may lie in one root: one look-up, one reading of each bundle header and chunk. The root itself may be
   * among them.
   */
  async judgeAll(rootId: Id, claims: readonly ProofClaim[], signal: AbortSignal): Promise<Judgement> {
    const verdicts = new Map<Id, ProofVerdict>()
    const own = claims.find(({ known }) => known.id === rootId)
    let ranMs = 0
    if (own !== undefined) {
      verdicts.set(rootId, await this.#transactionOf(own, signal))
      ranMs += (own.known.size / 1e6) * hashMsPerMb
    }
    const items = claims.filter((one) => one !== own)
    if (items.length === 0) return { verdicts, ranMs }
    const root = await this.parts.openRoot(rootId, { signal })
    if (isRefusal(root)) {
      for (const { known } of items) verdicts.set(known.id, hindered(root))
      return { verdicts, ranMs }
    }
    try {
      ranMs += await this.#items(root, items, verdicts, signal)
    } finally {
      await root.close()
    }
    return { verdicts, ranMs }
  }

  async #transactionOf({ known, digest }: ProofClaim, signal: AbortSignal): Promise<ProofVerdict> {
    const transaction = await this.parts.transactions.header(known.id, { signal })
    return isRefusal(transaction)
      ? hindered(transaction)
      : this.#transaction(known, digest, transaction, signal)
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
    // Data may be cut otherwise than usual; then only the chunks themselves can tell.
    const truth = await this.#digestOfChunks(id, signal)
    if (isRefusal(truth)) return unread(truth)
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

  /** Resolves with milliseconds of processor time of other threads. */
  async #items(
    root: RootBytes,
    claims: readonly ProofClaim[],
    verdicts: Map<Id, ProofVerdict>,
    signal: AbortSignal,
  ): Promise<number> {
    const wanted = new Map(
      claims.map(({ known: { id, place }, hints }) => {
        const isPlaced = place?.rootId === root.id
        const { path, itemOffset } = isPlaced ? { path: place.path, itemOffset: place.rootItemOffset } : hints
        return [id, { path, itemOffset }]
      }),
    )
    const located = new WantedItems(root, wanted, this.parts.limits, signal, this.#directories)
    const failure = await located.locate()
    const absent =
      failure === undefined ? undecided('not in the root that was named', 'elsewhere') : unread(failure)
    const here: { readonly claim: ProofClaim; readonly item: LocatedItem }[] = []
    for (const claim of claims) {
      const item = located.found.get(claim.known.id)
      // That the item is not in a root that a hint named says nothing about the bytes.
      if (item === undefined) verdicts.set(claim.known.id, absent)
      else here.push({ claim, item })
    }
    const { signed, ranMs } = await this.#signedOf(here)
    for (const [at, { claim, item }] of here.entries())
      verdicts.set(claim.known.id, await this.#verdict(root, claim, item, signed[at], signal))
    return ranMs
  }

  /** Whether each blob is what its owner signed: small ones in segments many at once, files one by one. */
  async #signedOf(
    claims: readonly { readonly claim: ProofClaim; readonly item: LocatedItem }[],
  ): Promise<{ signed: (boolean | undefined | Refusal)[]; ranMs: number }> {
    const { store, prover } = this.parts
    const signed: (boolean | undefined | Refusal)[] = []
    let ranMs = 0
    let batch: { at: number; one: PayloadClaim }[] = []
    let bytes = 0
    const judge = async (): Promise<void> => {
      if (batch.length === 0) return
      const judged = await prover.arePayloads(batch.map(({ one }) => one))
      for (const [place, { at }] of batch.entries())
        signed[at] = isRefusal(judged) ? judged : judged.verdicts[place]
      if (!isRefusal(judged)) ranMs += judged.ranMs
      batch = []
      bytes = 0
    }
    for (const [at, { claim, item }] of claims.entries()) {
      const part = store.part(claim.digest)
      const { path, offset = 0, sizeBytes } = part
      if (sizeBytes === undefined || sizeBytes > smallBytes) {
        signed[at] = await prover.isPayload(part, item.header)
        ranMs += (claim.known.size / 1e6) * hashMsPerMb
        continue
      }
      const { tags: _tags, ...header } = item.header
      batch.push({ at, one: { part: { path, offset, sizeBytes }, header } })
      bytes += sizeBytes
      if (batch.length >= batchMax || bytes >= batchBytes) await judge()
    }
    await judge()
    return { signed, ranMs }
  }

  async #verdict(
    root: RootBytes,
    { known, isClients }: ProofClaim,
    { header, place }: LocatedItem,
    signed: boolean | undefined | Refusal,
    signal: AbortSignal,
  ): Promise<ProofVerdict> {
    if (isRefusal(signed)) return undecided(signed.message)
    if (signed === undefined) return undecided('the blob is gone')
    // The header is the owner's. Whether these bytes lie behind it, too, nobody has looked.
    const isCopys = isClients !== true || known.place !== undefined
    if (signed)
      return { kind: 'proven', learned: { ...learnedOfItem(header), ...(isCopys ? { place } : {}) } }
    // The header in the bundle may be a copy, in front of what nobody signed: that says nothing about the blob.
    const listed = { header, start: place.rootItemOffset, itemSize: place.itemSize }
    const isOwners = await this.#signed.check(root, listed, () => this.#directories.turn(), signal)
    return isOwners === true
      ? { kind: 'wrong', reason: 'the owner signed another payload' }
      : undecided(isOwners.message)
  }
}
