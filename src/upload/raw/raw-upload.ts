import { createHash } from 'node:crypto'
import type { Clock } from '../../actor/clock.js'
import { MemoryShare } from '../../actor/held-memory.js'
import { encodeTags } from '../../format/avro-tags.js'
import { encodeItemHeader, type ItemHeader, parseItemHeader } from '../../format/item.js'
import { isRefusal } from '../../format/refusal.js'
import { type Tag, tagOf } from '../../format/tag.js'
import type { Request } from '../../http/exchange.js'
import { ItemVerifier } from '../../proof/item-verifier.js'
import type { ItemSigner } from '../../proof/sign.js'
import type { ItemCharge } from '../charging/charging.js'
import { freeCharge, freeExhausted } from '../charging/charging.js'
import type { AcceptTerms } from '../intake/accept-terms.js'
import { Assembly } from '../intake/assembly.js'
import { lengthOf, type SingleUploadParts, tooManyUploads } from '../intake/single-upload.js'
import type { FreePools } from '../records/free-pools.js'
import {
  closedAnswer,
  refusalAnswer,
  textAnswer,
  tooLarge,
  type UploadAnswer,
} from '../requests/upload-answers.js'
import type { Uploader } from '../requests/uploader.js'
import type { BroughtPayment, TrackedPayment, UsdcUploads } from '../usdc/usdc-uploads.js'
import { RawBody } from './raw-body.js'
import { ownTagBytes, wantedTags } from './raw-tags.js'

export interface RawUploadParts extends SingleUploadParts {
  readonly pools: FreePools
  readonly usdcUploads: UsdcUploads
  /** Signs with a key that has no other use (item-key.ts). */
  readonly signer: ItemSigner
  /** Folder of bodies that are too large for memory; emptied at each start. */
  readonly folder: string
  readonly clock: Clock
}

/** What is needed in a raw upload besides its bytes. */
interface RawRequest {
  readonly tags: readonly Tag[]
  /** Size of the item that the bytes will make, at most: what is paid for. Of no bytes, where their number is not known ahead. */
  readonly sizeBytes: number
  readonly brought?: BroughtPayment
  readonly tracked?: TrackedPayment
}

/** What is done with bytes on their way in. */
interface BodyPlan {
  /** Reading pauses until it resolves. An answer: the bytes are not wanted. */
  readonly closed: Promise<UploadAnswer | undefined>
  readonly maxBytes: number
  /** Called repeatedly as a body of unannounced length arrives. */
  readonly closedAt?: (bytes: number) => Promise<UploadAnswer | undefined>
  /** Where there are more. */
  readonly onMore: UploadAnswer
  /** All are here: the terms on which the item is accepted. An answer: they are not. */
  termsFor(bytes: number, digest: string): AcceptTerms | Promise<AcceptTerms | UploadAnswer>
  /** They are not all here. */
  onBroken?(): Promise<void>
}

const noLength = textAnswer(
  411,
  'Missing Content Length. Content Length is required for x402 upload, but for what is free or paid for by the same request.',
)
const noRoom = textAnswer(503, 'The disk of this service is nearly full', '\r\nRetry-After: 60')
/** Type, signature, owner, two flags, two counts. */
const bareHeaderBytes = 2 + 64 + 32 + 2 + 16

/** Bytes of an item that is made here of so many bytes and these tags, at most. */
export function rawItemBytes(bytes: number, tagBytes: number): number {
  return bytes + bareHeaderBytes + tagBytes + ownTagBytes
}

/** Bytes that nobody signed: the service makes an item of them and signs it itself. Small ones are free. */
export class RawUpload {
  constructor(private readonly parts: RawUploadParts) {}

  /** To be called before the handler first waits. */
  receive(request: Request, uploader: Uploader): Promise<UploadAnswer> {
    const length = lengthOf(request)
    const wish = this.#wish(request, length ?? 0)
    if ('status' in wish) return Promise.resolve(wish)
    const { tracked } = wish
    const intake =
      length === undefined
        ? this.#streamed(request, wish, uploader)
        : this.#announced(request, wish, length, uploader)
    const answered = this.#received(request, uploader, wish, { ...intake, ...tracked })
    return tracked === undefined ? answered : answered.finally(tracked.end)
  }

