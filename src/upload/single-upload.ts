import type { ItemHeader } from '../format/item.js'
import { isRefusal, type Refusal } from '../format/refusal.js'
import type { BodyFlow, BodySink, Request } from '../http/exchange.js'
import { normalizedAddress } from '../proof/address.js'
import type { DurableLog } from '../store/segments/durable-log.js'
import type { Acceptor } from './acceptor.js'
import { answerOf, said, tooLarge, type UploadAnswer, unreadable } from './answers.js'
import { ItemReader } from './item-reader.js'
import { Spool } from './spool.js'
import type { Uploader } from './uploader.js'

export interface SingleUploadParts {
  readonly acceptor: Acceptor
  readonly log: DurableLog
  /** Larger items are refused. */
  readonly itemMaxBytes: number
  /** Normalized addresses whose items are refused. */
  readonly blockedOwners: ReadonlySet<string>
  /** Undefined: there is room. */
  readonly full: () => UploadAnswer | undefined
}

/** One signed item as the body of a request. */
export class SingleUpload {
  constructor(private readonly parts: SingleUploadParts) {}

  /** Reads the item as it comes, and answers. To be called before the handler first waits. */
  take(request: Request, uploader: Uploader): Promise<UploadAnswer> {
    const early = this.#early(request)
    if (early !== undefined) return Promise.resolve(early)
    return new Promise((resolve, reject) => {
      const arrival = new Arrival(this.parts, uploader, resolve, reject)
      arrival.begin(request)
    })
  }

  /** What the head alone decides. */
  #early(request: Request): UploadAnswer | undefined {
    const type = request.header('content-type')
    if (type !== undefined && type !== 'application/octet-stream') return said.contentType
    const full = this.parts.full()
    if (full !== undefined) return full
    const size = Number(request.header('content-length') ?? 0)
    return size > this.parts.itemMaxBytes ? tooLarge(this.parts.itemMaxBytes) : undefined
  }
}

/** An item on its way in. */
class Arrival implements BodySink {
  readonly #reader = new ItemReader()
  readonly #spool: Spool
  #flow: BodyFlow | undefined
  #isOver = false
  #isAdmitted = false

  constructor(
    private readonly parts: SingleUploadParts,
    private readonly uploader: Uploader,
    private readonly resolve: (answer: UploadAnswer) => void,
    private readonly reject: (error: unknown) => void,
  ) {
    this.#spool = new Spool(parts.log, () => this.#flow?.resume())
  }

  begin(request: Request): void {
    this.#flow = request.stream(this)
  }

  piece(bytes: Uint8Array): void {
    if (this.#isOver) return
    const refusal = this.#reader.push(bytes)
    if (refusal !== undefined) this.#end(unreadable(refusal))
    else if (this.#reader.sizeBytes > this.parts.itemMaxBytes) this.#end(tooLarge(this.parts.itemMaxBytes))
    if (this.#isOver) return
    if (!this.#isAdmitted && this.#reader.header !== undefined && !this.#admit(this.#reader.header)) return
    if (!this.#spool.write(bytes)) this.#flow?.pause()
    else if (this.#spool.refusal !== undefined) this.#end(answerOf(this.#spool.refusal))
  }

  /** What the item's header decides. False: it is decided. */
  #admit(header: ItemHeader): boolean {
    this.#isAdmitted = true
    if (this.parts.blockedOwners.has(normalizedAddress(header.owner))) {
      this.#end(said.forbidden)
      return false
    }
    return true
  }

  over(refusal: Refusal | undefined): void {
    if (this.#isOver) return
    const item = refusal ?? this.#reader.finish()
    if (isRefusal(item)) {
      this.#end(refusal === undefined ? unreadable(item) : answerOf(item))
      return
    }
    this.#isOver = true
    void this.parts.acceptor
      .accept(item, this.#spool, this.uploader)
      .then(this.resolve, this.reject)
      .finally(() => this.#spool.drop())
  }

  /** Nothing more of it is wanted. */
  #end(answer: UploadAnswer): void {
    this.#isOver = true
    this.#flow?.pause()
    void this.#spool.drop()
    this.resolve(answer)
  }
}
