/** What the query page offers to begin with. */
export const examples: readonly { readonly name: string; readonly text: string; readonly values?: object }[] =
  [
    {
      name: 'Newest transactions and items',
      text: `{
  transactions(first: 5) {
    pageInfo { hasNextPage }
    edges {
      cursor
      node {
        id
        owner { address }
        data { size type }
        tags { name value }
        block { height timestamp }
      }
    }
  }
}`,
    },
    {
      name: 'By tag, and the page after this one',
      text: `query ByTag($values: [String!]!, $after: String) {
  transactions(
    tags: [{ name: "Content-Type", values: $values }]
    first: 10
    after: $after
  ) {
    pageInfo { hasNextPage }
    edges { cursor node { id data { size type } } }
  }
}`,
      values: { values: ['text/html', 'image/png'], after: null },
    },
    {
      name: 'By owner, oldest first',
      text: `query ByOwner($owner: String!) {
  transactions(owners: [$owner], sort: HEIGHT_ASC, first: 10) {
    edges { node { id recipient quantity { ar } block { height } } }
  }
}`,
      values: { owner: 'A'.repeat(43) },
    },
    {
      name: 'Items of a bundle',
      text: `query InBundle($bundle: ID!) {
  transactions(bundledIn: [$bundle], first: 10) {
    edges { node { id bundledIn { id } data { size type } } }
  }
}`,
      values: { bundle: 'A'.repeat(43) },
    },
    {
      name: 'Blocks',
      text: `{
  blocks(first: 5) {
    edges { node { id height timestamp previous } }
  }
}`,
    },
  ]
