import type { Source } from '../../source/source.js'
import { hedged } from '../../source/tier/hedged-source.js'
import { assemble } from '../../source/upstream/assemble.js'
import { inOrder } from '../../source/upstream/in-order.js'
import type { Settings } from '../thread-settings.js'

/** What content is requested from. */
export interface SourcesToOrder {
  /** All that the settings name. */
  readonly built: readonly Source[]
  /** Uploads of other machines; absent: there are none. */
  readonly neighbours: Source | undefined
  /** The object store; absent: there is none. */
  readonly tier: Source | undefined
}

/**
 * All sources as one, in the order in which a transfer tries them: what is on this disk, uploads of neighbours, the object store,
 * the network. Neither of the two in the middle keeps a reader waiting where it is silent.
 */
export function sourceOrder(
  { retrieval, contentStore }: Settings<'retrieval' | 'contentStore'>,
  { built, neighbours, tier }: SourcesToOrder,
): Source {
  const { hedgeMs } = contentStore
  const here = assemble('here', ['uploads', 'parent'], built)
  const network = assemble('on-demand', retrieval.onDemandOrder, built)
  const withTier = tier === undefined ? network : hedged(tier, network, hedgeMs)
  const elsewhere = neighbours === undefined ? withTier : hedged(neighbours, withTier, hedgeMs)
  return inOrder(network.name, [here, elsewhere])
}

/** Where proven bytes are requested in the background. */
export function backgroundOrder({ retrieval }: Settings<'retrieval'>, built: readonly Source[]): Source {
  return assemble('background', retrieval.backgroundOrder, built)
}
