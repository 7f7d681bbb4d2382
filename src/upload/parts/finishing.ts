import { type Clock, pause } from '../../actor/clock.js'
import type { ItemsElsewhere } from '../../cluster/items-elsewhere.js'
import type { Id } from '../../format/id.js'
import { Assembly, type AssemblyTerms } from '../intake/assembly.js'
import type { ItemIntake } from '../intake/item-intake.js'
import type { SingleUploadParts } from '../intake/single-upload.js'
import { type AcceptedItem, isGone, type Uploads } from '../records/uploads.js'
import {
  diskAnswer,
  fixedAnswers,
  jsonAnswer,
  textAnswer,
  type UploadAnswer,
} from '../requests/upload-answers.js'
import type { Uploader } from '../requests/uploader.js'
import type { HeldRoom } from '../room/held-room.js'
import { AssemblyPlaces, placeKindOf, type ReadingTurn } from './assembly-places.js'
import { chunksSize, gapIn, type LiveUpload, partsKept } from './live-uploads.js'
import { isOver, type MultipartRecord, type Stage } from './multipart-record.js'
import { owing, type PaidParts } from './paid-parts.js'
import { overtaken, type PartRecords } from './part-records.js'
import type { PartStore } from './part-store.js'
import { outcomeOf, uploaderIn } from './upload-outcome.js'

/** After a try that decided nothing; each time twice as long, up to a bound. */
const againMs = { first: 2000, most: 300_000 } as const
/** While another machine puts an upload together, it is looked at so often. */
const elsewhereMs = 400
/** Who has accepted the item of an upload has so long to state it. */
const heldMaxMs = 3_600_000

export interface FinishingParts extends SingleUploadParts {
  readonly intake: ItemIntake
  readonly uploads: Uploads
  readonly records: PartRecords
  readonly files: PartStore
  readonly partsRoom: HeldRoom
  /** Absent: no upload is paid for at its beginning. */
  readonly paid?: PaidParts
  /** What other machines have accepted; absent: there are none. */
  readonly machines?: Pick<ItemsElsewhere, 'has'>
  readonly clock: Clock
}

/** What has the uploads that are not over. */
export interface FinishingHost {
  live(id: string): LiveUpload | undefined
  /** Reads it as all machines have it. */
  load(id: string): Promise<unknown> | undefined
  put(record: MultipartRecord): void
  /** A record as it is put. */
  stamped(record: MultipartRecord): MultipartRecord
  now(): number
  /** It takes no room any more. */
  removeParts(id: string): Promise<void>
  /** The end of the service waits for it. */
  track<T>(work: Promise<T>): Promise<T>
}

/** What became of the bytes of an upload. */
interface Assembled {
  readonly answer: UploadAnswer
  /** The item was paid for otherwise. */
  readonly isUnused: boolean
  /** Another machine has accepted this item. */
  readonly heldItem?: Id
}

const acceptedElsewhere = textAnswer(
  503,
  'Another machine of this service has accepted the item, and gives its receipt soon',
  '\r\nRetry-After: 2',
)

const givenUp = textAnswer(
  410,
  'The upload was given up because others needed its place, and what was paid has become credits: begin it again',
)

const unsure = textAnswer(
  503,
  'It is not known now whether another machine of this service has accepted the item',
  '\r\nRetry-After: 2',
)

/** Makes the item of an upload at its end: once, whoever wants it, and on whichever machine. */
export class Finishing {
  readonly #places: AssemblyPlaces

  constructor(
    private readonly parts: FinishingParts,
    private readonly host: FinishingHost,
    private readonly closing: AbortSignal,
  ) {
    this.#places = new AssemblyPlaces(parts.clock)
  }

