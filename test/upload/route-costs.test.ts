/** What strangers have stored makes no request dearer: reads of the database for each route, with little and with much in it. */
import { randomUUID } from 'node:crypto'
import t, { type Test } from 'tap'
import { systemClock } from '../../src/actor/clock.js'
import { encodeBase64url } from '../../src/format/base64url.js'
import { idOfBytes } from '../../src/format/id.js'
import { sha256 } from '../../src/proof/digest.js'
import { ed25519Signer, type ItemSigner, signItem } from '../../src/proof/sign.js'
import type { Environment } from '../../src/store/lmdb.js'
import { Sales } from '../../src/upload/charging/sales.js'
import type { MultipartRecord } from '../../src/upload/parts/multipart-record.js'
import { FreePools } from '../../src/upload/records/free-pools.js'
import { type AcceptedItem, openUploadTables, Uploads } from '../../src/upload/records/uploads.js'
import { countedReads } from './counted-reads.js'
import { answered, requestOf, uploadRig } from './upload-rig.js'

const many = 50_000
const openOnes = 2000
const signer: ItemSigner = ed25519Signer(Buffer.alloc(32, 7))
/** Of one item, one upload and one payment that are there in both. */
const knownId = idOfBytes(sha256(Buffer.from('item 0')))
const knownUpload = 'upload-0'
const unknownId = idOfBytes(sha256(Buffer.from('nothing')))

const digestOf = (text: string): Uint8Array => sha256(Buffer.from(text))

function ownerOf(at: number): string {
  return encodeBase64url(digestOf(`owner ${at}`))
}

function itemOf(at: number, now: number): AcceptedItem {
  return {
    id: idOfBytes(digestOf(`item ${at}`)),
    headerSize: 100,
    owner: ownerOf(at % 10_000),
    receivedMs: now - at,
    deadlineHeight: 1,
    winc: '0',
    digest: encodeBase64url(digestOf(`content ${at}`)),
    place: { file: 1, offset: 0, sizeBytes: 1000 },
    ...(at % 3 === 0 ? { bundle: unknownId, offset: 100 } : {}),
  }
}

/** As the service writes them down, `count` of each kind. */
function fill(environment: Environment, count: number): void {
  const uploads = new Uploads(environment)
  const sales = new Sales(environment)
  const pools = new FreePools(environment, {
    itemMaxBytes: 1e6,
    walletBytes: 1e9,
    rangeBytes: 1e9,
    exemptWallets: [],
  })
  const multipart = environment.table('multipart')
  const untold = environment.table('untold')
  const now = systemClock.now()
  environment.write(() => {
    for (let at = 0; at < count; at += 1) {
      const item = itemOf(at, now)
      uploads.enter(item)
      uploads.putInner(
        idOfBytes(digestOf(`inner ${at}`)),
        { parent: item.id, start: 1, sizeBytes: 9, headerSize: 1 },
        false,
      )
      uploads.scanned.put([digestOf(`noted ${at}`)], item.id, () => true)
      const network = `10.${at >> 16}.${(at >> 8) & 255}.${at & 255}`
      pools.record({
        keys: [`w:${ownerOf(at)}`, `r:${network}`],
        bytes: 1000,
        name: { of: `0x${at}`, wallet: ownerOf(at) },
      })
      const sale = {
        payment: `payment ${at}`,
        units: '1',
        bytes: 1,
        request: item.id,
        identifier: `name ${at}`,
        itemId: item.id,
      }
      sales.end({ ...sale, openedMs: now }, { winc: '1', transaction: '', payer: '', network: '', lines: '' })
      untold.put(digestOf(`untold ${at}`), new Uint8Array(0))
      const record: MultipartRecord = {
        id: at === 0 ? knownUpload : randomUUID(),
        chunkBytes: 5_242_880,
        createdMs: now - at,
        changedMs: now,
        client: network,
        state: at < openOnes ? 'open' : at % 8 === 0 ? 'invalid' : 'finalized',
        itemId: item.id,
      }
      multipart.put(Buffer.from(record.id), Buffer.from(JSON.stringify(record)))
    }
  })
}

/** Calls of every route: with names that are known, and with others. */
interface Call {
  readonly name: string
  readonly path: string
  readonly method: string
  readonly words: Readonly<Record<string, string>>
  readonly headers: Readonly<Record<string, string>>
  readonly query: string
  readonly body?: () => Uint8Array
}

let made = 0
const newItem = (): Uint8Array => {
  made += 1
  return signItem(signer, {}, Buffer.from(`cost ${made}`))
}
const missing = JSON.stringify({
  owner: ownerOf(0),
  sha256: [Buffer.from(digestOf('content 0')).toString('hex'), '0'.repeat(64)],
})
const resumable = { 'upload-complete': '?0', 'upload-draft-interop-version': '8' }

function callsOf(routes: readonly { readonly method?: string; readonly path: string }[]): Call[] {
  const usual = { token: 'arweave', offset: '0', byteCount: '1000', network: 'base', script: 'page.js' }
  return routes.flatMap(({ method = 'GET', path }) =>
    [
      { id: knownId, uploadId: knownUpload },
      { id: unknownId, uploadId: randomUUID() },
    ].flatMap(({ id, uploadId }, at): Call[] => {
      const words = { ...usual, id, uploadId }
      const query = `address=${ownerOf(at)}&chunkSize=5242880${at === 0 ? '' : '&totalBytes=1000'}`
      const name = `${method} ${path} ${at === 0 ? 'known' : 'unknown'}`
      const body = path === '/check-missing' ? () => Buffer.from(missing) : newItem
      const call = { name, path, method, words, headers: {}, query, ...(method === 'GET' ? {} : { body }) }
      return path.startsWith('/upload') && method !== 'GET'
        ? [call, { ...call, name: `${name}, in steps`, headers: resumable }]
        : [call]
    }),
  )
}

async function costs(t: Test, count: number): Promise<Map<string, number>> {
  const environment = openUploadTables(t.testdir())
  t.teardown(() => environment.close())
  const counted = countedReads(environment)
  fill(environment, count)
  const rig = await uploadRig(t, counted.environment)
  const found = new Map<string, number>()
  for (const { name, method, path, words, headers, query, body } of callsOf(rig.routes)) {
    const bytes = body?.()
    const sized = bytes === undefined ? headers : { ...headers, 'content-length': String(bytes.length) }
    const request = requestOf(method, path, {
      headers: sized,
      query,
      pieces: bytes === undefined ? [] : [bytes],
    })
    counted.reads = 0
    await answered(rig, path, request, words)
    // What the request has left to be written belongs to it.
    await rig.records.written()
    rig.uploads.environment.write(() => undefined)
    found.set(name, counted.reads)
  }
  return found
}

t.test(`${many} of each kind make no route of the upload service dearer`, async (t) => {
  const [little, much] = [await costs(t, 1), await costs(t, many)]
  t.strictSame([...much.keys()], [...little.keys()])
  t.ok(little.size > 60, `${little.size} calls`)
  const dearer = [...much].filter(([name, reads]) => reads > (little.get(name) ?? 0) * 1.5)
  t.strictSame(dearer, [], 'reads of the database')
  const reading = [...much].filter(([, reads]) => reads > 0)
  t.ok(reading.length > 20, `${reading.length} calls read something`)
})
