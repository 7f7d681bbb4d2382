/** Each route that takes a body gets one byte by byte: it takes memory for its bytes, and not for their number of pieces. */
import { setImmediate as turn } from 'node:timers/promises'
import t from 'tap'
import { collector } from '../../src/actor/idle-memory.js'
import type { BodySink } from '../../src/http/exchange.js'
import { ed25519Signer, signItem } from '../../src/proof/sign.js'
import { openUploadTables } from '../../src/upload/records/uploads.js'
import { answered, requestOf, uploadRig } from './upload-rig.js'

const collect = collector()
const bytes = 20_000
/** A list of pieces took some 200. */
const eachMaxBytes = 60

function heldBytes(): number {
  collect()
  collect()
  const { heapUsed, external } = process.memoryUsage()
  return heapUsed + external
}

t.test('a body that comes byte by byte takes little memory on any route', async (t) => {
  const environment = openUploadTables(t.testdir())
  t.teardown(() => environment.close())
  const rig = await uploadRig(t, environment, { isRich: true })
  const item = signItem(ed25519Signer(Buffer.alloc(32, 3)), {}, Buffer.alloc(2 * bytes, 'x'))
  const beginning = '/chunks/{token}/-1/-1'
  const begun = await answered(rig, beginning, requestOf('GET', beginning, { query: 'chunkSize=5242880' }))
  const words = { token: 'arweave', uploadId: (begun.json as { id: string }).id, offset: '0' }
  const taken: string[] = []
  for (const { method = 'GET', path } of rig.routes.filter((route) => route.method !== 'GET')) {
    const sinks: BodySink[] = []
    const headers = { 'content-length': String(item.length), 'upload-complete': '?1' }
    const request = {
      ...requestOf(method, path, { headers }),
      stream: (sink: BodySink) => {
        sinks.push(sink)
        return { pause: () => undefined, resume: () => undefined }
      },
    }
    const answering = answered(rig, path, request, words)
    await turn()
    const [sink] = sinks
    if (sink === undefined) continue
    const before = heldBytes()
    for (let at = 0; at < bytes; at += 1) sink.piece(item.subarray(at, at + 1))
    const each = (heldBytes() - before) / bytes
    taken.push(`${method} ${path}`)
    t.ok(each < eachMaxBytes, `${method} ${path}: ${each.toFixed(0)} bytes of memory a byte`)
    sink.over({ refused: 'malformed', fault: 'client', message: 'the client left' })
    await answering
  }
  t.ok(taken.includes('POST /tx'), taken.join(', '))
  t.ok(taken.length > 2, `${taken.length} routes take a body`)
})
