import { EvictionOrder } from '../../actor/eviction-order.js'
import { type Parties, partiesOf } from '../../format/ip.js'
import { roomMinBytes } from '../../store/disk-full.js'
import { textAnswer, type UploadAnswer } from '../requests/upload-answers.js'
import type { DiskRoom } from './disk-room.js'

export interface RoomBounds {
  /** Uploads in parts that are open at once; 10,000 where absent: one without a part takes some hundred bytes. */
  readonly placesMax?: number
  /** Bytes on disk of all; absent: as many as the disk has. */
  readonly maxBytes?: number
  /** The part of what the disk has for everything that may be held. */
  readonly diskShare: number
  /** The part of all that one address range may hold. */
  readonly clientShare: number
  readonly disk: Pick<DiskRoom, 'leftBytes' | 'expect'>
}

/** Shares of parts of uploads, which may wait for a day. */
export const sharesOfParts = { diskShare: 1 / 2, clientShare: 1 / 4 }
/** Shares of what is on its way in one request. */
export const sharesOfRequests = { diskShare: 1, clientShare: 1 }

const usualPlacesMax = 10_000
/** Files of all uploads together. */
const filesMax = 500_000
/** Uploads that one address range may have open. */
const placesEachMax = 1000
/**
 * Uploads that are paid for at their beginning, some kilobytes of memory each. A beginning costs little, and what it does not use
 * becomes credits: so where all places are taken, one is given up by the rule of those that are not paid for.
 */
const paidPlacesMax = 50_000

export interface HolderTerms {
  /** Whose share it takes: an address range; undefined: of this machine, bounded by the whole alone. */
  readonly client: string | undefined
  /** It takes a place among the open uploads. */
  readonly hasPlace: boolean
  /** It is paid for: it gives up bytes for nobody, and its place only for another one that is paid for. */
  readonly isPaid: boolean
  /** Gives up what it holds, because another needs the room: `leave` was called when this returns. */
  drop(): void
}

/** What one upload holds. Changed by `HeldRoom` alone. */
export class Holder {
  bytes = 0
  files = 0
  isGone = false
  /** Work is under way that must not lose it. */
  isBusy = false
  /** Its payment may still be settled, or its item be accepted for it: it must not be lost before that is known. */
  isUndecided = false
  readonly client: string | undefined
  readonly places: number
  readonly parties: Parties

  constructor(
    readonly terms: HolderTerms,
    private readonly fileBytes: number,
  ) {
    this.client = terms.client
    this.places = terms.hasPlace ? 1 : 0
    this.parties = partiesOf(terms.client ?? '')
  }

  get isPaid(): boolean {
    return this.terms.isPaid
  }

  get weight(): number {
    return this.bytes + this.files * this.fileBytes
  }
}

/**
 * Who holds how much of the disk with items that are not whole yet. Only bytes that have come are counted. Where there is no
 * room, who holds most gives some up (`EvictionOrder`) for who holds less.
 */
export class HeldRoom {
  readonly #order = new EvictionOrder<Holder>()
  /** Uploads that are paid for, by who holds most. */
  readonly #paidOrder = new EvictionOrder<Holder>()
  /** Keyed by address range. */
  readonly #bytesOf = new Map<string, number>()
  readonly #placesOf = new Map<string, number>()
  /** Keyed by provider, network and address range with the level in front: places of what is not paid for, and of what is. */
  readonly #placesAt = new Map<string, number>()
  readonly #paidPlacesAt = new Map<string, number>()
  #places = 0
  #paidPlaces = 0
  #bytes = 0
  #files = 0

  constructor(private readonly bounds: RoomBounds) {}

  get bytes(): number {
    return this.#bytes
  }

  get places(): number {
    return this.#places
  }

  /** One more. What of it is on disk already comes by `grow`. */
  enter(terms: HolderTerms): Holder {
    const { maxBytes = 0 } = this.bounds
    const holder = new Holder(terms, Math.ceil(maxBytes / filesMax))
    this.#places += holder.places
    if (terms.client !== undefined) count(this.#placesOf, terms.client, holder.places)
    this.#countPlaces(holder, holder.places)
    this.#rank(holder)
    return holder
  }

  /** It holds nothing any more. */
  leave(holder: Holder): void {
    if (holder.isGone) return
    this.grow(holder, -holder.bytes, -holder.files)
    holder.isGone = true
    this.#orderOf(holder).remove(holder)
    this.#places -= holder.places
    if (holder.client !== undefined) count(this.#placesOf, holder.client, -holder.places)
    this.#countPlaces(holder, -holder.places)
  }

  #countPlaces({ parties, isPaid }: Holder, places: number): void {
    if (isPaid) this.#paidPlaces += places
    const counts = isPaid ? this.#paidPlacesAt : this.#placesAt
    for (const [level, name] of parties.entries()) count(counts, `${level} ${name}`, places)
  }

  /** `isBusy`: it must not be dropped now. */
  setBusy(holder: Holder, isBusy: boolean): void {
    holder.isBusy = isBusy
    this.#rank(holder)
  }

  setUndecided(holder: Holder, isUndecided: boolean): void {
    holder.isUndecided = isUndecided
    this.#rank(holder)
  }

  #orderOf({ isPaid }: Holder): EvictionOrder<Holder> {
    return isPaid ? this.#paidOrder : this.#order
  }

