import type { HeldMemory } from '../../actor/held-memory.js'
import type { ItemHeader } from '../../format/item.js'
import { bareType, unknownType } from '../../format/media-type.js'
import { isRefusal, type Refusal } from '../../format/refusal.js'
import type { BodyControl, BodySink, Request } from '../../http/exchange.js'
import type { DurableLog } from '../../store/segments/durable-log.js'
import type { Purchase } from '../charging/sales.js'
import {
  closedAnswer,
  fixedAnswers,
  refusalAnswer,
  textAnswer,
  tooLarge,
  type UploadAnswer,
  unreadable,
} from '../requests/upload-answers.js'
import type { Uploader } from '../requests/uploader.js'
import type { HeldRoom, Holder } from '../room/held-room.js'
import { IntakeMemory } from './intake-memory.js'
import type { ItemIntake } from './item-intake.js'
import { ItemReader } from './item-reader.js'
import { wholeDigestIn } from './sent-digests.js'
import { Spool } from './spool.js'

export interface SingleUploadParts {
  readonly intake: ItemIntake
  readonly itemLog: DurableLog
  /** Larger items are refused. */
  readonly itemMaxBytes: number
  /** Normalized addresses whose items are refused, alone and in bundles. */
  readonly blockedOwners: ReadonlySet<string>
  /** Undefined: there is room, for so many bytes more. */
  readonly noRoomFor: (bytes?: number) => UploadAnswer | undefined
  /** What requests bring that are not over: on disk, and in memory. */
  readonly arriving: HeldRoom
  readonly memory: HeldMemory
}

/** What a single upload is besides its item. */
export interface UploadTerms {
  /** Called with the head alone. The body is not read until it resolves. An answer: the body is not wanted. */
  readonly beforeBody?: () => Promise<UploadAnswer | undefined>
  /** It need not be made before the body is here, so it pays for no room on the disk. */
  readonly purchase?: Purchase
  /** Resolves when the payment is good no more. The answer ends an upload whose body is not here yet. */
  readonly expired?: Promise<UploadAnswer>
}

/** One signed item as the body of a request. */
export class SingleUpload {
  constructor(private readonly parts: SingleUploadParts) {}

  /** Reads the item as it comes, and answers. To be called before the handler first waits. */
  receive(request: Request, uploader: Uploader, terms: UploadTerms = {}): Promise<UploadAnswer> {
    const early = closedAnswer() ?? this.#refusedByHead(request, uploader)
    if (early !== undefined) return Promise.resolve(early)
    return new Promise((resolve, reject) => {
      const arrival = new Arrival(this.parts, uploader, terms, request, resolve, reject)
      arrival.begin(request)
    })
  }

  /** What the head alone decides. */
  #refusedByHead(request: Request, { address }: Uploader): UploadAnswer | undefined {
    const { arriving, noRoomFor, itemMaxBytes } = this.parts
    const type = request.header('content-type')
    if (type !== undefined && bareType(type) !== unknownType) return fixedAnswers.contentType
    const size = lengthOf(request) ?? 0
    const noRoom = noRoomFor(size)
    if (noRoom === undefined) return size > itemMaxBytes ? tooLarge(itemMaxBytes) : undefined
    // Those make room that hold most, and nobody for what is only announced.
    const now = Math.min(size, foreseenMinBytes)
    return arriving.roomForNew(address, now) && noRoom
  }
}

/** A flood of items without tags has this size on the network; its services refuse them. */
const spamBytes = 100_372
/** Smaller items arrive before the payment service could answer. */
const foreseenMinBytes = 262_144

/** The answer to a request for whose bytes there is no memory, or whose memory others need. */
export const tooManyUploads = textAnswer(
  503,
  'Too many uploads come at the same time: try again',
  '\r\nRetry-After: 10',
)

const dropped = textAnswer(
  503,
  'The disk of this service is nearly full, and others who send less need its room',
  '\r\nRetry-After: 60',
)

/** The length of a body; undefined: it comes in chunks. */
export function lengthOf(request: Request): number | undefined {
  const text = request.header('content-length') ?? ''
  return /^\d{1,15}$/.test(text) ? Number(text) : undefined
}

/** An item on its way in. */
class Arrival implements BodySink {
  readonly #reader: ItemReader
  readonly #spool: Spool
  #control: BodyControl | undefined
  readonly #digest: string | undefined
  /** Length of the body, where the client announced it. */
  #declared: number | undefined
  #isOver = false
  #isAdmitted = false
  /** What it holds of the disk; absent while it is small. */
  #holder: Holder | undefined
  readonly #memory: IntakeMemory
  /** The size at which the next check of credits is due, for a body of unknown length. */
  #nextCheckBytes = foreseenMinBytes
  /** Questions that are open: the body waits for their answers. */
  #openChecks = 0
  #checksDone: Promise<unknown> = Promise.resolve()

