import { buildSchema, type GraphQLSchema } from 'graphql'

/**
 * The schema that gateways of this network share, and beyond it, each behind a name of its own, what clients of other
 * indexers use: `count`, `ingested_at`, `NEQ` and `WILDCARD`.
 */
const definition = /* GraphQL */ `
type Query {
  "A transaction or data item by its id; null where the index does not know it."
  transaction(id: ID!): Transaction
  "Transactions and data items, newest first. All filters hold at once; of the values of one filter any will do."
  transactions(
    "Only these."
    ids: [ID!]
    "Addresses of the owners: base64url SHA-256 of the public key."
    owners: [String!]
    "Addresses of the recipients."
    recipients: [String!]
    tags: [TagFilter!]
    "Items of these bundles; null: base-layer transactions only."
    bundledIn: [ID!]
    "Heights, inclusive; a bound leaves out what is in no block yet."
    block: BlockFilter
    "When this index first saw it: seconds since 1970, inclusive."
    ingested_at: RangeFilter
    "At most 1000."
    first: Int = 10
    """
    The end cursor of the page before, or the cursor of its last edge. Nothing is left out that was there when it was given: what
    has moved since, into a block or by a fork, may be given again.
    """
    after: String
    "What is in no block yet is newer than all blocks, in the order of arrival."
    sort: SortOrder = HEIGHT_DESC
    parent: [ID!] @deprecated(reason: "Use bundledIn")
  ): TransactionConnection!
  "A block by its id; null where the index does not know it."
  block(id: String!): Block
  blocks(
    ids: [ID!]
    "Heights, inclusive."
    height: BlockFilter
    "At most 1000."
    first: Int = 10
    after: String
    sort: SortOrder = HEIGHT_DESC
  ): BlockConnection!
}

input TagFilter {
  name: String!
  values: [String!]!
  op: TagOperator = EQ
  match: TagMatch = EXACT
}

enum TagOperator {
  EQ
  "No tag of this name has any of the values."
  NEQ
}

enum TagMatch {
  EXACT
  "A value may end in *, which stands for anything."
  WILDCARD
}

input BlockFilter {
  min: Int
  max: Int
}

input RangeFilter {
  min: Int
  max: Int
}

enum SortOrder {
  HEIGHT_ASC
  HEIGHT_DESC
}

type TransactionConnection {
  pageInfo: PageInfo!
  edges: [TransactionEdge!]!
  "How many there are on all pages; null where counting would take too long."
  count: Int
}

type TransactionEdge {
  cursor: String!
  node: Transaction!
}

type BlockConnection {
  pageInfo: PageInfo!
  edges: [BlockEdge!]!
}

type BlockEdge {
  cursor: String!
  node: Block!
}

type PageInfo {
  "Whether there is, or may be, more behind this page."
  hasNextPage: Boolean!
  """
  Where the next page begins; null where nothing was found and nothing is behind. A page that ended early, which a warning
  says, goes on from here even where it has no edges. Without this field such an empty page is an error whose extensions
  have the cursor.
  """
  endCursor: String
}

type Transaction {
  id: ID!
  anchor: String!
  "Empty where it cannot be had at the moment: then errors say so."
  signature: String!
  "Number of the signature scheme, of data items."
  signatureType: Int
  "Empty where there is none."
  recipient: String!
  owner: Owner!
  fee: Amount!
  quantity: Amount!
  data: MetaData!
  tags: [Tag!]!
  "Null while it is in no block."
  block: Block
  parent: Parent @deprecated(reason: "Use bundledIn")
  "The bundle that holds it, of data items."
  bundledIn: Bundle
  "When this index first saw it: seconds since 1970."
  ingested_at: Int
}

type Owner {
  "base64url SHA-256 of the public key."
  address: String!
  "The public key; empty where it cannot be had at the moment: then errors say so."
  key: String!
}

type Amount {
  winston: String!
  ar: String!
}

type MetaData {
  "Bytes, decimal."
  size: String!
  "The value of the first tag called Content-Type, in any letter case."
  type: String
}

type Tag {
  name: String!
  value: String!
}

type Bundle {
  id: ID!
}

type Parent {
  id: ID!
}

type Block {
  id: ID!
  "Seconds since 1970."
  timestamp: Int!
  height: Int!
  previous: ID!
}
`

/** The executable schema. Its resolvers are the methods of the values in transaction-queries.ts and block-queries.ts. */
export const schema: GraphQLSchema = buildSchema(definition)