  #rank(holder: Holder): void {
    if (holder.isGone) return
    const order = this.#orderOf(holder)
    // What is paid for has nothing but its place to give up.
    const isKept = holder.isBusy || holder.isUndecided || (holder.isPaid && holder.places === 0)
    if (isKept) order.remove(holder)
    else order.put(holder)
  }

  /** Counts bytes and files that came or, with less than 0, do not stay. */
  grow(holder: Holder, bytes: number, files: number): void {
    if (holder.isGone || (bytes === 0 && files === 0)) return
    holder.bytes += bytes
    holder.files += files
    this.#bytes += bytes
    this.#files += files
    if (holder.client !== undefined) count(this.#bytesOf, holder.client, bytes)
    this.#rank(holder)
  }

  /**
   * Makes a place for one more open upload: of those that have more than this client, and of what holds bytes only where it has
   * one less then. An answer: there is none.
   */
  placeFor(client: string | undefined): UploadAnswer | undefined {
    if (client !== undefined && (this.#placesOf.get(client) ?? 0) >= placesEachMax) return tooMany
    const { placesMax = usualPlacesMax } = this.bounds
    while (this.#places - this.#paidPlaces >= placesMax)
      if (!this.#freePlace(client, this.#order, this.#placesAt)) return noPlace
    return undefined
  }

  /** The same for one that is paid for at its beginning. Such ones take no place of others, and make none. */
  paidPlaceFor(client: string | undefined): UploadAnswer | undefined {
    if (client !== undefined && (this.#placesOf.get(client) ?? 0) >= placesEachMax) return tooMany
    while (this.#paidPlaces >= paidPlacesMax)
      if (!this.#freePlace(client, this.#paidOrder, this.#paidPlacesAt)) return noPlace
    return undefined
  }

  /** False: nobody has to give up a place for this client. `places`: by party, those that cannot be given up among them. */
  #freePlace(
    client: string | undefined,
    order: EvictionOrder<Holder>,
    places: ReadonlyMap<string, number>,
  ): boolean {
    const parties = partiesOf(client ?? '')
    const own = parties.map((name, level) => places.get(`${level} ${name}`) ?? 0)
    const victim = order.forPlaceOf(parties, own)
    if (victim !== undefined) this.#drop(victim)
    return victim !== undefined
  }

  /** Makes room for so many more bytes of one that is here, and for a file. An answer: there is none. */
  roomFor(holder: Holder, bytes: number): UploadAnswer | undefined {
    const crowded = this.foresee(holder, bytes)
    if (crowded !== undefined) return crowded
    while (!this.#fits(bytes)) {
      const victim = this.#victimFor(holder, bytes)
      if (victim === undefined) return noRoom
      this.#drop(victim)
      if (holder.isGone) return gone
    }
    return undefined
  }

  /** The same for one that holds nothing yet. */
  roomForNew(client: string | undefined, bytes: number): UploadAnswer | undefined {
    const holder = this.enter({ client, isPaid: false, hasPlace: false, drop: () => undefined })
    const crowded = this.roomFor(holder, bytes)
    this.leave(holder)
    return crowded
  }

  /** Why so many bytes would not be taken if they came now. Nothing is dropped for what may never come. */
  foresee(holder: Holder, bytes: number): UploadAnswer | undefined {
    if (holder.isGone) return gone
    const { client, terms } = holder
    // Nothing of it could be written down: nobody gives room up for that.
    if (terms.hasPlace && this.bounds.disk.leftBytes < roomMinBytes) return diskFull
    const own = client === undefined || holder.isPaid ? 0 : (this.#bytesOf.get(client) ?? 0) + bytes
    if (own > this.#maxBytes() * this.bounds.clientShare) {
      const text = 'Too many bytes of your uploads wait to be finalized: finish or cancel some'
      return textAnswer(429, text, again)
    }
    return this.#fits(1) || this.#victimFor(holder, 1) !== undefined ? undefined : noRoom
  }

  #drop(victim: Holder): void {
    this.bounds.disk.expect(victim.bytes)
    victim.terms.drop()
    if (!victim.isGone) throw new Error('an upload was dropped and still holds its room')
  }

  #fits(bytes: number): boolean {
    return this.#bytes + bytes <= this.#maxBytes() && this.#files < filesMax
  }

  #maxBytes(): number {
    const { maxBytes = Number.POSITIVE_INFINITY, disk, diskShare } = this.bounds
    return Math.min(maxBytes, (Math.max(0, disk.leftBytes) + this.#bytes) * diskShare)
  }

  /** Who holds more than this one would: only then it is fair. */
  #victimFor(holder: Holder, bytes: number): Holder | undefined {
    const victim = this.#order.forBytes()
    if (victim === undefined || holder.isPaid) return victim
    const [most, own] = this.#order.compared(victim.parties, holder.parties) ?? [0, 0]
    return most > own + bytes ? victim : undefined
  }
}

const again = '\r\nRetry-After: 60'
const tooMany = textAnswer(429, 'Too many of your uploads are open: finish or cancel some', again)
const noPlace = textAnswer(503, 'Too many uploads are open', again)
const noRoom = textAnswer(503, 'Too many parts wait to be finalized', again)
const diskFull = textAnswer(503, 'the disk is full', again)
const gone = textAnswer(503, 'The upload was dropped, because others needed its room: begin it again', again)

function count(counts: Map<string, number>, name: string, more: number): void {
  const sum = (counts.get(name) ?? 0) + more
  if (sum === 0) counts.delete(name)
  else counts.set(name, sum)
}