  constructor(
    private readonly parts: SingleUploadParts,
    private readonly uploader: Uploader,
    private readonly terms: UploadTerms,
    request: Request,
    private readonly resolve: (answer: UploadAnswer) => void,
    private readonly reject: (error: unknown) => void,
  ) {
    this.#spool = new Spool(parts.itemLog, () => this.#resume())
    this.#digest = wholeDigestIn(request, 'content-digest', 'repr-digest')
    this.#reader = new ItemReader(this.#digest !== undefined, parts.blockedOwners)
    this.#memory = new IntakeMemory({
      memory: parts.memory,
      client: () => uploader.address ?? '',
      spool: this.#spool,
      move: () => this.#move(),
    })
  }

  begin(request: Request): void {
    this.#declared = lengthOf(request)
    this.#control = request.stream(this)
    if (this.terms.beforeBody !== undefined) this.#pauseFor(this.terms.beforeBody())
    void this.terms.expired?.then((answer) => this.#end(answer), this.reject)
  }

  /** Pauses the body until `gate` resolves; an answer ends the upload. */
  #pauseFor(gate: Promise<UploadAnswer | undefined>): void {
    this.#openChecks += 1
    this.#control?.pause()
    const decided = gate.then((answer) => {
      this.#openChecks -= 1
      if (answer === undefined) this.#resume()
      else this.#end(answer)
    }, this.reject)
    this.#checksDone = Promise.all([this.#checksDone, decided])
  }

  #resume(): void {
    if (this.#openChecks === 0 && !this.#spool.isBehind && !this.#isOver) this.#control?.resume()
  }

  piece(bytes: Uint8Array): void {
    if (this.#isOver) return
    const refusal = this.#reader.push(bytes)
    if (refusal !== undefined) this.#end(unreadable(refusal))
    else if (this.#reader.sizeBytes > this.parts.itemMaxBytes) this.#end(tooLarge(this.parts.itemMaxBytes))
    else if (this.#reader.isBlocked) this.#end(fixedAnswers.forbidden)
    if (this.#isOver) return
    const isOnDisk = this.#holder !== undefined || this.#reader.sizeBytes > foreseenMinBytes
    const crowded = isOnDisk ? this.#grow(bytes.length) : undefined
    if (crowded !== undefined) this.#end(crowded)
    if (this.#isOver) return
    if (!this.#isAdmitted && this.#reader.header !== undefined && !this.#admit(this.#reader.header)) return
    this.#checkCreditsAgain()
    const written = this.#spool.write(bytes)
    if (isRefusal(written)) this.#end(refusalAnswer(written))
    else if (written === 'behind') this.#control?.pause()
    if (!this.#isOver && !this.#memory.update()) this.#end(tooManyUploads)
  }

  /** There is no memory for it: it goes to the disk, however small it is. */
  #move(): void {
    const crowded = this.#holder === undefined ? this.#grow(0) : undefined
    if (crowded === undefined) this.#spool.spill()
    const { refusal } = this.#spool
    if (crowded !== undefined) this.#end(crowded)
    else if (refusal !== undefined) this.#end(refusalAnswer(refusal))
  }

  /** Counts what is on disk. Others write, too: the disk may be full before a large body is here. */
  #grow(bytes: number): UploadAnswer | undefined {
    const { arriving, noRoomFor } = this.parts
    const isFirst = this.#holder === undefined
    this.#holder ??= arriving.enter({
      client: this.uploader.address,
      hasPlace: false,
      isPaid: false,
      drop: () => this.#end(dropped),
    })
    const more = isFirst ? this.#reader.sizeBytes : bytes
    const crowded = arriving.roomFor(this.#holder, more) ?? noRoomFor()
    if (crowded === undefined) arriving.grow(this.#holder, more, isFirst ? 1 : 0)
    return crowded
  }

  #leave(): void {
    this.#memory.leave()
    if (this.#holder !== undefined) this.parts.arriving.leave(this.#holder)
  }

  /** A body whose length was not announced must be paid for at each size that it reaches. */
  #checkCreditsAgain(): void {
    const { header, sizeBytes } = this.#reader
    if (this.#declared !== undefined || this.terms.purchase !== undefined || header === undefined) return
    if (sizeBytes <= this.#nextCheckBytes) return
    this.#nextCheckBytes = sizeBytes * 2
    this.#pauseFor(this.parts.intake.foresee(header, sizeBytes, this.uploader))
  }

  /** What the item's header decides. False: it is decided. */
  #admit(header: ItemHeader): boolean {
    this.#isAdmitted = true
    const declared = this.#declared
    if (this.terms.purchase !== undefined || declared === undefined) return true
    if (declared === spamBytes && header.tags.length === 0) {
      this.#end(fixedAnswers.forbidden)
      return false
    }
    const crowded = this.parts.intake.crowded(header, declared, this.uploader)
    if (crowded !== undefined) {
      this.#end(crowded)
      return false
    }
    if (declared > foreseenMinBytes)
      this.#pauseFor(this.parts.intake.foresee(header, declared, this.uploader))
    return true
  }

  over(refusal: Refusal | undefined): void {
    if (this.#openChecks === 0) this.#finish(refusal)
    // A small body may be here before its price is known.
    else void this.#checksDone.then(() => this.#finish(refusal))
  }

  #finish(refusal: Refusal | undefined): void {
    if (this.#isOver) return
    const item = refusal ?? this.#reader.finish()
    if (isRefusal(item)) {
      this.#end(refusal === undefined ? unreadable(item) : refusalAnswer(item))
      return
    }
    this.#isOver = true
    this.#memory.pin()
    if (this.#holder !== undefined) this.parts.arriving.setBusy(this.#holder, true)
    const { purchase } = this.terms
    void this.parts.intake
      .take(item, this.#spool, this.uploader, {
        digest: this.#digest,
        ...(purchase === undefined ? {} : { purchase }),
      })
      .then(this.resolve, this.reject)
      .finally(() => {
        this.#leave()
        return this.#spool.drop()
      })
  }

  /** Nothing more of it is wanted. */
  #end(answer: UploadAnswer): void {
    if (this.#isOver) return
    this.#isOver = true
    this.#control?.pause()
    this.#leave()
    void this.#spool.drop()
    this.resolve(answer)
  }
}
