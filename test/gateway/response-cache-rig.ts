import { Socket } from 'node:net'
import type { Test } from 'tap'
import { servedBy } from '../../native/server/server.js'
import { systemClock } from '../../src/actor/clock.js'
import { silentLog } from '../../src/actor/log.js'
import { createSigner } from '../../src/attest/answer-signature.js'
import { loadSigningKey } from '../../src/attest/keys.js'
import type { Attributes } from '../../src/catalog/attributes.js'
import { isRefusal } from '../../src/format/refusal.js'
import { Guard } from '../../src/gateway/guard.js'
import { BlockFilter } from '../../src/moderation/block-filter.js'
import { FilteredBlockList } from '../../src/moderation/list.js'
import { marksBytes, SegmentMarks } from '../../src/store/segments/segment-marks.js'
import { SegmentReader } from '../../src/store/segments/segment-reader.js'
import { SegmentStore } from '../../src/store/segments/segment-store.js'
import { eventually } from '../eventually.js'
import { scratch } from '../scratch.js'
import { sha256, someId } from '../source/rig.js'
import { type Answered, askAt, type StageOptions, stage } from './rig.js'

export const skip = servedBy === 'fallback' && 'the fallback has no response cache'
const shape = { cells: 8, segmentBytes: 2 ** 20 }
let folders = 0

/** A gateway over segments, with a block list, whose answers are cached. */
export async function cachingRig(
  reuseSeconds = 60,
  more: { readonly bindRequest?: boolean } & Pick<
    StageOptions,
    'parts' | 'limits' | 'options' | 'isShared'
  > = {},
) {
  folders += 1
  const folder = scratch(`repeating-${folders}`)
  const marks = new SegmentMarks(new SharedArrayBuffer(marksBytes(shape)), shape)
  const rules = {
    folder,
    payloadMaxBytes: 2 ** 19,
    maxBytes: () => 2 ** 23,
    freeMinBytes: 0,
    commitMs: 60_000,
  }
  const kept = { isPinned: () => false, onEvicted: () => undefined }
  const store = SegmentStore.open({ ...rules, ...kept }, marks, systemClock, silentLog)
  const reader = new SegmentReader(folder, marks, systemClock)
  const filter = new BlockFilter()
  const listed = new Set<string>()
  const lookup = {
    has: (kind: string, key: Uint8Array) => listed.has(`${kind} ${Buffer.from(key).toString('hex')}`),
  }
  const list = new FilteredBlockList(filter, lookup, silentLog)
  filter.fill()
  const none = { attributes: () => undefined }
  const key = loadSigningKey({ keyFile: `${folder}/key.pem` })
  const signer = createSigner(key, { bindRequest: more.bindRequest ?? true, reuseSeconds })
  const blobs = { path: () => '/nowhere', open: () => undefined, segments: reader }
  const own = { blobs, guard: new Guard(list, none, 60), signer }
  const edge = await stage({ ...more, parts: { ...own, ...more.parts } })
  return {
    edge,
    store,
    reader,
    marks,
    block(kind: 'id' | 'hash' | 'name', bytes: Uint8Array) {
      listed.add(`${kind} ${Buffer.from(bytes).toString('hex')}`)
      if (kind === 'id') filter.addId(bytes)
      else if (kind === 'name') filter.addName(Buffer.from(bytes).toString())
      else filter.addHash(bytes, undefined)
    },
    async put(body: Buffer, more: Partial<Attributes> = {}) {
      const digest = sha256(body)
      const place = store.put(digest, [body])
      if (isRefusal(place)) throw new Error(place.message)
      store.commit()
      const id = someId()
      await edge.rig.keeper.ask({ kind: 'kept', digest, sizeBytes: body.length })
      const known = { id, size: body.length, digest, verified: true, trusted: true, ...more }
      await edge.rig.keeper.ask({ kind: 'learn', attributes: [{ contentType: 'text/plain', ...known }] })
      return id
    },
    fromCache: () => edge.meters.value('answers_repeated_total', {}),
    async close() {
      await edge.close()
      await reader.close()
      await store.close()
    },
  }
}

export type Rig = Awaited<ReturnType<typeof cachingRig>>

/** Pages of failures show the request id, too. */
const shownIds = /(<code class="whole">)[^<]*/g

/** Without what differs from one answer to the next. */
export function comparable({ status, fields, body }: Answered): string {
  const own = /^(x-request-id|date|signature|signature-input)$/i
  return JSON.stringify([
    status,
    fields.filter(([name]) => !own.test(name)),
    body.toString('latin1').replaceAll(shownIds, '$1'),
  ])
}

/** Asks until the answer is cached. */
export async function warm(
  rig: Rig,
  path: string,
  wish: Parameters<Rig['edge']['ask']>[1] = {},
): Promise<void> {
  const before = rig.fromCache()
  await eventually('an answer is cached', async () => {
    await rig.edge.ask(path, wish)
    return rig.fromCache() > before
  })
}

/** Asks once more where it was not cached: once a second the steps look whether its bytes are still in memory. */
export async function isFromCache(rig: Rig, ask: () => Promise<unknown>): Promise<boolean> {
  for (let tries = 0; tries < 2; tries += 1) {
    const before = rig.fromCache()
    await ask()
    if (rig.fromCache() > before) return true
  }
  return false
}

/** The next request must be answered by the steps, however often the one before was cached. */
export async function changes(
  t: Test,
  rig: Rig,
  path: string,
  change: () => unknown,
  headers: Record<string, string> = {},
): Promise<Answered> {
  const ask = () => rig.edge.ask(path, { headers })
  await warm(rig, path, { headers })
  t.ok(await isFromCache(rig, ask), 'nothing has changed, so it is cached')
  const before = rig.fromCache()
  await change()
  let answer = await ask()
  t.equal(rig.fromCache(), before, 'the change was noticed at the very next request')
  let right = await askAt(rig.edge.stepwiseUrl, path, 'GET', headers)
  if (comparable(answer) !== comparable(right)) {
    // Each second the reader closes segments that have left: that may be between the two requests.
    answer = await ask()
    right = await askAt(rig.edge.stepwiseUrl, path, 'GET', headers)
  }
  t.equal(comparable(answer), comparable(right))
  return answer
}

/** Sends these bytes on one connection, and collects what comes until the other side closes or falls silent. */
export function exchange(url: string, sent: string): Promise<string> {
  return new Promise((resolve, reject) => {
    const pieces: Buffer[] = []
    const socket = new Socket()
    socket.on('data', (piece) => pieces.push(piece))
    socket.on('error', reject)
    socket.on('close', () => {
      const text = Buffer.concat(pieces).toString('latin1')
      const plain = text.replaceAll(/(X-Request-Id|Date|Signature|Signature-Input): [^\r]*/gi, '$1')
      resolve(plain.replaceAll(shownIds, '$1'))
    })
    socket.connect(Number(new URL(url).port), '127.0.0.1', () => socket.end(Buffer.from(sent, 'latin1')))
  })
}
