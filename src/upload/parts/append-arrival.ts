import { Gathered } from '../../format/gathered.js'
import { isRefusal, type Refusal } from '../../format/refusal.js'
import type { BodyControl, BodySink, Request } from '../../http/exchange.js'
import { type DigestCheck, digestMismatch } from '../intake/sent-digests.js'
import { refusalAnswer, type UploadAnswer } from '../requests/upload-answers.js'
import type { PartDraft, PartStore } from './part-store.js'

/** Bytes after which what came is put on disk for good: so much is lost at most where the service is killed. */
const partBytes = 33_554_432

/** Where the bytes of a request go. */
export interface AppendTarget {
  readonly files: Pick<PartStore, 'draft'>
  readonly upload: string
  /** Where they begin in the item. */
  readonly offset: number
  /** So many may come. */
  readonly maxBytes: number
  /** Counts bytes and files that come or, with less than 0, do not stay. An answer: there is no room for them. */
  hold(bytes: number, files: number): UploadAnswer | undefined
  /** A part is on disk for good. */
  kept(offset: number, size: number): void
}

/** How a request's bytes ended. All that came before the end is kept. */
export interface Appended {
  /** Undefined: the body was whole. */
  readonly failed?: UploadAnswer
  /** More came than may. */
  readonly exceeds?: true
  /** It is not what its sender has hashed: nothing of it may stay. */
  readonly isWrong?: true
}

/** The answer to a request whose client continued on another connection. */
const superseded: UploadAnswer = { status: 409, text: 'Another request of this upload came' }

/** The bytes of one request on their way to the end of an upload. */
export class AppendArrival implements BodySink {
  #control: BodyControl | undefined
  #target: AppendTarget | undefined
  #early = new Gathered()
  #ended: { readonly refusal: Refusal | undefined } | undefined
  #draft: PartDraft | undefined
  #start = 0
  #came = 0
  #keeping: Promise<void> = Promise.resolve()
  #isLost = false
  #outcome: Appended | undefined
  #resolve: (appended: Appended) => void = () => undefined
  readonly #done = new Promise<Appended>((resolve) => {
    this.#resolve = resolve
  })

  /** `check`: the digest that the client states for the bytes of its request. */
  constructor(private readonly check?: DigestCheck) {}

  /** Nothing is read until `into`, but for what is here already. To be called before the handler first waits. */
  begin(request: Request): void {
    this.#control = request.stream(this)
    this.#control.pause()
  }

  /** Once. Never rejects. */
  into(target: AppendTarget): Promise<Appended> {
    this.#target = target
    this.#start = target.offset
    const early = this.#early.bytes()
    this.#early = new Gathered()
    if (early.length > 0) this.piece(early)
    if (this.#ended !== undefined) this.over(this.#ended.refusal)
    else if (this.#outcome === undefined) this.#control?.resume()
    return this.#done
  }

  /** No more is taken. Resolves when what came is on disk. */
  stop(): Promise<Appended> {
    this.#end({ failed: superseded })
    return this.#done
  }

  piece(bytes: Uint8Array): void {
    if (this.#outcome !== undefined) return
    const target = this.#target
    if (target === undefined) {
      this.#early.add(bytes)
      return
    }
    const fits = bytes.subarray(0, target.maxBytes - this.#came)
    const crowded = fits.length === 0 ? undefined : this.#write(target, fits)
    if (crowded !== undefined) this.#end({ failed: crowded })
    else if (fits.length < bytes.length) this.#end({ exceeds: true })
  }

  #write(target: AppendTarget, bytes: Uint8Array): UploadAnswer | undefined {
    const isFirst = this.#draft === undefined
    const crowded = target.hold(bytes.length, isFirst ? 1 : 0)
    if (crowded !== undefined) return crowded
    const draft = this.#draft ?? target.files.draft(target.upload)
    if (isRefusal(draft)) {
      target.hold(-bytes.length, -1)
      return refusalAnswer(draft)
    }
    this.#draft = draft
    const outcome = draft.write(bytes)
    if (isRefusal(outcome)) {
      target.hold(-bytes.length, 0)
      return refusalAnswer(outcome)
    }
    this.#came += bytes.length
    this.check?.update(bytes)
    if (draft.sizeBytes >= partBytes) {
      this.#control?.pause()
      void this.#keep(target).then(() => this.#outcome === undefined && this.#control?.resume())
    }
    return undefined
  }

  /** The part that comes is whole; parts are kept in their order, so that no hole is ever on disk. */
  #keep(target: AppendTarget): Promise<void> {
    const draft = this.#draft
    if (draft === undefined) return this.#keeping
    const at = this.#start
    const { sizeBytes } = draft
    this.#draft = undefined
    this.#start += sizeBytes
    this.#keeping = this.#keeping.then(async () => {
      const refusal = this.#isLost ? await draft.drop() : await draft.keep(at)
      if (isRefusal(refusal)) this.#lose(refusal)
      if (this.#isLost) target.hold(-sizeBytes, -1)
      else target.kept(at, sizeBytes)
    })
    return this.#keeping
  }

  /** A part could not be kept: those behind it would lie behind a hole. */
  #lose(refusal: Refusal): void {
    this.#isLost = true
    this.#end({ failed: refusalAnswer(refusal) })
  }

  over(refusal: Refusal | undefined): void {
    this.#ended = { refusal }
    if (this.#target === undefined) return
    if (refusal !== undefined) this.#end({ failed: refusalAnswer(refusal) })
    else if (this.#outcome === undefined && this.check?.isRight() === false)
      this.#end({ failed: digestMismatch, isWrong: true })
    else this.#end({})
  }

  #end(outcome: Appended): void {
    if (this.#outcome !== undefined) {
      // The disk has refused what seemed to be whole.
      if (outcome.failed !== undefined && this.#outcome.failed === undefined) this.#outcome = outcome
      return
    }
    this.#outcome = outcome
    this.#control?.pause()
    void this.#finish()
  }

  async #finish(): Promise<void> {
    if (this.#target !== undefined) await this.#keep(this.#target)
    this.#resolve(this.#outcome ?? {})
  }
}
