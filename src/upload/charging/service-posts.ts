import type { ItemsElsewhere } from '../../cluster/items-elsewhere.js'
import type { Id } from '../../format/id.js'
import { type Refusal, refuse } from '../../format/refusal.js'
import type { PostedItem, PostHistory } from './network-posts.js'

const behind = refuse(
  'busy',
  'self',
  'bundles that were accepted before are read again, to see what they have paid for: try again in some seconds',
)

const unsure = refuse(
  'busy',
  'self',
  'the other machines of this service do not state what they have accepted: try again in some seconds',
)

const selling = refuse(
  'busy',
  'self',
  'this item lies in a bundle that is being paid for at another machine of this service: try again in some seconds',
)

/** What is known of bundles that were accepted here. */
export interface BundlesHere {
  /** What lies in them is not all noted. */
  readonly isBehind: boolean
  /** The one in which an item lies, as far as its header states. */
  bundleOf(id: Id): Id | undefined
}

/**
 * Looks up here whether an item was paid for before, and then at the gateways of the network. It may not be certain yet what lies
 * in the bundles that were accepted here, or what other machines of this service have accepted. Until then items count as new
 * only where their owner is at home (`PostedItem.isAtHome`). `machines`: absent where there are no others.
 */
export class ServicePosts implements PostHistory {
  constructor(
    private readonly bundles: BundlesHere,
    private readonly machines: Pick<ItemsElsewhere, 'has'> | undefined,
    private readonly network: PostHistory,
  ) {}

  async wasPosted(item: PostedItem): Promise<boolean | Refusal> {
    const { isAtHome, mayGoUnchecked } = item
    if (this.bundles.bundleOf(item.id) !== undefined) return true
    const mayBeUnsure = isAtHome && mayGoUnchecked
    if (this.bundles.isBehind && !mayBeUnsure) return behind
    const isElsewhere = this.machines === undefined ? false : await this.machines.has(item.id)
    if (isElsewhere === true) return true
    // Paid or not: that is known soon.
    if (isElsewhere === 'selling') return selling
    if (isElsewhere === undefined && !mayBeUnsure) return unsure
    return this.network.wasPosted(item)
  }

  noteOutcome(item: PostedItem, isPaid: boolean): void {
    this.network.noteOutcome(item, isPaid)
  }
}
