// Queries the index of the chain, page by page.
// node examples/03-graphql.mjs
const gateway = process.env.GATEWAY ?? 'http://127.0.0.1:3000'
const query = `query Pages($after: String) {
  transactions(first: 2, after: $after, sort: HEIGHT_DESC, tags: [{ name: "Content-Type", values: ["*"], match: WILDCARD }]) {
    pageInfo { hasNextPage }
    edges { cursor node { id data { size type } block { height } owner { address } bundledIn { id } } }
  }
}`

let after
let count = 0
for (;;) {
  const answer = await fetch(`${gateway}/graphql`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ query, variables: { after } }),
  })
  const { data, errors } = await answer.json()
  if (errors !== undefined) throw new Error(errors.map(({ message }) => message).join('; '))
  const { edges, pageInfo } = data.transactions
  for (const { node } of edges) {
    const place = node.bundledIn === null ? 'on its own' : `in ${node.bundledIn.id.slice(0, 8)}…`
    console.log(`${node.id}  ${node.data.type}  ${node.data.size} bytes  ${place}`)
  }
  count += edges.length
  if (!pageInfo.hasNextPage || edges.length === 0 || count >= 20) break
  after = edges.at(-1).cursor
}
console.log(`${count} of them`)
