import { appTag, type Dice, halfTag, named, rareTag } from './index-chain.js'
import type { SqliteSelection } from './index-sqlite-reader.js'

/** What both sides are asked, each in its own words. */
export interface Question {
  readonly variables: Record<string, unknown>
  readonly sqlite: SqliteSelection
}

/** As applications ask: everything that a list of results shows. */
export const document = `query (
  $ids: [ID!], $tags: [TagFilter!], $owners: [String!], $block: BlockFilter, $first: Int, $after: String
) {
  transactions(ids: $ids, tags: $tags, owners: $owners, block: $block, first: $first, after: $after) {
    pageInfo { hasNextPage }
    edges { cursor node {
      id tags { name value } data { size type } block { height timestamp } owner { address } bundledIn { id }
    } }
  }
}`

export interface Scope {
  readonly owners: number
  readonly lastHeight: number
  /** Ids of rows here and there. */
  readonly ids: readonly Buffer[]
}

export const kinds = [
  ...['tag + owner + heights', 'tag on half AND tag on 50', 'tag on 50 AND tag on half', 'newest'],
  ...['tag, newest', 'two common tags', 'owner, newest', 'heights', 'one id'],
]

const limit = 10

/** Questions drawn by the same laws as the chain. */
export function questionsOf(kind: string, dice: Dice, { owners, lastHeight, ids }: Scope): Question {
  const app = appTag(dice.zipf(200))
  const owner = named(1, dice.zipf(owners))
  const min = 1000 + dice.below(lastHeight - 1000)
  const max = min + dice.below(lastHeight - min + 1)
  const tag = ({ name, value }: { name: string; value: string }) => ({ name, values: [value] })
  const byOwner = [owner.toString('base64url')]
  const block = { min, max }
  const range = { minHeight: min, maxHeight: max }
  switch (kind) {
    case 'tag + owner + heights':
      return {
        variables: { tags: [tag(app)], owners: byOwner, block, first: limit },
        sqlite: { tags: [app], owner, ...range, limit },
      }
    case 'tag on half AND tag on 50':
      return {
        variables: { tags: [tag(halfTag), tag(rareTag)], first: 100 },
        sqlite: { tags: [halfTag, rareTag], limit: 100 },
      }
    case 'tag on 50 AND tag on half':
      return {
        variables: { tags: [tag(rareTag), tag(halfTag)], first: 100 },
        sqlite: { tags: [rareTag, halfTag], limit: 100 },
      }
    case 'newest':
      return { variables: { first: limit }, sqlite: { limit } }
    case 'tag, newest':
      return { variables: { tags: [tag(app)], first: limit }, sqlite: { tags: [app], limit } }
    case 'two common tags':
      return {
        variables: { tags: [tag(app), tag(halfTag)], first: limit },
        sqlite: { tags: [app, halfTag], limit },
      }
    case 'owner, newest':
      return { variables: { owners: byOwner, first: limit }, sqlite: { owner, limit } }
    case 'one id': {
      const id = ids[dice.below(ids.length)] ?? Buffer.alloc(32)
      return { variables: { ids: [id.toString('base64url')], first: limit }, sqlite: { id, limit } }
    }
    default:
      return { variables: { block, first: limit }, sqlite: { ...range, limit } }
  }
}

interface Told {
  readonly data: { readonly transactions: { readonly edges: readonly { readonly cursor: string }[] } }
}

/** The question for page `page` of the half of all items; `ask` answers what leads there. */
export function deepQuestion(ask: (variables: Record<string, unknown>) => string, page: number): Question {
  const tags = [{ name: halfTag.name, values: [halfTag.value] }]
  let after: string | undefined
  for (let left = (page - 1) * limit; left > 0; left -= 1000) {
    const told = JSON.parse(ask({ tags, first: Math.min(left, 1000), after })) as Told
    after = told.data.transactions.edges.at(-1)?.cursor ?? after
  }
  const variables = { tags, first: limit, ...(after === undefined ? {} : { after }) }
  if (after === undefined) return { variables, sqlite: { tags: [halfTag], limit } }
  const list: unknown = JSON.parse(Buffer.from(after, 'base64url').toString())
  const [height, index, isItem, id] = list as [number, number, boolean, string]
  const before = { height, place: index * 2 + Number(isItem), id: Buffer.from(id, 'base64url') }
  return { variables, sqlite: { tags: [halfTag], limit, before } }
}
