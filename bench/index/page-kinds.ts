import type { Selection } from '../../src/catalog/selection.js'
import type { RowsWanted } from '../../src/index/segment-pages.js'
import { appTag, halfTag, named } from './chain.js'

/** An id that no row has. */
export const noId: Uint8Array = Buffer.alloc(32)

interface Kind {
  readonly name: string
  readonly wanted: (at: number) => Selection & RowsWanted
}

/** The kinds of pages, about what the made-up chain has. `bundles` may grow. */
export function pageKinds(bundles: readonly Uint8Array[], owners: number): Kind[] {
  const tag = ({ name, value }: { name: string; value: string }) => ({
    name: Buffer.from(name),
    values: [Buffer.from(value)],
    match: 'is' as const,
  })
  const spread = (at: number, count: number): number => Math.floor((at * 7919) % Math.max(1, count))
  return [
    { name: 'tag', wanted: (at) => ({ tags: [tag(appTag(spread(at, 200)))] }) },
    { name: 'owner', wanted: (at) => ({ owners: [named(1, spread(at, owners))] }) },
    { name: 'recipient', wanted: (at) => ({ recipients: [named(2, spread(at, owners))] }) },
    {
      name: 'bundledIn',
      wanted: (at) => ({ bundledIn: [bundles[spread(at, bundles.length)] ?? noId] }),
    },
    { name: 'two tags', wanted: (at) => ({ tags: [tag(halfTag), tag(appTag(spread(at, 200)))] }) },
    { name: 'all', wanted: () => ({}) },
  ]
}
