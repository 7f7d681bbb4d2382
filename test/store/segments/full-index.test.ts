import { execFileSync } from 'node:child_process'
import { statSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import t from 'tap'
import { isRefusal } from '../../../src/format/refusal.js'
import { scratch } from '../../scratch.js'
import { payloadOf, SegmentRig, sha256 } from './rig.js'

const limited = fileURLToPath(new URL('./limited.js', import.meta.url))
const payloads = 4000
const limitBytes = 2 ** 19

t.test('an index that the system lets not grow: all goes on, and it is used again when it may', async (t) => {
  const folder = scratch('full-index')
  // The system's own limit: writes beyond it fail, inside LMDB too. It counts in 512 bytes.
  const words = `ulimit -f ${limitBytes / 512} && exec "$@"`
  const out = execFileSync('sh', ['-c', words, 'sh', process.execPath, limited, folder, String(payloads)])
  const counts = JSON.parse(out.toString()) as { kept: number; found: number; wrong: number }
  t.equal(counts.wrong, 0)
  t.equal(counts.found, counts.kept, 'what was said to be kept is there')
  t.ok(counts.kept > 1000)
  const index = join(folder, 'segments', 'index', 'data.mdb')
  t.ok(statSync(index).size <= limitBytes)
  let found = 0
  for (let start = 0; start < 2; start += 1) {
    const rig = new SegmentRig(folder, { segmentBytes: 2 ** 19, maxBytes: 2 ** 25 })
    found = 0
    for (let seed = 0; seed < payloads; seed += 1) {
      const bytes = payloadOf(40, seed)
      const there = await rig.get(sha256(bytes))
      if (there?.equals(bytes) === true) found += 1
      else if (there !== undefined) t.fail(`wrong bytes of ${seed}`)
      else t.notOk(isRefusal(rig.store.put(sha256(bytes), [bytes])))
    }
    await rig.close()
  }
  t.equal(found, payloads, 'at the second start all is there')
  t.ok(statSync(index).size > limitBytes, 'the index needed more than it was let have')
})
