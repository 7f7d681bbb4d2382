import { pause, systemClock } from '../../actor/clock.js'
import { FairSlots } from '../../actor/fair-slots.js'
import type { Log } from '../../actor/log.js'
import { type ItemsElsewhere, saleLeaseMs } from '../../cluster/items-elsewhere.js'
import type { Id } from '../../format/id.js'
import { codeOf } from '../../store/blobs.js'
import type { Sales } from '../charging/sales.js'
import type { AcceptedItem, Uploads } from '../records/uploads.js'
import type { BundleScan } from './bundle-scan.js'

/** Several tries before what is listed counts no more. */
const renewMs = saleLeaseMs / 5
/** Ids of one statement. */
const idsMax = 2000
/** Between two portions of rows that are removed. */
const sweepEachMs = 100

export interface SharedSalesParts {
  readonly uploads: Pick<Uploads, 'find' | 'unlisted'>
  readonly sales: Pick<Sales, 'open'>
  readonly scan: Pick<BundleScan, 'idsIn'>
  readonly items: Pick<ItemsElsewhere, 'beginSale' | 'addToSale' | 'renewSales' | 'endSales' | 'sweepSales'>
  readonly logger: Pick<Log, 'warn'>
  readonly closing: AbortSignal
}

/**
 * Lists bundles that are about to be paid for one by one (x402), with what lies in them, for the other machines of the cluster:
 * none of them charges such an item until it is known whether the bundle is paid for. What is listed counts for `saleLeaseMs`,
 * and for longer where this machine goes on. So a machine that has died keeps nobody from anything for good.
 */
export class SharedSales {
  /** Bundles that are listed, or may be. */
  readonly #listed = new Set<Id>()
  /** Those of them whose items were all listed. */
  readonly #whole = new Set<Id>()

  /**
   * One statement at a time: many or large bundles must not keep the database from the questions of others. Clients have turns,
   * by how long the statements for each have taken: listing costs them nothing until they have paid.
   */
  readonly #turns = new FairSlots({ max: 1, waitingMax: Number.POSITIVE_INFINITY, clock: systemClock })

  constructor(private readonly parts: SharedSalesParts) {}

  /**
   * Before the payment of a kept bundle is settled. `client`: the address range that brought it. False: it is not known whether
   * all in it is listed.
   */
  async list(item: AcceptedItem, client = ''): Promise<boolean> {
    const { items } = this.parts
    if (this.#whole.has(item.id) && (await this.#isRenewed(item.id, client))) return true
    this.#whole.delete(item.id)
    this.#listed.add(item.id)
    const sale = await this.#turns.run(() => items.beginSale(item.id), client)
    if (sale === undefined || !(await this.#added(sale, item, client))) return false
    // Its time may have ended meanwhile.
    if (!(await this.#isRenewed(item.id, client))) return false
    this.#whole.add(item.id)
    return true
  }

  async #isRenewed(id: Id, client: string): Promise<boolean> {
    return (await this.#turns.run(() => this.parts.items.renewSales([id]), client))?.has(id) === true
  }

  async #added(sale: string, item: AcceptedItem, client: string): Promise<boolean> {
    const { items, scan, logger } = this.parts
    const add = (ids: readonly Uint8Array[]): Promise<boolean> =>
      this.#turns.run(() => items.addToSale(sale, ids), client)
    try {
      let due: Uint8Array[] = []
      for await (const { ids } of scan.idsIn(item)) {
        due.push(...ids)
        if (due.length < idsMax) continue
        if (!(await add(due))) return false
        due = []
      }
      return await add(due)
    } catch (error) {
      const code = codeOf(error)
      if (code === undefined) throw error
      logger.warn(
        { id: item.id, code },
        'a bundle that is being paid for cannot be listed for other machines',
      )
      return false
    }
  }

  /** It is listed as accepted, or will not be paid for. */
  async end(bundle: Id): Promise<void> {
    if (this.#listed.has(bundle)) await this.#end([bundle])
  }

  /** Lists what is still being paid for for longer, and what a start or a takeover has found. Until `closing`. */
  async run(): Promise<void> {
    const { closing } = this.parts
    while (!closing.aborted) {
      await this.renew()
      while (!closing.aborted && (await this.parts.items.sweepSales())) await pause(sweepEachMs, closing)
      await pause(renewMs, closing)
    }
  }

  async renew(): Promise<void> {
    const { items } = this.parts
    const due = this.#due()
    const ended = [...this.#listed].filter((id) => !due.has(id))
    if (ended.length > 0) await this.#end(ended)
    const renewed = due.size === 0 ? undefined : await items.renewSales([...due.keys()])
    if (renewed === undefined) return
    for (const [id, item] of due) if (!renewed.has(id) || !this.#whole.has(id)) await this.list(item)
  }

  /** What is not paid for yet, and what was and is not listed as accepted. */
  #due(): Map<Id, AcceptedItem> {
    const { sales, uploads } = this.parts
    const due = new Map<Id, AcceptedItem>()
    for (const { item } of sales.open()) if (item?.isBundle === true) due.set(item.id, item)
    for (const id of this.#listed) {
      const item = uploads.unlisted.has(id) ? uploads.find(id) : undefined
      if (item !== undefined) due.set(id, item)
    }
    return due
  }

  async #end(bundles: readonly Id[]): Promise<void> {
    if (await this.parts.items.endSales(bundles)) for (const id of bundles) this.#listed.delete(id)
    for (const id of bundles) this.#whole.delete(id)
  }
}
