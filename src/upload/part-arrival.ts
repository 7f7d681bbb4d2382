import { isRefusal, type Refusal } from '../format/refusal.js'
import type { BodyFlow, BodySink, Request } from '../http/exchange.js'
import { answerOf, type UploadAnswer } from './answers.js'
import type { PartDraft } from './part-files.js'

/** One part on its way in: from the socket to its file. */
export class PartArrival implements BodySink {
  #flow: BodyFlow | undefined
  #failure: Refusal | undefined
  #behind: Promise<void> | undefined
  #resolve: (arrival: PartArrival | UploadAnswer) => void = () => undefined

  constructor(private readonly draft: PartDraft) {}

  /** Resolves with itself when all is in the file, and with an answer where nothing is kept. */
  take(request: Request): Promise<PartArrival | UploadAnswer> {
    const arrived = new Promise<PartArrival | UploadAnswer>((resolve) => {
      this.#resolve = resolve
    })
    this.#flow = request.stream(this)
    return arrived
  }

  piece(bytes: Uint8Array): void {
    if (this.#failure !== undefined) return
    const outcome = this.draft.write(bytes)
    if (outcome instanceof Promise) {
      this.#flow?.pause()
      this.#behind = outcome.then((failure) => {
        this.#failure ??= failure
        this.#flow?.resume()
      })
    } else this.#failure = outcome
  }

  over(refusal: Refusal | undefined): void {
    void this.#end(refusal)
  }

  async #end(refusal: Refusal | undefined): Promise<void> {
    await this.#behind
    const failure = refusal ?? this.#failure
    if (isRefusal(failure)) {
      await this.draft.drop()
      this.#resolve(answerOf(failure))
    } else this.#resolve(this)
  }

  /** Never rejects. */
  keep(offset: number): Promise<Refusal | undefined> {
    return this.draft.keep(offset)
  }

  drop(): Promise<void> {
    return this.draft.drop()
  }
}
