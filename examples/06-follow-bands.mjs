// Reads the index that a gateway publishes (INDEX_PUBLISH=true there), fetches every file of its bands and compares it with the
// digest that the publication names. A gateway does this by itself: INDEX_SUBSCRIPTIONS=<address>#<key of the publisher>.
// node examples/06-follow-bands.mjs
import { createHash } from 'node:crypto'

const gateway = process.env.GATEWAY ?? 'http://127.0.0.1:3000'
const answer = await fetch(`${gateway}/gateway/indexes`)
if (answer.status !== 200)
  throw new Error(
    `${answer.status}: this gateway publishes nothing (it was started without INDEX_PUBLISH=true)`,
  )
const { indexes } = await answer.json()
let count = 0
for (const { name, bands } of indexes) {
  for (const { id, files } of bands) {
    let sizeBytes = 0
    for (const file of files) {
      const path = `${gateway}/gateway/indexes/${name}/${id}/${file.name}`
      const bytes = Buffer.from(await (await fetch(path)).arrayBuffer())
      const digest = createHash('sha256').update(bytes).digest('hex')
      if (digest !== file.sha256) throw new Error(`${path} is not what was published`)
      sizeBytes += bytes.length
      count += 1
    }
    console.log(`${name}  ${id}: ${files.length} files, ${sizeBytes} bytes, each as published`)
  }
}
console.log(`${count} files`)
