import type { Clock } from '../actor/clock.js'
import { encodeBase64url } from '../format/base64url.js'
import type { Id } from '../format/id.js'
import { isRefusal, type Refusal } from '../format/refusal.js'
import { plainTagValue } from '../format/tag.js'
import { normalizedAddress } from '../proof/address.js'
import type { LogPlace } from '../store/segments/log-file.js'
import { jsonAnswer, said, textAnswer, toldAs, type UploadAnswer } from './answers.js'
import type { Charged, Charging, ItemCharge } from './charging.js'
import type { ItemAnnouncer } from './item-announcer.js'
import type { ReadItem } from './item-reader.js'
import { type Receipt, type ReceiptTerms, receiptMessage, receiptOf } from './receipt.js'
import type { Sharing } from './sharing.js'
import type { Signing } from './signing.js'
import type { Uploader } from './uploader.js'
import type { AcceptedItem, LoggedUpload, Uploads } from './uploads.js'
import type { Verdicts } from './verdicts.js'

/** The bytes of an item that was read to its end. */
export interface Spooled {
  /** Puts them into the log for good (`Spool.keep`). */
  keep(digest: Uint8Array, meta: Uint8Array): Promise<LogPlace | Refusal>
}

export interface AcceptorParts {
  readonly uploads: Uploads
  readonly verdicts: Pick<Verdicts, 'verdict'>
  readonly charging: Charging
  /** Absent: no credits are kept, and none can be shared. */
  readonly sharing?: Pick<Sharing, 'act'>
  readonly announcer: Pick<ItemAnnouncer, 'announce'>
  readonly signing: Pick<Signing, 'receipt'>
  readonly terms: ReceiptTerms
  /** Height of the chain's tip; undefined: nobody has ever told. */
  readonly height: () => number | undefined
  readonly clock: Clock
}

/** An item is permanent within so many blocks, or the service has broken its word. */
const deadlineBlocks = 200

/** Decides about items that were read to their end: signature, money, disk, catalog, receipt, in this order. */
export class Acceptor {
  /** By id: what two who send the same item at once both wait for. */
  readonly #underWay = new Map<Id, Promise<UploadAnswer>>()
  readonly #keeping: { readonly item: AcceptedItem; readonly charge: Charged; readonly done: () => void }[] =
    []
  #isKeeping = false

  constructor(private readonly parts: AcceptorParts) {}

  /** `onHeld`: its owner signed it. Never rejects but for bugs. Nothing was charged where the answer is no receipt. */
  async accept(
    item: ReadItem,
    spooled: Spooled,
    uploader: Uploader,
    onHeld?: () => void,
  ): Promise<UploadAnswer> {
    const { header, message } = item
    const { id, signatureType, owner, signature } = header
    const held = await this.parts.verdicts.verdict({ id, signatureType, owner, signature, message })
    if (held !== true) return said.invalidItem
    onHeld?.()
    // Whoever comes second waits for the first; where that one fails it is their turn.
    for (let first = this.#underWay.get(id); first !== undefined; first = this.#underWay.get(id)) await first
    // Nothing is waited for between this look and the next entry: so only one takes it.
    const known = this.parts.uploads.find(id)
    if (known !== undefined) return this.#known(known)
    const outcome = this.#take(item, spooled, uploader)
    this.#underWay.set(id, outcome)
    try {
      return await outcome
    } finally {
      this.#underWay.delete(id)
    }
  }

  async #take(item: ReadItem, spooled: Spooled, uploader: Uploader): Promise<UploadAnswer> {
    const { charging, height, clock, announcer } = this.parts
    const now = height()
    if (now === undefined)
      return textAnswer(503, 'No node has told the height of the chain yet', '\r\nRetry-After: 5')
    const { header, sizeBytes, digest } = item
    const charge = await charging.charge(header, sizeBytes, uploader)
    if (!isCharge(charge)) return toldAs(charge)
    // Before the item is kept: one that could not do what it says must not be taken.
    const shared = await this.parts.sharing?.act(header, uploader)
    if (shared !== undefined && !('done' in shared)) {
      await charge.giveBack()
      return shared
    }
    const contentType = plainTagValue(header.tags, 'Content-Type')
    const meta: LoggedUpload = {
      ...{ id: header.id, headerSize: header.headerSize, owner: normalizedAddress(header.owner) },
      ...{ receivedMs: clock.now(), deadlineHeight: now + deadlineBlocks, winc: charge.winc },
      ...(contentType === undefined ? {} : { contentType }),
      digest: encodeBase64url(digest),
    }
    const place = await spooled.keep(item.wholeDigest, Buffer.from(JSON.stringify(meta)))
    if (isRefusal(place)) {
      await charge.giveBack()
      return toldAs(place)
    }
    const accepted: AcceptedItem = { ...meta, place }
    const [receipt] = await Promise.all([
      this.receipt(accepted),
      this.#keep(accepted, charge).then(() => announcer.announce({ header, sizeBytes, digest })),
    ])
    charging.settle(accepted.id, charge)
    return jsonAnswer(200, { ...receipt, ...shared?.done })
  }

  /** Writes down what was accepted, all that comes together in one transaction. The log has it already, for good. */
  #keep(item: AcceptedItem, charge: Charged): Promise<void> {
    return new Promise((done) => {
      this.#keeping.push({ item, charge, done })
      if (!this.#isKeeping) void this.#keepAll()
    })
  }

  async #keepAll(): Promise<void> {
    this.#isKeeping = true
    await null
    while (this.#keeping.length > 0) {
      const group = this.#keeping.splice(0)
      const write = (): void => {
        for (const { item, charge } of group) charge.keep(item.id)
      }
      this.parts.uploads.accept(
        group.map(({ item }) => item),
        write,
      )
      for (const { done } of group) done()
    }
    this.#isKeeping = false
  }

  async #known(item: AcceptedItem): Promise<UploadAnswer> {
    return jsonAnswer(202, await this.receipt(item))
  }

  /** The same receipt each time: the signature has no chance in it. */
  async receipt(item: AcceptedItem): Promise<Receipt> {
    const { signing, terms } = this.parts
    const signed = { ...item, timestamp: item.receivedMs }
    return receiptOf(signed, await signing.receipt(receiptMessage(signed)), terms)
  }
}

function isCharge(value: ItemCharge): value is Charged {
  return 'giveBack' in value
}
