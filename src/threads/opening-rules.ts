import { itemFilterJson } from '../../config/item-filter-text.js'
import type { OpeningRules } from '../ingest/bundle-opening.js'
import { ingestDefaults } from '../ingest/ingest-parts.js'
import type { Settings } from './thread-settings.js'

/** What of bundles is opened and indexed. */
export function openingRules({ server, indexing }: Settings<'indexing' | 'server'>): OpeningRules {
  const isMainnet = server.network === 'mainnet'
  const usual = isMainnet ? ({ kind: 'never' } as const) : ({ kind: 'always' } as const)
  const { depthMax, entriesMax, entriesAtOnce, heldMaxBytes } = ingestDefaults.unbundle
  return {
    unbundle: indexing.unbundleFilter ?? usual,
    index: indexing.indexFilter ?? usual,
    depthMax,
    entriesMax,
    entriesAtOnce,
    heldMaxBytes,
  }
}

/** The same, as `/info` shows it. */
export function openingAbout(
  config: Settings<'indexing' | 'server'>,
): Readonly<Record<'ans104UnbundleFilter' | 'ans104IndexFilter', object>> {
  const { unbundle, index } = openingRules(config)
  return { ans104UnbundleFilter: itemFilterJson(unbundle), ans104IndexFilter: itemFilterJson(index) }
}
