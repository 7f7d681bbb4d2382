import type { Clock } from '../../actor/clock.js'
import type { Log } from '../../actor/log.js'
import type { Id } from '../../format/id.js'
import { isRefusal } from '../../format/refusal.js'
import { tryWrite } from '../../store/disk-error.js'
import { DurableLog } from '../../store/segments/durable-log.js'
import { isSamePlace, type LogPlace } from '../../store/segments/log-file.js'
import type { Sales } from '../charging/sales.js'
import { recordUnsettled } from '../charging/unsettled-items.js'
import type { FreePools } from '../records/free-pools.js'
import {
  type AcceptedItem,
  isGone,
  type LoggedUpload,
  type SaleFacts,
  type Uploads,
} from '../records/uploads.js'
import { turnOf } from '../records/waiting-lines.js'
import type { PlacesSeen } from '../stored/log-bytes.js'
import { machineOf } from '../stored/machine-names.js'
import { decodeGroupName } from '../stored/stored-keys.js'
import type { BroughtItem } from '../stored/stored-recovery.js'
import { LateItems } from './late-items.js'

/** 256 KiB: a hundred uploaders of anything smaller take 25 MiB of memory. */
const options = { fileBytes: 268_435_456, sharedMaxBytes: 262_144, growBytes: 67_108_864 }

export interface IntakeParts {
  readonly uploads: Uploads
  readonly sales: Sales
  readonly pools: Pick<FreePools, 'record'>
  readonly log: Log
  readonly clock: Pick<Clock, 'now'>
  /** Other machines are to know of the items. */
  readonly isListed?: boolean
  /** Records the receipts to be sent for items that the tables lacked, in the transaction that adds these items. */
  readonly onLost?: (ids: readonly Id[]) => void
  /** The object store that has the items, too; absent: none has. */
  readonly storing?: IntakeStoring
}

export interface IntakeStoring {
  /** Gets each place of the log with an item. */
  readonly seen: PlacesSeen
  /** Gets items that no group has. */
  readonly unstored: Id[]
  /** Receipts do not wait for this machine's disk. */
  readonly isUnflushed: boolean
}

export interface OpenedIntake {
  readonly itemLog: DurableLog
  /** Items that the tables did not know. Their uploaders may have receipts; whether a gateway was notified is not known. */
  readonly lost: readonly AcceptedItem[]
  /** The same, and items that wait for their payments, where the disk refuses changes: they are not entered yet. */
  readonly late: LateItems
}

/**
 * Opens the log of accepted items, and brings the tables up to it: after a kill the log may know more than they do. Bytes
 * that are not needed any more are released again.
 */
export async function openIntake(folder: string, parts: IntakeParts): Promise<OpenedIntake> {
  const { uploads, log, storing } = parts
  const lost = new Map<Id, BroughtItem>()
  const unsold: BroughtItem[] = []
  const released: LogPlace[] = []
  const isUnflushed = storing?.isUnflushed === true
  const intake = await DurableLog.open(folder, { ...options, isUnflushed }, ({ place, meta }) => {
    storing?.seen.add(place)
    const logged = JSON.parse(Buffer.from(meta).toString()) as LoggedUpload
    const known = uploads.find(logged.id)
    const isNew = known === undefined || (isGone(known) && known.receivedMs < logged.receivedMs)
    if (isNew) {
      if (logged.sale === undefined) {
        // One that was uploaded anew when a sandbox had it no more lies there twice: the later one counts.
        const earlier = lost.get(logged.id)
        if (earlier !== undefined) released.push(earlier.place)
        lost.set(logged.id, { ...logged, place })
      } else unsold.push({ ...logged, place })
    }
    // The same item once more: it was refused after its bytes were written.
    else if (known.released === true || !isSamePlace(known.place, place)) released.push(place)
    else if (known.stored === undefined) storing?.unstored.push(logged.id)
  })
  for (const place of released) intake.release(place)
  if (lost.size > 0)
    log.warn(
      { items: lost.size },
      'uploads were in the log but not in the database (a stop between two steps): they are recorded again',
    )
  const found = [...unsold, ...lost.values()]
  const takeUp = (): readonly AcceptedItem[] => {
    const taken = takeUpBrought(found, intake, parts)
    for (const { id } of taken) storing?.unstored.push(id)
    return taken
  }
  const taken = tryWrite(takeUp)
  const { damaged } = intake.found
  if (damaged.length > 0)
    log.error(
      { damaged },
      'the log of uploads is damaged: uploads in it may be lost, see "A database is broken" in deploy/OPERATING.md',
    )
  return isRefusal(taken)
    ? { itemLog: intake, lost: [], late: new LateItems(found.length, takeUp) }
    : { itemLog: intake, lost: taken, late: new LateItems(0, () => []) }
}

