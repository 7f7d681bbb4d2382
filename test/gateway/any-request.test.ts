import { writeFileSync } from 'node:fs'
import t from 'tap'
import { pause, systemClock } from '../../src/actor/clock.js'
import { silentLog } from '../../src/actor/log.js'
import { Meters, meterBytes } from '../../src/actor/meter.js'
import { meterTable } from '../../src/actor/meter-table.js'
import { Tip } from '../../src/actor/shared.js'
import { vocabularies } from '../../src/attest/vocabulary.js'
import type { Attributes } from '../../src/catalog/attributes.js'
import type { Id } from '../../src/format/id.js'
import { parseManifest } from '../../src/format/manifest.js'
import { packManifest } from '../../src/format/packed-manifest.js'
import { tagOf } from '../../src/format/tag.js'
import { type GatewayParts, gatewayDefaults } from '../../src/gateway/gateway-parts.js'
import type { Head, Piece, Reply, Request } from '../../src/http/exchange.js'
import { writeHead } from '../../src/http/write-head.js'
import { EdgeHandler } from '../../src/routes/edge-handler.js'
import type { Route } from '../../src/serving/route.js'
import { stampOf } from '../../src/store/file-stamp.js'
import type { FileContent } from '../../src/store/mapped.js'
import { fc } from '../property.js'
import { manifestLimits, sha256, someId } from '../source/rig.js'
import { contentOnly } from './rig.js'

/** Contents of this gateway by id; every fifth byte of a type or tag is nothing that belongs into a header. */
const bodies = new Map<Id, Buffer>()
const types = ['text/plain', 'a/b\r\nX-Bad: 1', '\u0000', 'application/x.arweave-manifest+json']
const manifest = JSON.stringify({ version: '0.2.0', index: { id: someId() }, paths: { a: { id: someId() } } })
for (const body of ['', 'x', 'y'.repeat(50_000), manifest]) bodies.set(someId(), Buffer.from(body))
const ids = [...bodies.keys()]
/** The manifest as the fetcher would have it packed. */
const manifestDigest = sha256(Buffer.from(manifest))
const manifestPath = `${t.testdir()}/packed`
const read = parseManifest(Buffer.from(manifest), manifestLimits)
writeFileSync(manifestPath, packManifest(read, manifestDigest, manifestLimits))
const outbox = Buffer.alloc(2 ** 18)

function attributesOf(id: Id): Attributes | undefined {
  const body = bodies.get(id)
  const contentType = types[ids.indexOf(id)]
  if (body === undefined || contentType === undefined) return undefined
  const header = {
    signatureType: 1,
    signature: body.subarray(0, 9),
    owner: body.subarray(0, 9),
    ownerAddress: id,
    target: body.subarray(0, 0),
    anchor: body.subarray(0, 0),
    tags: [tagOf('A\r\nB', 'c\r\nd\u00e9')],
  }
  return { id, size: body.length, digest: sha256(body), contentType, header, verified: true, trusted: true }
}

let openContents = 0
function contentOf(path: string): FileContent | undefined {
  const body = [...bodies.values()].find((one) => sha256(one).toString('hex') === path)
  if (body === undefined) return undefined
  openContents += 1
  const content: FileContent = {
    sizeBytes: body.length,
    stamp: stampOf(1n, 1n),
    read(start, end) {
      if (start < 0 || start >= end || end > body.length) throw new RangeError('outside')
      return body.subarray(start, end)
    },
    ready: async () => true,
    close: () => {
      openContents -= 1
    },
  }
  return content
}

const meters = new Meters(meterTable, new SharedArrayBuffer(meterBytes(meterTable, 1)), 0)
const routed = (path: string, about: Pick<Route, 'isForOperators'> = {}): Route => ({
  family: 'other',
  path,
  methods: ['GET'],
  about: [{ path, summary: path, statuses: [200] }],
  handle: (_, reply) => reply.end({ status: 200, block: '' }, path),
  ...about,
})
const parts: GatewayParts = {
  catalog: {
    attributes: attributesOf,
    blobSize: () => 1,
    holder: () => undefined,
    judged: () => undefined,
    generation: () => 1,
  },
  transfers: {
    open: async () => ({ refused: 'unknown', fault: 'client', message: 'nobody has it' }),
    check: async () => true,
    ...contentOnly,
    manifest: async () => ({ digest: manifestDigest, path: manifestPath }),
  },
  blobs: { path: (digest) => Buffer.from(digest).toString('hex'), open: contentOf },
  vocabulary: vocabularies.neutral,
  clientOf: (request) => request.remoteAddress,
  tip: new Tip(),
  meters,
  log: silentLog,
  clock: systemClock,
  options: gatewayDefaults,
  routes: [routed('/for-all'), routed('/for-operators', { isForOperators: true })],
}
const gateway = new EdgeHandler(parts)
const shown = new EdgeHandler({ ...parts, options: { ...gatewayDefaults, operatorsOverTls: true } })
t.teardown(() => shown.close())
t.teardown(() => gateway.close())