  /** Tries until it is decided. */
  finishUntilDecided(id: string, uploader: Uploader): void {
    const live = this.host.live(id)
    if (live === undefined || live.isDriven) return
    live.isDriven = true
    const act = async (): Promise<void> => {
      let waitMs: number = againMs.first
      while (!this.closing.aborted && this.host.live(id) === live) {
        const answer = await this.finish(id, live, uploader)
        if (outcomeOf(answer) !== undefined) break
        await pause(waitMs, this.closing)
        waitMs = Math.min(2 * waitMs, againMs.most)
      }
      live.isDriven = false
    }
    void this.host.track(act())
  }

  /** One at a time: who comes while it runs has its answer, too. */
  finish(id: string, live: LiveUpload, uploader: Uploader): Promise<UploadAnswer> {
    live.attempt ??= this.host.track(this.#finish(id, live, uploader)).finally(() => {
      delete live.attempt
    })
    return live.attempt
  }

  async #finish(id: string, live: LiveUpload, uploader: Uploader): Promise<UploadAnswer> {
    const act = async (turn: ReadingTurn): Promise<UploadAnswer | undefined> => {
      // It was dropped for another while it waited for its place, or cancelled.
      if (this.host.live(id) !== live) return this.#answerOfEnded(id)
      // What is being put together is not dropped for others; what waits for its place or its next try is.
      this.parts.partsRoom.setBusy(live.holder, true)
      const answer = this.#finishClaimed(id, live, uploader, turn).catch(diskAnswer)
      return answer.finally(() => this.parts.partsRoom.setBusy(live.holder, false))
    }
    for (;;) {
      const isPaid = this.parts.records.find(id)?.paid?.facts !== undefined
      const kind = placeKindOf(isPaid, live.holder.bytes)
      const answer = await this.#places.run(kind, live.holder.parties[1], act)
      if (answer !== undefined) return answer
      // Another machine is about it: its answer is the answer here, or it is taken over from it.
      await pause(elsewhereMs, this.closing)
    }
  }

  /** Undefined: another machine puts it together. */
  async #finishClaimed(
    id: string,
    live: LiveUpload,
    uploader: Uploader,
    turn: ReadingTurn,
  ): Promise<UploadAnswer | undefined> {
    const { records } = this.parts
    if (this.closing.aborted) return textAnswer(503, 'The service is ending', '\r\nRetry-After: 5')
    if (await this.#isLeftToOthers(id)) return acceptedElsewhere
    const claimed = await records.claim(id, uploader)
    if (claimed === 'elsewhere') return undefined
    if (claimed === 'over') return this.#answerOfEnded(id)
    try {
      await this.host.load(id)
      // Other parts may have come since: one payment pays for one item.
      const before = records.find(id)
      const item = before && this.#acceptedOf(before)
      if (before !== undefined && item !== undefined)
        return await this.#recordFinalized(before, item.id, false)
      const held = before?.heldItem
      if (before !== undefined && held !== undefined && this.#has(held))
        return await this.#recordFinalized(before, held, true)
      return await this.#recordOutcome(id, await this.#assembled(id, live, uploader, turn))
    } catch (error) {
      await records.release(id).catch(diskAnswer)
      throw error
    }
  }

  /** Ends an upload that is paid for before its item is whole: what was paid becomes credits. */
  async giveUp(id: string): Promise<void> {
    const { records } = this.parts
    await this.host.load(id)
    const record = records.find(id)
    // Where its payment may still be settled, or its item may be accepted, it stays: `host` counts it again.
    if (record?.paid?.facts === undefined || isOver(record) || record.begunItem !== undefined) return
    if (this.endAccepted(record) !== undefined) return
    const claimed = await records.claim(id, uploaderIn(record))
    if (claimed !== 'ours') return
    const isBegun = records.find(id)?.begunItem !== undefined
    if (isBegun) await records.release(id)
    else await this.#recordOutcome(id, { answer: givenUp, isUnused: true })
  }

  #has(item: Id): boolean {
    const known = this.parts.uploads.find(item)
    return known !== undefined && !isGone(known)
  }

  /** Another machine has accepted the item: nothing is to be done here. */
  async #isLeftToOthers(id: string): Promise<boolean> {
    const { records, uploads } = this.parts
    if (records.find(id)?.heldItem === undefined) return false
    await this.host.load(id)
    const record = records.find(id)
    if (record?.heldItem === undefined || isOver(record)) return false
    const isHere = this.#has(record.heldItem) || uploads.around(record.heldItem) !== undefined
    return !isHere && this.host.now() - record.changedMs < heldMaxMs
  }

  /**
   * Whether an item is to be left to the machine that has accepted it. It is charged there, whatever it costs. Undefined: it is
   * not known now.
   */
  async #isAcceptedElsewhere(id: string, item: Id): Promise<boolean | undefined> {
    const { records, machines } = this.parts
    if (machines === undefined || !records.isShared || this.#has(item)) return false
    if (records.find(id)?.heldItem !== undefined) return false
    const isElsewhere = await machines.has(item)
    // In a bundle that is not paid for yet: that is looked at where the item is charged.
    return isElsewhere === 'selling' ? false : isElsewhere
  }

  /** The answer of an upload that is over. */
  async #answerOfEnded(id: string): Promise<UploadAnswer> {
    const record = this.parts.records.find(id)
    if (record?.state === 'finalized') return this.receipt(record)
    return record?.answer ?? textAnswer(404, 'There is no such upload any more')
  }

  async #assembled(id: string, live: LiveUpload, uploader: Uploader, turn: ReadingTurn): Promise<Assembled> {
    const { records, paid, files } = this.parts
    live.stage = 'ASSEMBLING'
    await partsKept(live)
    const offsets = [...live.chunks.keys()].sort((a, b) => a - b)
    // Less than what is held, where a request still brings a part that comes too late.
    const sizeBytes = chunksSize(live.chunks)
    const unfit = unfitParts(live, records.find(id)?.paid?.bytes)
    if (unfit !== undefined) return { answer: unfit, isUnused: true }
    let isUnused = false
    let heldItem: Id | undefined
    const charge = paid?.charge(records.find(id), sizeBytes, () => {
      isUnused = true
    })
    const moved = async (stage: Stage): Promise<UploadAnswer | undefined> => {
      live.stage = stage
      return (await records.confirm(id, stage)) ? undefined : overtaken
    }
    const terms: AssemblyTerms = {
      // The last moment at which a machine that stood still notices that another one has gone on.
      onVerified: async (item: Id) => {
        const stopped = await moved('FINALIZING').catch(diskAnswer)
        if (stopped !== undefined) return stopped
        const isHeld = await this.#isAcceptedElsewhere(id, item)
        if (isHeld === undefined) return unsure
        if (!isHeld) return charge && (await this.#begin(id, item).catch(diskAnswer))
        heldItem = item
        return acceptedElsewhere
      },
      digest: records.find(id)?.appended?.digest,
      sizeBytes,
      turn,
      ...(charge === undefined ? {} : { charge }),
    }
    const validating = (): void => {
      live.stage = 'VALIDATING'
    }
    const sources = await files.sources(id, offsets)
    const answer = await new Assembly(this.parts).run(sources, uploader, validating, terms)
    return { answer, isUnused, ...(heldItem === undefined ? {} : { heldItem }) }
  }

  /** Other machines know from now on which item may be accepted for what was paid. An answer: that cannot be written. */
  async #begin(id: string, begunItem: Id): Promise<UploadAnswer | undefined> {
    const { records } = this.parts
    const record = records.find(id)
    if (!records.isShared || record === undefined || record.begunItem === begunItem) return undefined
    this.host.put({ ...record, state: 'asked', begunItem })
    await records.written(id)
    return undefined
  }

  async #recordOutcome(id: string, { answer, isUnused, heldItem }: Assembled): Promise<UploadAnswer> {
    const { records, paid } = this.parts
    const outcome = outcomeOf(answer)
    const record = records.find(id)
    if (outcome === undefined || record === undefined) {
      // From now on all machines look after it, and the one that has the item ends it.
      const left = heldItem && record && this.host.stamped({ ...record, state: 'asked', heldItem })
      await records.release(id, left)
      return answer
    }
    if (outcome === 'finalized') {
      const { id: itemId } = answer.json as { id: Id }
      return this.#recordFinalized(record, itemId, isUnused, answer)
    }
    const { answer: _, uploader: __, ...clean } = record
    const ended = this.host.stamped(owing({ ...clean, state: outcome, answer }, 'refund'))
    if (!(await records.release(id, ended))) return this.#lost(id)
    paid?.settleOwed(record)
    // More credits may come: it can be finalized again.
    if (outcome !== 'underfunded') await this.host.removeParts(id)
    return answer
  }

  /** The item is accepted: its receipt leaves when no other machine can give another one. `answer`: with the receipt. */
  async #recordFinalized(
    record: MultipartRecord,
    itemId: Id,
    isUnused: boolean,
    answer?: UploadAnswer,
  ): Promise<UploadAnswer> {
    const { records, paid } = this.parts
    const { id } = record
    const given = answer ?? (await this.receipt({ ...record, itemId }))
    const receipt = records.isShared ? { receipt: given.json } : {}
    const ended = { ...this.#ended(record, itemId, isUnused), ...receipt }
    if (!(await records.release(id, this.host.stamped(ended)))) return this.#lost(id)
    paid?.settleOwed(record)
    await this.host.removeParts(id)
    return { ...given, status: 200 }
  }

  /** Another machine has taken it over: what it has decided counts. */
  async #lost(id: string): Promise<UploadAnswer> {
    await this.host.load(id)
    const record = this.parts.records.find(id)
    return record === undefined || !isOver(record) ? overtaken : this.#answerOfEnded(id)
  }

  /** `isUnused`: the item was paid for otherwise. */
  #ended(record: MultipartRecord, itemId: Id, isUnused: boolean): MultipartRecord {
    const { answer: _, uploader: __, ...clean } = record
    const spent = this.parts.uploads.find(itemId)?.place.sizeBytes ?? 0
    return owing({ ...clean, state: 'finalized', itemId }, isUnused ? 'refund' : { spent })
  }

  #acceptedOf(record: MultipartRecord): AcceptedItem | undefined {
    const isOpen = record.paid !== undefined && !isOver(record)
    return isOpen ? this.parts.uploads.ofReservation(record.id) : undefined
  }

  /**
   * Ends an upload whose item was accepted, and whose own record does not state it: a stop came in between, or the answer was
   * lost. The record of the item decides what becomes of the money. Undefined: no item was accepted for what was paid.
   */
  endAccepted(record: MultipartRecord): MultipartRecord | undefined {
    // With others only who has claimed it decides.
    const item = this.parts.records.isShared ? undefined : this.#acceptedOf(record)
    if (item === undefined) return undefined
    const ended = this.#ended(record, item.id, false)
    this.host.put(ended)
    this.parts.paid?.settleOwed(record)
    void this.host.track(this.host.removeParts(record.id).catch(diskAnswer))
    return ended
  }

  /** The same content each time: only the lists of hosts may have changed. */
  async receipt({ itemId, receipt }: MultipartRecord): Promise<UploadAnswer> {
    if (receipt !== undefined) return jsonAnswer(200, receipt)
    const item = itemId === undefined ? undefined : this.parts.uploads.find(itemId)
    if (item === undefined) return fixedAnswers.unknownItem
    return jsonAnswer(200, await this.parts.intake.receipt(item))
  }
}

/** Why parts make no item, or none that was paid for: they changed when their end was ordered already. */
function unfitParts({ chunks }: LiveUpload, paidBytes = Infinity): UploadAnswer | undefined {
  const gap = gapIn(chunks)
  if (gap !== undefined && chunks.size > 0)
    return textAnswer(400, `The upload is not whole: byte ${gap} is not in exactly one part`)
  if (chunksSize(chunks) <= paidBytes) return undefined
  return textAnswer(400, `The upload is larger than the ${paidBytes} bytes that were paid for`)
}