/**
 * Takes up items that were brought back into the log, in one transaction. Those that wait for a payment are continued as sales.
 * Throws where the disk refuses.
 */
export function takeUpBrought(
  items: readonly BroughtItem[],
  itemLog: Pick<DurableLog, 'release'>,
  parts: Omit<IntakeParts, 'storing'>,
): readonly AcceptedItem[] {
  if (items.length === 0) return []
  const { uploads, sales, clock } = parts
  const unneeded: LogPlace[] = []
  const taken = uploads.environment.write(() => {
    // A transaction may run twice.
    unneeded.length = 0
    for (const { sale, ...item } of items) {
      if (sale === undefined) continue
      if (!takeUpSale(sales, { ...item, sale }, sale, clock.now())) unneeded.push(item.place)
      else if (item.stored !== undefined) uploads.stored.put(item.stored, item.id)
    }
    return enterBrought(
      items.filter(({ sale }) => sale === undefined),
      parts,
    )
  })
  for (const place of unneeded) itemLog.release(place)
  return taken
}

/** Writes items down as accepted that the tables did not know. Only inside a `write` of the environment. */
function enterBrought(
  items: readonly BroughtItem[],
  { uploads, pools, onLost, isListed }: Pick<IntakeParts, 'uploads' | 'pools' | 'onLost' | 'isListed'>,
): AcceptedItem[] {
  if (items.length === 0) return []
  const taken = items.map(withoutFree)
  uploads.accept(taken, () => {
    for (const { id, winc, free, heldAs } of items) {
      if (winc !== '0' && heldAs === undefined) recordUnsettled(uploads.environment, id)
      if (free !== undefined) pools.record(free)
    }
    for (const { id, isBundle } of taken) {
      if (isBundle === true) uploads.scanned.wait(id)
      if (isListed === true) uploads.unlisted.put(id)
    }
    onLost?.(taken.map(({ id }) => id))
  })
  return taken
}

function withoutFree({ free, ...item }: BroughtItem): AcceptedItem {
  const turn = free && turnOf(free)
  return turn === undefined ? item : { ...item, turn }
}

/**
 * An item that was kept for a payment: the sale decides, whoever else has brought the payment, or the item, here. False: this
 * copy of it is known, or was sold.
 */
function takeUpSale(sales: Sales, item: AcceptedItem, facts: SaleFacts, nowMs: number): boolean {
  if (sales.sold(facts.payment)?.itemId === item.id) return false
  const copies = sales
    .allOf(item.id)
    .flatMap((sale) => (sale.payment === facts.payment ? (sale.item ?? []) : []))
  if (copies.some(({ place }) => isSamePlace(place, item.place))) return true
  if (item.stored !== undefined && copies.some(({ stored }) => stored === item.stored)) return false
  // Older releases did not write down which service had the sale: the name of the group states its machine.
  const node = decodeGroupName(item.stored ?? '')?.node ?? ''
  const named = facts.service === undefined && node !== '' ? { service: machineOf(node) } : {}
  // Until it was taken over, its machine may have ordered the payment.
  const openedMs = item.stored === undefined ? item.receivedMs : nowMs
  sales.begin({ ...facts, ...named, openedMs, itemId: item.id, item })
  return true
}