interface Answer {
  readonly head: Head
  readonly bytes: number
}

/** Everything that was answered to one request: there must be one answer. */
async function answersTo(
  method: string,
  path: string,
  headers: Record<string, string>,
  { secure = false, by = gateway } = {},
): Promise<Answer[]> {
  const answers: Answer[] = []
  const request: Request = {
    method,
    path,
    query: 'q=1\u00e9',
    remoteAddress: '127.0.0.1',
    secure,
    header: (name) => headers[name],
    headersUnder: (start) => Object.entries(headers).filter(([name]) => name.startsWith(start)),
    body: async () => new Uint8Array(),
    stream: () => ({ pause: () => undefined, resume: () => undefined }),
  }
  const lengthOf = (piece: Piece): number => ('bytes' in piece ? piece.bytes.length : piece.end - piece.start)
  const reply: Reply = {
    aborted: false,
    pace: () => undefined,
    giveUp: () => undefined,
    onAbort: () => undefined,
    delayNext: () => undefined,
    inform: () => undefined,
    end: (head, body = '') => answers.push({ head, bytes: Buffer.byteLength(body) }),
    endEmpty: (head) => answers.push({ head, bytes: 0 }),
    stream(head, pieces, content) {
      const bytes = pieces.reduce((sum, piece) => sum + lengthOf(piece), 0)
      for (const piece of pieces) if ('start' in piece) content.read(piece.start, piece.end)
      content.close()
      answers.push({ head, bytes })
      return { outcome: 'whole', bytes }
    },
  }
  by.handle(request, reply)
  // Some handlers are read from the disk when they are first wanted.
  for (let turns = 0; turns < 5000 && answers.length === 0; turns += 1)
    await (turns < 50 ? new Promise(setImmediate) : pause(2))
  return answers
}

const id = fc.oneof(fc.constantFrom(...ids), fc.constant(someId()), fc.constant('A'.repeat(43)))
const word = fc.oneof(
  fc.string({ maxLength: 20 }),
  fc.constantFrom('..', '%', '%2e%2e', '//', 'raw', 'a', '%00'),
)
const path = fc
  .tuple(fc.constantFrom('/', '/raw/', '/RAW/', '/local/farcaster/frame/', '/x/', ''), id, fc.array(word))
  .map(
    ([start, middle, rest]) =>
      `/${`${start}${middle}${rest.length > 0 ? `/${rest.join('/')}` : ''}`.replace(/^\//, '')}`,
  )
const value = fc.oneof(
  fc.string({ maxLength: 40 }),
  fc.constantFrom('bytes=0-0', 'bytes=-1', 'bytes=0-1,3-4', '*', '"x"', 'bytes=99999-'),
)
const names = [
  'range',
  'if-range',
  'if-match',
  'if-none-match',
  'x-request-id',
  'x-gateway-hops',
  'x-ar-io-via',
  'x-gateway-root-path',
  'access-control-request-headers',
  'user-agent',
]
const headers = fc.dictionary(fc.constantFrom(...names), value, { maxKeys: 5 })
const method = fc.constantFrom('GET', 'GET', 'HEAD', 'POST', 'OPTIONS', 'DELETE', 'TRACE')

t.test('every request gets one answer with a well-formed head, and nothing stays open', async (t) => {
  await t.resolves(
    fc.assert(
      fc.asyncProperty(method, path, headers, async (method, path, headers) => {
        const answers = await answersTo(method, path, headers)
        const [only] = answers
        if (only === undefined || answers.length !== 1) throw new Error(`${answers.length} answers`)
        const { head, bytes } = only
        const text = outbox.toString('latin1', 0, writeHead(outbox, head, '\r\nDate: now', bytes, false))
        for (const line of text.slice(0, -4).split('\r\n').slice(1)) {
          if (!/^[A-Za-z0-9_-]+: [\t\x20-\x7e]*$/.test(line))
            throw new Error(`a bad line: ${JSON.stringify(line)}`)
        }
        if (head.status >= 500) throw new Error(`status ${head.status}`)
        if (method === 'HEAD' && bytes > 0) throw new Error('HEAD with a body')
        if (openContents !== 0) throw new Error('a content stayed open')
        if (meters.total('flows_in_flight') !== 0) throw new Error('a flow was not settled')
      }),
      { numRuns: 3000 },
    ),
  )
})

t.test('routes for operators are not there over TLS, unless they want them', async (t) => {
  const statusOf = async (path: string, more: Parameters<typeof answersTo>[3]) =>
    (await answersTo('GET', path, {}, more))[0]?.head.status
  t.equal(await statusOf('/for-all', { secure: true }), 200)
  t.equal(await statusOf('/for-operators', { secure: true }), 404)
  t.equal(await statusOf('/for-operators', { secure: false }), 200)
  t.equal(await statusOf('/for-operators', { secure: true, by: shown }), 200)
})
