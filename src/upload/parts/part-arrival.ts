import { isRefusal, type Refusal } from '../../format/refusal.js'
import type { BodyControl, BodySink, Request } from '../../http/exchange.js'
import { refusalAnswer, type UploadAnswer } from '../requests/upload-answers.js'
import type { PartDraft } from './part-store.js'

/** Counts bytes and files that come or, with less than 0, do not stay. An answer: there is no room for them. */
export type HoldBytes = (bytes: number, files: number) => UploadAnswer | undefined

/** One part on its way in: from the socket to its file. What has come is counted, and not what was announced. */
export class PartArrival implements BodySink {
  #control: BodyControl | undefined
  #failure: UploadAnswer | undefined
  #behind: Promise<void> | undefined
  #heldBytes = 0
  #isOver = false
  #resolve: (arrival: PartArrival | UploadAnswer) => void = () => undefined

  constructor(
    private readonly draft: PartDraft,
    private readonly hold: HoldBytes,
  ) {}

  /** Resolves with itself when all is in the file, and with an answer where nothing is kept. */
  take(request: Request): Promise<PartArrival | UploadAnswer> {
    const arrived = new Promise<PartArrival | UploadAnswer>((resolve) => {
      this.#resolve = resolve
    })
    this.#control = request.stream(this)
    return arrived
  }

  /** Bytes that came. */
  get sizeBytes(): number {
    return this.draft.sizeBytes
  }

  piece(bytes: Uint8Array): void {
    if (this.#isOver) return
    const crowded = this.hold(bytes.length, this.#heldBytes === 0 ? 1 : 0)
    if (crowded !== undefined) {
      this.#fail(crowded)
      return
    }
    this.#heldBytes += bytes.length
    const outcome = this.draft.write(bytes)
    if (isRefusal(outcome)) this.#fail(refusalAnswer(outcome))
    else if (outcome !== undefined) {
      this.#control?.pause()
      this.#behind = outcome.then((failure) => {
        if (isRefusal(failure)) this.#fail(refusalAnswer(failure))
        else if (!this.#isOver) this.#control?.resume()
      })
    }
  }

  /** The rest is not waited for. */
  #fail(answer: UploadAnswer): void {
    this.#failure ??= answer
    this.#control?.pause()
    void this.#end()
  }

  over(refusal: Refusal | undefined): void {
    if (refusal !== undefined) this.#failure ??= refusalAnswer(refusal)
    void this.#end()
  }

  async #end(): Promise<void> {
    if (this.#isOver) return
    this.#isOver = true
    await this.#behind
    const failure = this.#failure
    if (failure !== undefined) await this.drop()
    this.#resolve(failure ?? this)
  }

  /** Same as `PartDraft.isPlaced`. */
  get isPlaced(): boolean {
    return this.draft.isPlaced === true
  }

  /** Never rejects. */
  async keep(offset: number): Promise<Refusal | undefined> {
    const refusal = await this.draft.keep(offset)
    if (isRefusal(refusal) && !this.isPlaced) this.#release()
    return refusal
  }

  async drop(): Promise<void> {
    this.#release()
    await this.draft.drop()
  }

  #release(): void {
    if (this.#heldBytes > 0) this.hold(-this.#heldBytes, -1)
    this.#heldBytes = 0
  }
}
