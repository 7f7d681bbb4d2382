import { isRefusal } from '../../../src/format/refusal.js'
import { payloadOf, SegmentRig, sha256 } from './rig.js'

/** A process whose files may not grow beyond a limit: fills a store, reads all of it, and prints what it found. */
const [, , folder = '', payloads = '0'] = process.argv
const rig = new SegmentRig(folder, { segmentBytes: 2 ** 19, maxBytes: 2 ** 25 })
const counts = { kept: 0, found: 0, wrong: 0 }
for (let seed = 0; seed < Number(payloads); seed += 1) {
  const bytes = payloadOf(40, seed)
  if (!isRefusal(rig.store.put(sha256(bytes), [bytes]))) counts.kept += 1
  if (seed % 500 === 0) rig.store.commit()
}
for (let seed = 0; seed < Number(payloads); seed += 1) {
  const found = await rig.get(sha256(payloadOf(40, seed)))
  if (found === undefined) continue
  counts.found += 1
  if (!found.equals(payloadOf(40, seed))) counts.wrong += 1
}
await rig.close()
process.stdout.write(JSON.stringify(counts))