  /** Reads the head. An answer: it is refused. */
  #wish(request: Request, length: number): RawRequest | UploadAnswer {
    const { noRoomFor, itemMaxBytes, usdcUploads } = this.parts
    const noRoom = closedAnswer() ?? noRoomFor(length)
    if (noRoom !== undefined) return noRoom
    const tags = wantedTags(request)
    if (typeof tags === 'string') return textAnswer(400, tags)
    const sizeBytes = rawItemBytes(length, encodeTags(tags).length)
    if (sizeBytes > itemMaxBytes) return tooLarge(itemMaxBytes)
    const brought = usdcUploads.readPayment(request, sizeBytes)
    if (brought === undefined) return { tags, sizeBytes }
    return 'status' in brought ? brought : { tags, sizeBytes, brought, tracked: usdcUploads.track(brought) }
  }

  /** The number of bytes is known: everything is decided before the first of them is read. */
  #announced(request: Request, wish: RawRequest, length: number, uploader: Uploader): BodyPlan {
    const taking = wish.brought === undefined ? this.#free(wish, uploader) : Promise.resolve(undefined)
    return {
      closed: taking.then((free) => (free === undefined ? this.#verified(request, wish) : undefined)),
      maxBytes: length,
      onMore: tooLarge(length),
      termsFor: async (_, digest) => this.#terms(wish.brought, digest, await taking),
      onBroken: async () => (await taking)?.refund(),
    }
  }

  /**
   * The number of bytes is not known: as many are read as are free; or any, where the request brings a payment that would settle.
   * It must be enough for those that came, and moves whole.
   */
  #streamed(request: Request, wish: RawRequest, uploader: Uploader): BodyPlan {
    const { usdcUploads, pools, itemMaxBytes } = this.parts
    const { brought, tracked, sizeBytes: overhead } = wish
    const paying = (sizeBytes: number, { order, ...rest }: BroughtPayment): BroughtPayment => ({
      ...rest,
      order: { ...order, bytes: sizeBytes },
    })
    const paidFor = async (bytes: number): Promise<UploadAnswer | undefined> =>
      brought && usdcUploads.look(paying(overhead + bytes, brought), overhead + bytes, tracked)
    const most = brought === undefined ? Math.min(pools.rules.itemMaxBytes, itemMaxBytes) : itemMaxBytes
    return {
      closed:
        brought === undefined ? Promise.resolve(undefined) : usdcUploads.look(brought, overhead, tracked),
      maxBytes: Math.max(0, most - overhead),
      // A small payment must not bring ten gigabytes here.
      ...(brought === undefined ? {} : { closedAt: (bytes) => paidFor(bytes) }),
      onMore: brought === undefined ? noLength : tooLarge(itemMaxBytes),
      termsFor: async (bytes, digest) => {
        const sized = { ...wish, sizeBytes: overhead + bytes }
        if (brought === undefined) {
          const free = await this.#free(sized, uploader)
          return free === undefined
            ? ((await this.#verified(request, sized)) ?? noLength)
            : this.#terms(undefined, digest, free)
        }
        return (await paidFor(bytes)) ?? this.#terms(paying(sized.sizeBytes, brought), digest, undefined)
      },
    }
  }

  /** Free bytes are counted for the client's address alone: who signs is always the service. */
  #free({ sizeBytes }: RawRequest, { address }: Uploader): Promise<ItemCharge | undefined> {
    return freeCharge(this.parts.pools, { range: address }, sizeBytes)
  }

  async #verified(
    request: Request,
    { sizeBytes, brought, tracked }: RawRequest,
  ): Promise<UploadAnswer | undefined> {
    const { usdcUploads } = this.parts
    if (brought !== undefined) return usdcUploads.look(brought, sizeBytes, tracked)
    const offer = await usdcUploads.offer(request, sizeBytes)
    return offer.status === 404 ? freeExhausted(sizeBytes) : offer
  }

  async #received(
    request: Request,
    uploader: Uploader,
    wish: RawRequest,
    {
      closed,
      closedAt,
      maxBytes,
      onMore,
      termsFor,
      onBroken,
      expired,
    }: BodyPlan & Partial<Pick<TrackedPayment, 'expired'>>,
  ): Promise<UploadAnswer> {
    const item = new RawItem(this.parts.signer, [...wish.tags, ...this.#ownTags(wish)])
    const digest = createHash('sha256').update(encodeTags(wish.tags))
    const { arriving, folder, memory } = this.parts
    const holder = arriving.enter({
      client: uploader.address,
      hasPlace: false,
      isPaid: false,
      drop: () => {
        arriving.leave(holder)
        body.fail(noRoom)
      },
    })
    const hold = (bytes: number): UploadAnswer | undefined => {
      const crowded = arriving.roomFor(holder, bytes)
      if (crowded === undefined) arriving.grow(holder, bytes, 0)
      return crowded
    }
    const client = (): string => uploader.address ?? ''
    const share = new MemoryShare(memory, client, () => body.move(), true)
    const waiting = new MemoryShare(memory, client, () => {
      waiting.leave()
      body.fail(tooManyUploads)
    })
    const remember = (bytes: number): boolean => share.resize(bytes)
    const wait = (bytes: number): UploadAnswer | undefined =>
      waiting.resize(bytes) ? undefined : tooManyUploads
    const body = new RawBody({ folder, maxBytes, remember, wait, hold, closedAt }, (bytes) => {
      digest.update(bytes)
      item.update(bytes)
    })
    const coming = body.take(
      request,
      closed.then((answer) => answer === undefined),
    )
    void expired?.then((answer) => body.fail(answer))
    try {
      const answer = await closed
      if (answer !== undefined) return answer
      const arrived = await coming
      if (!(arrived instanceof RawBody)) {
        await onBroken?.()
        if (!isRefusal(arrived)) return arrived
        return arrived.refused === 'too-large' ? onMore : refusalAnswer(arrived)
      }
      arriving.setBusy(holder, true)
      share.pin()
      waiting.leave()
      const terms = await termsFor(body.sizeBytes, digest.digest('base64url'))
      return 'status' in terms ? terms : await this.#sign(item, body, uploader, terms)
    } finally {
      arriving.leave(holder)
      share.leave()
      waiting.leave()
      await body.drop()
    }
  }

  #terms(brought: BroughtPayment | undefined, request: string, free: ItemCharge | undefined): AcceptTerms {
    if (brought === undefined) return free === undefined ? {} : { charge: free }
    return { purchase: this.parts.usdcUploads.purchase(brought, () => `raw:${request}`) }
  }

  async #sign(item: RawItem, body: RawBody, uploader: Uploader, terms: AcceptTerms): Promise<UploadAnswer> {
    const header = item.signed(this.parts.signer.sign(item.message()))
    return new Assembly(this.parts).run([header, ...body.parts], uploader, () => undefined, {
      ...terms,
      isSignedHere: true,
    })
  }

  /** What the network's own service adds. */
  #ownTags({ brought }: RawRequest): Tag[] {
    const { clock } = this.parts
    const tags = [
      tagOf('Bundler', 'Sluice'),
      tagOf('Upload-Type', 'raw-data-x402'),
      tagOf('Upload-Timestamp', String(clock.now())),
    ]
    if (brought === undefined) return tags
    const { authorization, network } = brought.read
    return [
      ...tags,
      tagOf('Payer-Address', authorization.from),
      tagOf('X402-Payment-ID', brought.name),
      tagOf('X402-Network', network),
    ]
  }
}

/** An item that is to be signed, as its bytes come. */
class RawItem {
  readonly #verifier: ItemVerifier

  constructor(
    private readonly signer: Pick<ItemSigner, 'owner' | 'signatureType'>,
    private readonly tags: readonly Tag[],
  ) {
    const header = parseItemHeader(this.signed(new Uint8Array(64)))
    if (header === 'more' || isRefusal(header)) throw new Error('an own item cannot be read')
    this.#verifier = new ItemVerifier(header satisfies ItemHeader)
  }

  update(bytes: Uint8Array): void {
    this.#verifier.update(bytes)
  }

  /** What is to be signed. Once, after the last byte. */
  message(): Uint8Array {
    return this.#verifier.message()
  }

  /** The bytes in front of the payload. */
  signed(signature: Uint8Array): Uint8Array {
    const { owner, signatureType } = this.signer
    return encodeItemHeader({ signatureType, signature, owner, tags: this.tags })
  }
}
