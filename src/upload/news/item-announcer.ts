import { pause } from '../../actor/clock.js'
import type { Address } from '../../actor/mailbox-address.js'
import type { CatalogReply, CatalogRequest } from '../../catalog/catalog-messages.js'
import { headerMemory } from '../../format/header-memory.js'
import { type Id, idOfBytes } from '../../format/id.js'
import type { ItemHeader } from '../../format/item.js'
import { isRefusal } from '../../format/refusal.js'
import { packFound } from '../../ingest/chain-rows.js'
import { learnedOfItem } from '../../source/roots/learned.js'

/** An item as the catalog is to know it. */
export interface AnnouncedItem {
  readonly header: ItemHeader
  /** Bytes of header and payload. */
  readonly sizeBytes: number
  /** SHA-256 of the payload. */
  readonly digest: Uint8Array
}

/** Where an item lies that is in no bundle yet (query/transaction-queries.ts shows it as null). */
const nowhere = idOfBytes(new Uint8Array(32))
/** Items of one message, and bytes of memory that their headers take. */
const [batchMax, batchMaxBytes] = [256, 8 * 2 ** 20]
const againMs = 50
/** Items that the catalog has not confirmed, and bytes of their headers. With this many waiting, no more should be accepted. */
const [waitingMax, waitingMaxBytes] = [4096, 64 * 2 ** 20]

/**
 * Announces items without a bundle to the catalog. When `announce` resolves they are in the index as pending, and every thread
 * serves them by id (or the program ends). Items of one turn share a message.
 */
export class ItemAnnouncer {
  #waiting: { readonly item: AnnouncedItem; readonly resolve: () => void }[] = []
  #waitingBytes = 0
  #announcing = false

  /** `keeper` undefined: there is no gateway here. */
  constructor(
    private readonly keeper: Address<CatalogRequest, CatalogReply> | undefined,
    private readonly closing: AbortSignal,
  ) {}

  /** The catalog takes nothing, for so long that what is accepted would only use up memory. */
  get isFull(): boolean {
    return this.#waiting.length >= waitingMax || this.#waitingBytes >= waitingMaxBytes
  }

  announce(item: AnnouncedItem): Promise<void> {
    if (this.keeper === undefined) return Promise.resolve()
    return new Promise((resolve) => {
      this.#waiting.push({ item, resolve })
      this.#waitingBytes += headerMemory(item.header)
      if (!this.#announcing) void this.#announceAll(this.keeper as Address<CatalogRequest, CatalogReply>)
    })
  }

  /**
   * The index shows these items no more, and they are served no more, when it resolves with true; false: the program ends first.
   * What is in blocks stays.
   */
  async forget(ids: readonly Id[]): Promise<boolean> {
    if (this.keeper === undefined) return true
    while (!this.closing.aborted) {
      const reply = await this.keeper.ask({ kind: 'forget-items', ids })
      if (!isRefusal(reply)) return !this.closing.aborted
      await pause(againMs, this.closing)
    }
    return false
  }

  async #announceAll(keeper: Address<CatalogRequest, CatalogReply>): Promise<void> {
    this.#announcing = true
    await null
    while (this.#waiting.length > 0 && !this.closing.aborted) {
      const [batch, bytes] = this.#batch()
      const reply = await keeper.ask(words(batch.map(({ item }) => item)))
      // Its mailbox or its disk is full: the announcement is repeated until it is accepted.
      if (isRefusal(reply)) {
        await pause(againMs, this.closing)
        continue
      }
      this.#waiting.splice(0, batch.length)
      this.#waitingBytes -= bytes
      for (const { resolve } of batch) resolve()
    }
    // At the end of the program nothing more is announced, and all waiting calls resolve.
    for (const { resolve } of this.#waiting.splice(0)) resolve()
    this.#waitingBytes = 0
    this.#announcing = false
  }

  /** What the next message brings, and the bytes of its headers. */
  #batch(): [{ readonly item: AnnouncedItem; readonly resolve: () => void }[], number] {
    let [count, bytes] = [0, 0]
    for (const { item } of this.#waiting.slice(0, batchMax)) {
      if (bytes >= batchMaxBytes) break
      count += 1
      bytes += headerMemory(item.header)
    }
    return [this.#waiting.slice(0, count), bytes]
  }
}

function words(items: readonly AnnouncedItem[]): CatalogRequest {
  const found = items.map(({ header, sizeBytes }) => ({
    header,
    place: {
      rootId: nowhere,
      parentId: nowhere,
      path: [],
      rootItemOffset: 0,
      parentItemOffset: 0,
      itemSize: sizeBytes,
      headerSize: header.headerSize,
    },
  }))
  return {
    kind: 'all',
    requests: [
      { kind: 'index-items', rootId: nowhere, items: packFound(found, 'came'), optimistic: true },
      {
        kind: 'learn',
        attributes: items.map(({ header, sizeBytes, digest }) => ({
          id: header.id,
          size: sizeBytes - header.headerSize,
          digest,
          verified: false,
          trusted: false,
          ...learnedOfItem(header),
        })),
      },
    ],
  }
}
