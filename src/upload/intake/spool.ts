import { Gathered } from '../../format/gathered.js'
import { isRefusal, type Refusal, refuse } from '../../format/refusal.js'
import type { DurableLog } from '../../store/segments/durable-log.js'
import type { LogDraft } from '../../store/segments/log-draft.js'
import type { LogPlace } from '../../store/segments/log-file.js'
import type { RecordDigest } from '../../store/segments/segment-record.js'

/** The bytes of one item while it comes: in memory where it is small, else in the log as a draft. */
export class Spool {
  readonly #draft: LogDraft
  /** What came while the disk was behind, in its order. */
  #late = new Gathered()
  #refusal: Refusal | undefined
  #behind: Promise<void> | undefined
  #isOver = false

  /** `onRoom`: more may come again. */
  constructor(
    itemLog: Pick<DurableLog, 'draft'>,
    private readonly onRoom: () => void,
  ) {
    this.#draft = itemLog.draft()
  }

  /** Copies the bytes. `behind`: the disk is behind, no more until `onRoom`. A refusal: the disk takes nothing of the item. */
  write(bytes: Uint8Array): 'taken' | 'behind' | Refusal {
    if (this.#refusal !== undefined) return this.#refusal
    if (this.#isOver) return 'taken'
    if (this.#behind !== undefined) {
      // What was on its way before the pause: of a body in chunks some thousand pieces.
      this.#late.add(bytes)
      return 'behind'
    }
    const outcome = this.#draft.write(bytes)
    if (outcome instanceof Promise) {
      this.#behind = this.#catchUp(outcome)
      return 'behind'
    }
    this.#refusal = outcome
    return outcome ?? 'taken'
  }

  /** Until all that came is written, nothing is written past it. */
  async #catchUp(first: Promise<Refusal | undefined>): Promise<void> {
    let outcome = await first
    while (this.#late.sizeBytes > 0) {
      const next = this.#late.bytes()
      this.#late = new Gathered()
      if (!this.#isOver && !isRefusal(outcome)) outcome = await this.#draft.write(next)
    }
    this.#refusal ??= outcome
    this.#behind = undefined
    this.onRoom()
  }

  /** What waits in memory goes to the disk at once, unless it was appended or dropped. Where the disk refuses it, it is lost. */
  spill(): void {
    if (this.#isOver || this.memoryBytes === 0) return
    const late = this.#late.bytes()
    this.#late = new Gathered()
    const refusal = this.#draft.spill(late)
    this.#refusal ??= refusal
  }

  /** What waits in memory. */
  get memoryBytes(): number {
    return this.#draft.memoryBytes + this.#late.roomBytes
  }

  /** More is not taken before `onRoom`. */
  get isBehind(): boolean {
    return this.#behind !== undefined
  }

  /** Why the disk does not take the item, as far as is known now: also of what was written while it was behind. */
  get refusal(): Refusal | undefined {
    return this.#refusal
  }

  /**
   * Appends all bytes to the upload log; they are durable when it resolves. `digest`: of them; `meta`: the record of the item;
   * `until`: see `LogDraft.finish`.
   */
  async appendToLog(
    digest: RecordDigest,
    meta: Uint8Array,
    until?: Promise<unknown>,
  ): Promise<LogPlace | Refusal> {
    while (this.#behind !== undefined) await this.#behind
    if (this.#isOver) return refuse('defect', 'self', 'an upload was appended after it was dropped')
    if (this.#refusal !== undefined) return this.#refusal
    this.#isOver = true
    return this.#draft.finish(digest, meta, until)
  }

  /** Removes what was not appended. May be called at any time. */
  async drop(): Promise<void> {
    if (this.#isOver) return
    this.#isOver = true
    await this.#behind
    await this.#draft.discard()
  }
}
