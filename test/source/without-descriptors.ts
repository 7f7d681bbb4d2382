import { randomBytes } from 'node:crypto'
import { closeSync, openSync, utimesSync } from 'node:fs'
import { pause } from '../../src/actor/clock.js'
import { isRefusal } from '../../src/format/refusal.js'
import { blobPath } from '../../src/store/blobs.js'
import { eventually } from '../eventually.js'
import { drain, gateways, rig, sha256, someId, sure, upstream } from './rig.js'

/** Runs with few descriptors (`ulimit -n`), takes all of them, and says in JSON what became of a blob meanwhile. */
const body = randomBytes(5000)
const digest = sha256(body)
const server = await upstream((_, response) => response.end(body))
const house = await rig({ source: gateways([server.url]) })
const edge = house.edge()
const id = someId()
const content = edge.grow(sure(await edge.open(id)))
await drain(content, 0, body.length)
content.close()
await eventually(
  'the content is stored, and no transfer held',
  () => house.catalog.blobSize(digest) !== undefined && house.fetcher.held === 0,
)
// Another file as far as anybody can tell: what was hashed is remembered, and would not be opened for a check.
utimesSync(blobPath(house.store.folder, digest), 1, 1)

const taken: number[] = []
function takeAll(): boolean {
  const before = taken.length
  try {
    for (;;) taken.push(openSync('/dev/null', 'r'))
  } catch {
    return taken.length === before
  }
}
// What ended a moment ago gives its descriptors back a little later.
for (let still = 0; still < 20; still = takeAll() ? still + 1 : 0) await pause(5)
const checked = await edge.address.ask({ kind: 'check', id, digest })
const opened = await edge.open(id)
const recorded = house.catalog.blobSize(digest)
for (const file of taken) closeSync(file)
const after = await edge.address.ask({ kind: 'check', id, digest })
const without = isRefusal(checked) || checked.kind !== 'refused' ? checked : checked.refusal.refused
const found = { without, opened: isRefusal(opened) ? opened.refused : opened, recorded, after }
process.stdout.write(JSON.stringify(found))
await house.close()
await server.close()
