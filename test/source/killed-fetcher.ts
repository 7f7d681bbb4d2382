/** A process that fetches into a store until it is killed; says when the first payload was kept. */
import { gateways, rig, someId, sure } from './rig.js'

const [, , path = '', url = ''] = process.argv
const house = await rig({ source: gateways([url]), path })
const edge = house.edge()
let isReported = false
for (;;) {
  await Promise.all(
    Array.from({ length: 4 }, async () => {
      const content = edge.grow(sure(await edge.open(someId())))
      while (!(await content.ready(content.sizeBytes - 1, content.sizeBytes)));
      content.close()
    }),
  )
  if (!isReported && house.kept.length > 0) {
    isReported = true
    process.send?.('kept')
  }
}
