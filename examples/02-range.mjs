// Asks for parts of content, and goes on with a download that broke off.
// node examples/02-range.mjs [ID]
const gateway = process.env.GATEWAY ?? 'http://127.0.0.1:3000'
const id = process.argv[2] ?? (await largestId())
const url = `${gateway}/raw/${id}`

const head = await fetch(url, { method: 'HEAD' })
const sizeBytes = Number(head.headers.get('content-length'))
console.log(`${id}: ${sizeBytes} bytes`)

const first = await part('bytes=0-99')
console.log(`the first 100 bytes: ${first.status} ${first.headers.get('content-range')}`)
await first.arrayBuffer()
const last = await part('bytes=-100')
console.log(`the last 100 bytes:  ${last.status} ${last.headers.get('content-range')}`)
await last.arrayBuffer()

// A download that broke off in the middle. If-Range: the rest is sent only while the content is the same, else all of it.
const half = Math.floor(sizeBytes / 2)
const rest = await part(`bytes=${half}-`, { 'if-range': head.headers.get('etag') })
const got = (await rest.arrayBuffer()).byteLength
console.log(`from byte ${half} on:  ${rest.status}, ${got} bytes`)
if (first.status !== 206 || rest.status !== 206 || half + got !== sizeBytes) process.exitCode = 1

function part(range, headers = {}) {
  return fetch(url, { headers: { range, ...headers } })
}

async function largestId() {
  const query = '{ transactions(first: 100) { edges { node { id data { size } } } } }'
  const answer = await fetch(`${gateway}/graphql`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ query }),
  })
  const nodes = (await answer.json()).data.transactions.edges.map(({ node }) => node)
  return nodes.reduce((best, node) => (Number(node.data.size) > Number(best.data.size) ? node : best)).id
}
