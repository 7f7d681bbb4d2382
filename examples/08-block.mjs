// Blocks content by its id: it is 451 from then on, at once on every thread.
// node examples/08-block.mjs ID data/keys/admin.key
import { readFileSync } from 'node:fs'

const gateway = process.env.GATEWAY ?? 'http://127.0.0.1:3000'
const [id, keyFile = 'data/keys/admin.key'] = process.argv.slice(2)
const key = readFileSync(keyFile, 'utf8').trim()

console.log(`before: ${(await fetch(`${gateway}/raw/${id}`)).status}`)
const order = await fetch(`${gateway}/gateway/admin/block-data`, {
  method: 'PUT',
  headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
  body: JSON.stringify({ id, notes: 'an example', source: 'examples' }),
})
console.log(`block:  ${order.status} ${await order.text()}`)
const { status } = await fetch(`${gateway}/raw/${id}`)
console.log(`after:  ${status}`)
if (status !== 451) process.exitCode = 1
