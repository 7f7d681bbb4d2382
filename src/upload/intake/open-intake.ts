import type { Log } from '../../actor/log.js'
import type { Id } from '../../format/id.js'
import { DurableLog } from '../../store/segments/durable-log.js'
import type { LogPlace } from '../../store/segments/log-file.js'
import type { FreePools } from '../records/free-pools.js'
import {
  type AcceptedItem,
  isGone,
  type LoggedUpload,
  type SaleFacts,
  type Uploads,
} from '../records/uploads.js'
import { turnOf } from '../records/waiting-lines.js'
import { keepUnsettled } from '../selling/credit-charging.js'
import type { Sales } from '../selling/sales.js'

/** 256 KiB: a hundred uploaders of anything smaller take 25 MiB of memory. */
const options = { fileBytes: 268_435_456, sharedMaxBytes: 262_144, growBytes: 67_108_864 }

export interface IntakeParts {
  readonly uploads: Uploads
  readonly sales: Sales
  readonly pools: Pick<FreePools, 'keep'>
  readonly log: Log
  /** Records the receipts to be sent for items that the tables lacked, in the transaction that adds these items. */
  readonly onLost?: (ids: readonly Id[]) => void
}

export interface OpenedIntake {
  readonly log: DurableLog
  /** Items that the tables did not know. Their uploaders may have receipts; whether a gateway was notified is not known. */
  readonly lost: readonly AcceptedItem[]
}

/**
 * Opens the log of accepted items, and brings the tables up to it: after a kill the log may know more than they do. Bytes
 * that are not needed any more are released again.
 */
export async function openIntake(
  folder: string,
  { uploads, sales, pools, log, onLost }: IntakeParts,
): Promise<OpenedIntake> {
  const lost = new Map<Id, LostItem>()
  const released: LogPlace[] = []
  const intake = await DurableLog.open(folder, options, ({ place, meta }) => {
    const logged = JSON.parse(Buffer.from(meta).toString()) as LoggedUpload
    const known = uploads.find(logged.id)
    const isNew = known === undefined || (isGone(known) && known.receivedMs < logged.receivedMs)
    if (isNew) {
      if (logged.sale === undefined) {
        // One that was uploaded anew when a sandbox had it no more lies there twice: the later one counts.
        const earlier = lost.get(logged.id)
        if (earlier !== undefined) released.push(earlier.place)
        lost.set(logged.id, { ...logged, place })
      } else if (!takeUpSale(sales, { ...logged, place }, logged.sale)) released.push(place)
    }
    // The same item once more: it was refused after its bytes were written.
    else if (known.released === true || !isSamePlace(known.place, place)) released.push(place)
  })
  for (const place of released) intake.release(place)
  const taken = [...lost.values()].map(withoutFree)
  if (lost.size > 0) {
    log.warn(
      { items: lost.size },
      'uploads were in the log but not in the database (a stop between two steps): they are recorded again',
    )
    uploads.accept(taken, () => {
      for (const { id, winc, free, heldAs } of lost.values()) {
        if (winc !== '0' && heldAs === undefined) keepUnsettled(uploads.environment, id)
        if (free !== undefined) pools.keep(free)
      }
      onLost?.(taken.map(({ id }) => id))
    })
  }
  const { damaged } = intake.found
  if (damaged.length > 0)
    log.error(
      { damaged },
      'the log of uploads is damaged: uploads in it may be lost, see "A database is broken" in deploy/OPERATING.md',
    )
  return { log: intake, lost: taken }
}

type LostItem = LoggedUpload & AcceptedItem

function withoutFree({ free, ...item }: LostItem): AcceptedItem {
  const turn = free && turnOf(free)
  return turn === undefined ? item : { ...item, turn }
}

/** An item that was kept for a payment: the sale decides. False: it was kept for it a second time. */
function takeUpSale(sales: Sales, item: AcceptedItem, facts: SaleFacts): boolean {
  const sale = sales.find(facts.payment)
  if (sale === undefined) {
    sales.begin({ ...facts, openedMs: item.receivedMs, itemId: item.id, item })
    return true
  }
  return sale.item !== undefined && isSamePlace(sale.item.place, item.place)
}

function isSamePlace(one: LogPlace, other: LogPlace): boolean {
  return one.file === other.file && one.offset === other.offset
}
