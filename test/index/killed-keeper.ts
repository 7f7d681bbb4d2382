/** A process that adds segments and merges them until it is killed, and says how many batches are in them. */
import { rmSync } from 'node:fs'
import { KeptSegments } from './kept-segments.js'

const [, , path = '', batchesMax = '0'] = process.argv
const kept = new KeptSegments(path)
process.send?.(kept.batches)
while (kept.batches < Number(batchesMax)) {
  process.send?.(kept.addNext())
  while (kept.keeper.tend() === 'more') {
    process.send?.(kept.batches)
    await new Promise(setImmediate)
  }
  const retired = kept.keeper.takeRetired()
  await kept.environment.flushed()
  for (const file of retired) rmSync(file)
}
await kept.close()
process.disconnect?.()
