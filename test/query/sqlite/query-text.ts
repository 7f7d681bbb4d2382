import type { Question } from './questions.js'

const query = `query($ids: [ID!], $owners: [String!], $recipients: [String!], $tags: [TagFilter!], $BUNDLED
    $block: BlockFilter, $ingested_at: RangeFilter, $first: Int, $after: String, $sort: SortOrder) {
  transactions(ids: $ids, owners: $owners, recipients: $recipients, tags: $tags, BUNDLED block: $block,
      ingested_at: $ingested_at, first: $first, after: $after, sort: $sort) {
    count pageInfo { hasNextPage endCursor }
    edges { cursor node { id anchor recipient signatureType owner { address } quantity { winston } fee { winston }
      data { size } tags { name value } block { id height timestamp } bundledIn { id } ingested_at } }
  }
}`

/** The text of a question. Null has a meaning for bundles, so they are named only where they are given. */
export function queryOf({ args }: Question): string {
  const name = 'bundledIn' in args ? 'bundledIn' : 'parent' in args ? 'parent' : undefined
  if (name === undefined) return query.replaceAll(/\$?BUNDLED/g, '')
  return query.replace('$BUNDLED', `$${name}: [ID!],`).replace('BUNDLED', `${name}: $${name},`)
}
