import { type Clock, pause } from '../../actor/clock.js'
import { FreeShares, type ReleaseShare } from '../../actor/free-shares.js'
import { EngineAway } from '../../cluster/engine-away.js'
import type { ItemsElsewhere } from '../../cluster/items-elsewhere.js'
import { isRefusal, type Refusal, refuse } from '../../format/refusal.js'
import type { Request } from '../../http/exchange.js'
import { type CreditsPort, type UsdcPort, usdcShare } from '../../payment/credits-port.js'
import { isDiskError } from '../../store/disk-error.js'
import type { ItemCharge } from '../charging/charging.js'
import { onWayMs, paymentOutcome, settlementPending } from '../charging/payment-outcome.js'
import type { PaidFacts, Purchase, Unsettled } from '../charging/sales.js'
import type { Uploads } from '../records/uploads.js'
import { jsonAnswer, tooLarge, type UploadAnswer } from '../requests/upload-answers.js'
import { addressShape } from '../requests/uploader.js'
import type { BroughtPayment, UsdcUploads } from '../usdc/usdc-uploads.js'
import { chunkBytes, readChunkBytes } from './chunk-sizes.js'
import type { MultipartRecord, PaidUpload } from './multipart-record.js'
import type { PartRecords } from './part-records.js'
import { uploadIdOf } from './upload-secret.js'

export interface PaidPartsParts {
  readonly usdcUploads: Pick<UsdcUploads, 'readPayment' | 'look' | 'offer' | 'track' | 'purchase'>
  readonly usdc: Pick<UsdcPort, 'finish' | 'outcome'>
  readonly credits: Pick<CreditsPort, 'refund'>
  readonly records: PartRecords
  readonly uploads: Pick<Uploads, 'ofReservation'>
  /** What other machines have accepted; absent: there are none. */
  readonly machines?: Pick<ItemsElsewhere, 'receiptOf'>
  /** Makes ids of uploads out of payments (`uploadSecret`). */
  readonly secret: Uint8Array
  readonly itemMaxBytes: number
  readonly clock: Clock
}

/** Where uploads are begun, and given up. */
export interface UploadBeginnings {
  /** Address range of the client; undefined: this machine. */
  readonly client: string | undefined
  /** Makes room for an upload and writes it down; an answer: there is none. */
  begin(
    terms: Pick<MultipartRecord, 'chunkBytes' | 'paid'> & { readonly id?: string },
  ): MultipartRecord | UploadAnswer
  readonly open: UndecidedUploads
}

/** The uploads whose payments are watched. */
export interface UndecidedUploads {
  drop(id: string): void
  /** Whether something was sent for it to any machine, or it is over. Rejects where the engine does not answer. */
  isUsed(id: string): Promise<boolean>
  /** The payment of an upload was settled, as its record states. */
  decided(id: string): void
}

const againMs = 2000
/** Uploads whose payments are not decided, of all clients and of one: they take places that nobody has paid for. */
const [movingMax, movingEachMax] = [512, 32] as const
const noStore = '\r\nCache-Control: no-store'

/** A payment names its upload again for so long: for a client that has lost the answer. */
const namedAgainMs = 600_000

const begunBefore = jsonAnswer(
  409,
  { error: 'upload_begun', message: 'this payment began an upload that its client goes on with by its id' },
  noStore,
)

/** An upload whose payment is not decided. */
interface UndecidedPayment {
  readonly leave: ReleaseShare
  readonly open: UndecidedUploads
  /** Requests that bring the payment now. */
  requests: number
  /** When the last order ended of which nobody knows whether it has arrived, by the monotonic clock. Absent: all are answered. */
  doubtMs: number | undefined
}

const tooManyMoving = jsonAnswer(
  429,
  {
    error: 'too_many_payments',
    message: 'payments of this network are being settled: wait for some of them',
  },
  '\r\nRetry-After: 5',
)

/**
 * Uploads in parts that are paid for in USDC: at their beginning, by the size that is announced there. Parts beyond it are
 * refused; what is paid and not used becomes credits.
 */
export class PaidParts {
  readonly #closing = new AbortController()
  readonly #underWay = new Map<string, Promise<void>>()
  readonly #undecided = new Map<string, UndecidedPayment>()
  readonly #places = new FreeShares(movingMax, movingEachMax)
  #checking: Promise<void> | undefined

  constructor(private readonly parts: PaidPartsParts) {}

