import type { ItemFilter } from '../../config/item-filter.js'
import { packItems } from '../catalog/pack.js'
import { type Id, idBytes } from '../format/id.js'
import type { Desk } from './desk.js'
import { matches } from './filter.js'
import { type FoundItem, itemAttributes, itemInput, itemSubject } from './rows.js'

/** Items told in one message at most, but for what one piece of bytes may add. */
const itemsMax = 1000

/** Items of one root on their way to the catalog. */
export class ItemBatch {
  #items: FoundItem[] = []

  /** `onAdded` hears of each batch how many items were new to the index. */
  constructor(
    private readonly rootId: Id,
    private readonly desk: Desk,
    private readonly wanted: ItemFilter,
    private readonly onAdded: (added: number) => void,
  ) {}

  /** Whether the root is in a block of the index. */
  isRootKnown(): boolean {
    this.desk.index.refresh()
    return this.#height() !== undefined
  }

  get isFull(): boolean {
    return this.#items.length >= itemsMax
  }

  add(item: FoundItem): void {
    if (matches(this.wanted, itemSubject(item))) this.#items.push(item)
  }

  /** Tells what was added; nothing of it where the root is in no block any more. */
  async flush(): Promise<void> {
    const items = this.#items
    if (items.length === 0) return
    this.#items = []
    const outcome = await this.desk.write(() => {
      const height = this.#height()
      if (height === undefined) return undefined
      const attributes = items.map((item) => itemAttributes(item, height))
      return {
        kind: 'all',
        requests: [
          { kind: 'index-items', rootId: this.rootId, items: packItems(items.map(itemInput)) },
          { kind: 'learn', attributes },
        ],
      }
    })
    this.onAdded(outcome?.added ?? 0)
  }

  #height(): number | undefined {
    return this.desk.index.row(idBytes(this.rootId))?.height
  }
}
