import { type Refusal, refuse } from '../../format/refusal.js'
import type { EarlierPost, PostedItem } from './earlier-post.js'

const behind = refuse(
  'busy',
  'self',
  'bundles that were accepted before are read again, to see what they have paid for: try again in some seconds',
)

/** What is known of bundles that were accepted here. */
export interface BundlesHere {
  /** What lies in them is not all noted. */
  readonly isBehind: boolean
}

/**
 * Looks up here whether an item was paid for before, and then asks the gateways of the network. While it is not certain what lies
 * in the bundles that were accepted here, items count as new only where their owner is at home.
 */
export class AcceptedBefore implements Pick<EarlierPost, 'isKnown' | 'settled'> {
  constructor(
    private readonly bundles: BundlesHere,
    private readonly network: Pick<EarlierPost, 'isKnown' | 'settled'>,
  ) {}

  async isKnown(item: PostedItem): Promise<boolean | Refusal> {
    const { isAtHome, mayGoUnasked } = item
    if (this.bundles.isBehind && !(isAtHome && mayGoUnasked)) return behind
    return this.network.isKnown(item)
  }

  settled(item: PostedItem, isPaid: boolean): void {
    this.network.settled(item, isPaid)
  }
}
