// Fetches content by id and checks it: the digest of the bytes, and the gateway's signature over its words (RFC 9421).
// node examples/01-fetch-and-verify.mjs [ID]
import { createHash, createPublicKey, verify } from 'node:crypto'

const gateway = process.env.GATEWAY ?? 'http://127.0.0.1:3000'
const id = process.argv[2] ?? (await newestId())

const path = `/raw/${id}`
const answer = await fetch(`${gateway}${path}`, { headers: { 'accept-encoding': 'identity' } })
if (answer.status !== 200) throw new Error(`${gateway}${path}: ${answer.status} ${await answer.text()}`)
const bytes = Buffer.from(await answer.arrayBuffer())

const digest = createHash('sha256').update(bytes).digest('base64')
const isWhole = answer.headers.get('content-digest') === `sha-256=:${digest}:`
const signer = signedBy(answer)
console.log(`${bytes.length} bytes of ${answer.headers.get('content-type')}`)
console.log(`digest     ${isWhole ? 'agrees' : 'DIFFERS'}`)
console.log(`signature  ${signer === undefined ? 'FALSE' : `by ${signer}`}`)
console.log(`proven     ${answer.headers.get('x-gateway-verified')} (against the chain, by the gateway)`)
if (!isWhole || signer === undefined) process.exitCode = 1

/** The key that signed the headers; undefined where the signature is false. */
function signedBy({ status, headers }) {
  const [, parameters = ''] = /^sig1=(.*)$/.exec(headers.get('signature-input') ?? '') ?? []
  const [, signature = ''] = /^sig1=:(.*):$/.exec(headers.get('signature') ?? '') ?? []
  const [, components = ''] = /^\(([^)]*)\)/.exec(parameters) ?? []
  const [, key = ''] = /keyid="ed25519:([\w-]+)"/.exec(parameters) ?? []
  const derived = { '"@status"': String(status), '"@method";req': 'GET', '"@path";req': path }
  const lines = components.split(' ').map((name) => {
    return `${name}: ${derived[name] ?? headers.get(name.replaceAll('"', ''))}`
  })
  const signed = [...lines, `"@signature-params": ${parameters}`].join('\n')
  const publicKey = createPublicKey({ key: { kty: 'OKP', crv: 'Ed25519', x: key }, format: 'jwk' })
  return verify(null, Buffer.from(signed), publicKey, Buffer.from(signature, 'base64')) ? key : undefined
}

async function newestId() {
  const query =
    '{ transactions(first: 1, tags: [{name: "Content-Type", values: ["image/png"]}]) { edges { node { id } } } }'
  const answer = await fetch(`${gateway}/graphql`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ query }),
  })
  return (await answer.json()).data.transactions.edges[0].node.id
}