  /** Undefined: it is not to be paid for in USDC. */
  async create(request: Request, beginnings: UploadBeginnings): Promise<UploadAnswer | undefined> {
    const { usdcUploads, itemMaxBytes } = this.parts
    const query = new URLSearchParams(request.query)
    const total = query.get('totalBytes')
    if (total === null) return undefined
    const bytes = /^[1-9]\d{0,14}$/.test(total) ? Number(total) : undefined
    const size = readChunkBytes(query.get('chunkSize'))
    if (bytes === undefined) return jsonAnswer(400, { error: 'Invalid totalBytes' })
    if (bytes > itemMaxBytes) return tooLarge(itemMaxBytes)
    if (size === undefined)
      return jsonAnswer(400, { error: 'Invalid chunk size', min: chunkBytes.min, max: chunkBytes.max })
    const address = query.get('address') ?? undefined
    if (address !== undefined && !addressShape.test(address))
      return jsonAnswer(400, { error: 'Invalid address' })
    const brought = usdcUploads.readPayment(request, bytes)
    if (brought !== undefined)
      return 'status' in brought ? brought : this.#paid(brought, size, address, beginnings)
    const offer = await usdcUploads.offer(request, bytes)
    // The payment service sells nothing for USDC: credits pay in the end.
    return offer.status === 404 ? undefined : offer
  }

