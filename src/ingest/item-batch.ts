import type { ItemFilter } from '../../config/item-filter.js'
import { packItems } from '../catalog/pack.js'
import type { Row } from '../catalog/row.js'
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
    return this.desk.index.row(idBytes(this.rootId))?.height !== undefined
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
      const root = this.desk.index.row(idBytes(this.rootId))
      if (root?.height === undefined) return undefined
      const { height } = root
      const attributes = items
        .filter((item) => this.#isFirst(item, root))
        .map((item) => itemAttributes(item, height))
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

  /** An item in several bundles is served from where the chain has it first, as the index says too. */
  #isFirst({ header, place }: FoundItem, root: Row): boolean {
    const known = this.desk.index.row(idBytes(header.id))
    if (known?.place === undefined || known.height === undefined || root.height === undefined) return true
    const order = known.height - root.height || known.index - root.index
    return order > 0 || (order === 0 && place.rootItemOffset <= known.place.rootItemOffset)
  }
}
