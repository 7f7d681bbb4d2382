import { type Clock, pause } from '../../actor/clock.js'
import type { Log } from '../../actor/log.js'
import type { ItemsElsewhere, ListedReceipt } from '../../cluster/items-elsewhere.js'
import { type Id, idBytes } from '../../format/id.js'
import { codeOf } from '../../store/blobs.js'
import { writePatiently } from '../../store/patient-write.js'
import type { Sales } from '../charging/sales.js'
import type { AcceptedItem, Uploads } from '../records/uploads.js'
import type { BundleScan } from './bundle-scan.js'
import { ListedCheck } from './listed-check.js'
import { SharedSales } from './shared-sales.js'

const againMs = 1000
/** Rounds between two looks whether the database still has what was listed. */
const roundsPerLook = 60
/** Items that are listed late, of one round. */
const roundMax = 100
const notListed = 'what lies in an accepted bundle cannot be listed for other machines'

/** Whether an item is listed. `away`: the database does not answer. `unread`: its bytes cannot be read now. */
type Listed = 'listed' | 'away' | 'unread'

export interface SharedItemsParts {
  readonly uploads: Uploads
  readonly sales: Pick<Sales, 'open'>
  readonly scan: Pick<BundleScan, 'idsIn'>
  readonly items: ItemsElsewhere
  readonly clock: Pick<Clock, 'now'>
  readonly logger: Pick<Log, 'error' | 'info' | 'warn'>
  readonly closing: AbortSignal
}

/**
 * Lists accepted items, and what lies in them, for the other machines of the cluster, before the receipt. What cannot be listed,
 * because the database does not answer, waits on disk, and what the database has lost.
 */
export class SharedItems {
  /** Listed, and still written down as waiting. */
  readonly #over = new Set<Id>()
  /** Being listed by who has accepted them. */
  readonly #fresh = new Set<Id>()
  /** Bundles whose bytes could not be read when they were to be listed. */
  readonly #unread = new Set<Id>()
  readonly #sales: SharedSales
  readonly #check: ListedCheck
  #running: Promise<unknown> = Promise.resolve()

  constructor(private readonly parts: SharedItemsParts) {
    this.#sales = new SharedSales(parts)
    this.#check = new ListedCheck(parts)
  }

  /** Lists what waits. */
  start(): void {
    this.#running = Promise.all([this.#run(), this.#sales.run()])
  }

  /** After `closing`: resolves when nothing is listed any more. */
  async stopped(): Promise<void> {
    await this.#running
  }

  /** What the receipt of an item states that a machine has accepted; undefined: that is not known now. */
  receiptOf(id: Id): Promise<ListedReceipt | 'none' | undefined> {
    return this.parts.items.receiptOf(id)
  }

  /** Before a kept bundle is paid for: other machines charge nothing in it. False: they may not know of it. */
  listSale(bundle: AcceptedItem, client?: string): Promise<boolean> {
    return this.#sales.list(bundle, client)
  }

  /** It is not paid for. */
  endSale(bundle: Id): Promise<void> {
    return this.#sales.end(bundle)
  }

  /** Only inside the transaction that accepts it. */
  queue(id: Id): void {
    // Listed before its transaction: it waits for nothing.
    if (!this.#over.has(id)) this.parts.uploads.unlisted.put(id)
  }

  /** The item is accepted: resolves when it is listed, or waits for the database. */
  async list(item: AcceptedItem): Promise<void> {
    this.#fresh.add(item.id)
    if ((await this.#listed(item)) === 'listed') this.#over.add(item.id)
    this.#fresh.delete(item.id)
  }

  async #listed(item: AcceptedItem): Promise<Listed> {
    const { items, uploads } = this.parts
    const bundle = idBytes(item.id)
    const { receivedMs, deadlineHeight, winc, heldAs, place } = item
    const paid = heldAs === undefined ? {} : { paidWith: heldAs, sizeBytes: place.sizeBytes }
    const receipt = { receivedMs, deadlineHeight, winc, ...paid }
    if (!(await items.add([{ id: bundle, bundle, receipt }]))) return 'away'
    this.#check.note(item.id)
    if (item.isBundle !== true) return 'listed'
    // Its bytes may have been removed meanwhile.
    const now = uploads.find(item.id)
    const inside = now === undefined || now.released === true ? 'listed' : await this.#insideListed(now)
    if (inside === 'listed') await this.#sales.end(item.id)
    return inside
  }

  async #insideListed(item: AcceptedItem): Promise<Listed> {
    const { items, scan, logger } = this.parts
    const bundle = idBytes(item.id)
    try {
      for await (const { ids } of scan.idsIn(item)) {
        if (!(await items.add(ids.map((id) => ({ id, bundle }))))) return 'away'
      }
      return 'listed'
    } catch (error) {
      const code = codeOf(error)
      if (code === undefined) throw error
      if (!this.#unread.has(item.id)) logger.warn({ id: item.id, code }, notListed)
      // What is gone cannot be read later either.
      return code === 'ENOENT' ? 'listed' : 'unread'
    }
  }

  async #run(): Promise<void> {
    const { uploads, closing, logger } = this.parts
    for (let round = 0; !closing.aborted; round += 1) {
      if (round % roundsPerLook === 0) await this.#check.look()
      await pause(againMs, closing)
      // What cannot be read now keeps its place, and keeps nothing behind it waiting.
      const known = this.#over.size + this.#fresh.size + this.#unread.size
      const due = uploads.unlisted
        .some(roundMax + known)
        .filter((id) => !this.#over.has(id) && !this.#fresh.has(id))
      for (const id of due) {
        if (closing.aborted) return
        const item = uploads.find(id)
        const listed = item === undefined ? 'listed' : await this.#listed(item)
        if (listed === 'away') break
        if (listed === 'listed') this.#over.add(id)
        if (listed === 'unread') this.#unread.add(id)
        else this.#unread.delete(id)
      }
      const over = [...this.#over]
      if (over.length === 0) continue
      const write = (): void =>
        uploads.environment.write(() => {
          for (const id of over) uploads.unlisted.remove(id)
        })
      if (await writePatiently(write, closing, logger)) for (const id of over) this.#over.delete(id)
    }
  }
}