  async #paid(
    brought: BroughtPayment,
    size: number,
    address: string | undefined,
    { client, begin, open }: UploadBeginnings,
  ): Promise<UploadAnswer> {
    const { records, usdcUploads } = this.parts
    const { bytes } = brought.order
    const id = uploadIdOf(this.parts.secret, brought.name)
    await records.load(id)
    const purchase = usdcUploads.purchase(brought, () => id, { address })
    const known = records.find(id)
    if (known !== undefined && known.paid?.bytes !== bytes) return purchase.refuse('used')
    // A payment that has moved stands on the chain with all that was signed: whoever reads it there could bring it again. Its
    // client is known by its address, and has no use for the answer once it has sent something. An address may change, so
    // nobody else gets an offer to pay again.
    const isOther =
      known !== undefined &&
      (known.client !== client || (known.paid?.signed ?? purchase.signed) !== purchase.signed)
    if (known?.paid?.facts !== undefined) {
      const { paidMs = known.createdMs } = known.paid
      const isOld = this.parts.clock.now() - paidMs > namedAgainMs
      return isOther || isOld || (await open.isUsed(id)) ? begunBefore : this.#created(known)
    }
    if (isOther) return settlementPending
    const tracked = usdcUploads.track(brought)
    try {
      // What is paid for makes way only for its like: so nothing begins that no money will follow.
      const worthless = known === undefined ? await usdcUploads.look(brought, bytes, tracked) : undefined
      if (worthless !== undefined) return worthless
      const isKnown = records.find(id) !== undefined
      const undecided = this.#undecidedOf(id, client, open, isKnown)
      if (undecided === undefined) return tooManyMoving
      undecided.requests += 1
      try {
        const paid: PaidUpload = { payment: brought.name, bytes, signed: purchase.signed }
        // Written down before the money moves: a kill in between leaves word of what is to be refunded.
        const begun = records.find(id) ?? begin({ id, chunkBytes: size, paid })
        return 'status' in begun ? begun : await this.#settled(id, paid, purchase, undecided)
      } finally {
        this.#requestEnded(id, undecided)
      }
    } finally {
      tracked.end()
    }
  }

  /** Moves the money, and begins the upload with it. */
  async #settled(
    id: string,
    paid: PaidUpload,
    purchase: Pick<Purchase, 'pay'>,
    undecided: UndecidedPayment,
  ): Promise<UploadAnswer> {
    await this.parts.records.written(id)
    const { clock } = this.parts
    const facts = await purchase.pay(id).catch((error: unknown) => {
      undecided.doubtMs = clock.monotonic()
      throw error
    })
    if (!('answer' in facts)) return this.#begun(id, { ...paid, facts })
    // That we were busy does not state that anything may move.
    if (facts.isOpen && facts.isUnsent !== true) undecided.doubtMs = clock.monotonic()
    if (facts.isOpen || undecided.doubtMs === undefined) return facts.answer
    // Validity and prices end while an earlier order settles: only the record of the payment tells that nothing can move.
    const became = await this.#became(id, paid, undecided)
    if (!('answer' in became)) return this.#begun(id, { ...paid, facts: became })
    return became.isOpen ? became.answer : facts.answer
  }

  /** What became of the payment by all orders so far. */
  #became(
    id: string,
    { payment, bytes }: PaidUpload,
    { requests, doubtMs }: UndecidedPayment,
  ): Promise<PaidFacts | Unsettled> {
    const { usdc, clock } = this.parts
    const isDoubted = doubtMs !== undefined && clock.monotonic() - doubtMs < onWayMs
    return paymentOutcome(usdc, { payment, itemId: id, bytes }, requests > 1 || isDoubted)
  }

  async #begun(id: string, paid: PaidUpload): Promise<UploadAnswer> {
    const record = this.parts.records.find(id)
    if (record === undefined) return jsonAnswer(503, { error: 'try again' }, '\r\nRetry-After: 2')
    const ended = paidBy(record, paid, this.parts.clock.now())
    this.parts.records.put(ended)
    return this.#created(ended)
  }

  /** Undefined: too many of this client, its network or all are not decided. `isKnown`: it was begun before. */
  #undecidedOf(
    id: string,
    client: string | undefined,
    open: UndecidedUploads,
    isKnown: boolean,
  ): UndecidedPayment | undefined {
    const known = this.#undecided.get(id)
    if (known !== undefined) return known
    // One that was begun has its place already: by an earlier process, or on another machine.
    const leave = isKnown ? this.#places.force(client ?? '') : this.#places.take(client ?? '')
    if (typeof leave === 'string') return undefined
    const doubtMs = isKnown ? this.parts.clock.monotonic() : undefined
    const undecided = { leave, open, requests: 0, doubtMs }
    this.#undecided.set(id, undecided)
    return undecided
  }

  /** A request is over. What no money can follow is gone with the last one; else it is looked at until it is decided. */
  #requestEnded(id: string, undecided: UndecidedPayment): void {
    undecided.requests -= 1
    if (undecided.requests > 0 || this.#undecided.get(id) !== undecided) return
    if (!this.#isUnpaid(id)) this.#forgetUndecided(id, undecided)
    else if (undecided.doubtMs === undefined) {
      this.#forgetUndecided(id, undecided)
      undecided.open.drop(id)
    } else this.#startChecks()
  }

  #isUnpaid(id: string): boolean {
    const paid = this.parts.records.find(id)?.paid
    return paid !== undefined && paid.facts === undefined && !isOwed(paid)
  }

  #forgetUndecided(id: string, undecided: UndecidedPayment): void {
    undecided.leave()
    if (this.#undecided.get(id) === undecided) this.#undecided.delete(id)
    undecided.open.decided(id)
  }

  /** An upload that was left before its payment was decided: it is looked at until it is. */
  watchPayment({ id, client }: MultipartRecord, open: UndecidedUploads): void {
    if (this.#undecided.has(id) || !this.#isUnpaid(id)) return
    this.#undecidedOf(id, client, open, true)
    this.#startChecks()
  }

  #startChecks(): void {
    if (this.#closing.signal.aborted) return
    this.#checking ??= this.#checkAll().finally(() => {
      this.#checking = undefined
      // One may have come since the last look.
      if (this.#undecided.size > 0) this.#startChecks()
    })
  }

  async #checkAll(): Promise<void> {
    const { signal } = this.#closing
    while (this.#undecided.size > 0 && !signal.aborted) {
      await pause(againMs, signal)
      for (const [id, undecided] of this.#undecided)
        if (undecided.requests === 0 && !signal.aborted) await this.#check(id, undecided)
    }
  }

  async #check(id: string, undecided: UndecidedPayment): Promise<void> {
    const { records, clock } = this.parts
    const paid = records.find(id)?.paid
    if (paid === undefined || !this.#isUnpaid(id)) return this.#forgetUndecided(id, undecided)
    const became = await this.#became(id, paid, undecided)
    const record = records.find(id)
    if (undecided.requests > 0 || record === undefined || !this.#isUnpaid(id)) return
    if (!('answer' in became)) {
      records.put(paidBy(record, { ...paid, facts: became }, clock.now()))
      return this.#forgetUndecided(id, undecided)
    }
    if (became.isOpen) return
    this.#forgetUndecided(id, undecided)
    undecided.open.drop(id)
  }

  async #created(record: MultipartRecord): Promise<UploadAnswer> {
    await this.parts.records.written(record.id)
    return created(record)
  }

  /**
   * What pays in the end for an item of so many bytes; undefined: credits do, because nothing was paid, or it was refunded.
   * `onUnused`: it is paid for otherwise.
   */
  charge(record: MultipartRecord | undefined, bytes: number, onUnused: () => void): ItemCharge | undefined {
    const paid = record?.paid
    if (record === undefined || paid?.facts === undefined || isOwed(paid)) return undefined
    // As it will be settled: what is not used becomes credits.
    const { winc } = usdcShare(BigInt(paid.facts.winc), paid.bytes, bytes)
    return { winc, heldAs: record.id, record: () => undefined, refund: async () => onUnused() }
  }

  /** Carries out what the record orders for the money. */
  settleOwed({ id }: Pick<MultipartRecord, 'id'>): void {
    if (this.#underWay.has(id)) return
    const over = this.#end(id).finally(() => this.#underWay.delete(id))
    this.#underWay.set(id, over)
  }

  async #end(id: string): Promise<void> {
    const { records, clock } = this.parts
    while (!this.#closing.signal.aborted) {
      if (!(await isWritten(records, id))) {
        await pause(againMs, this.#closing.signal)
        continue
      }
      const owes = records.find(id)?.paid?.owes
      if (owes === undefined) return
      const ended = await this.#settleOrRefund(id, owes)
      const record = records.find(id)
      if (record?.paid === undefined || this.#closing.signal.aborted) return
      // Unknown: nothing is reserved for it.
      if (!isRefusal(ended) || ended.refused === 'unknown') {
        const { owes: _, ...paid } = record.paid
        // After a kill before the record it is requested again: a settled payment is not settled twice.
        records.put({ ...record, paid: { ...paid, endedMs: clock.now() } })
        return
      }
      await pause(againMs, this.#closing.signal)
    }
  }

  /** The record of an accepted item, of any machine, has the last word: what has paid for it is never refunded. */
  async #settleOrRefund(id: string, owes: NonNullable<PaidUpload['owes']>): Promise<object | Refusal> {
    const { usdc, credits } = this.parts
    const spent = owes === 'refund' ? await this.#spentOf(id) : owes.spent
    if (typeof spent === 'object') return spent
    return spent === undefined ? credits.refund(id) : usdc.finish({ itemId: id, bytes: spent })
  }

  /** Size of the item that was accepted for what was paid. Undefined: none was. A refusal: it is not known now. */
  async #spentOf(id: string): Promise<number | undefined | Refusal> {
    const { uploads, records, machines } = this.parts
    const own = uploads.ofReservation(id)?.place.sizeBytes
    const item = records.find(id)?.begunItem
    if (own !== undefined || item === undefined || machines === undefined) return own
    const listed = await machines.receiptOf(item)
    if (listed === undefined)
      return refuse('busy', 'self', 'it is not known what other machines have accepted')
    return listed !== 'none' && listed.paidWith === id ? listed.sizeBytes : undefined
  }

  async close(): Promise<void> {
    this.#closing.abort()
    await Promise.all([...this.#underWay.values(), this.#checking])
  }
}

/** From now on it is looked at when it expires. */
function paidBy({ dueMs: _, ...record }: MultipartRecord, paid: PaidUpload, now: number): MultipartRecord {
  return { ...record, paid: { ...paid, paidMs: record.paid?.paidMs ?? now } }
}

function created({ id, chunkBytes: chunkSize, paid }: MultipartRecord): UploadAnswer {
  const { min, max } = chunkBytes
  return jsonAnswer(200, { id, min, max, chunkSize }, noStore + (paid?.facts?.lines ?? ''))
}

/** A record with an order for its money, where it was paid for at its beginning. The first order counts. */
export function owing(record: MultipartRecord, owes: NonNullable<PaidUpload['owes']>): MultipartRecord {
  const { paid } = record
  return paid === undefined || isOwed(paid) ? record : { ...record, paid: { ...paid, owes } }
}

/** Its money was ordered to be spent or refunded: it pays for nothing more. */
function isOwed({ owes, endedMs }: PaidUpload): boolean {
  return owes !== undefined || endedMs !== undefined
}

/** Whether what is to be done is written down, and known as it is now. False: the disk or the engine refuses. */
async function isWritten(records: Pick<PartRecords, 'load' | 'written'>, id: string): Promise<boolean> {
  try {
    await records.written(id)
    await records.load(id)
    return true
  } catch (error) {
    if (!isDiskError(error) && !(error instanceof EngineAway)) throw error
    return false
  }
}
