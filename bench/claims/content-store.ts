import { createHash, randomBytes } from 'node:crypto'
import { Agent, createServer, get } from 'node:http'
import { parseArgs } from 'node:util'
import { systemClock } from '../../src/actor/clock.js'
import { idOfBytes } from '../../src/format/id.js'
import { isRefusal } from '../../src/format/refusal.js'
import type { ObjectStore } from '../../src/source/objects/object-store.js'
import { S3Objects } from '../../src/source/objects/s3-objects.js'
import { encodeListing, type PackEntry } from '../../src/source/tier/pack-format.js'
import { TierKeys } from '../../src/source/tier/tier-keys.js'
import { bucketAt, startRadosgw } from '../../test/engines/radosgw.js'
import { quantile } from '../kit/numbers.js'
import { say } from '../kit/say.js'
import { Stopwatch } from '../kit/usage.js'
import { startGateway } from '../rivals/gateway.js'

const help = `content-store: what a miss costs that S3 has, beside one that a gateway has; requests to S3 for a thousand of each

  --reads N         contents that are read, after a fifth as many that warm it up (1000)
  --bytes N         of each content (10240); from STORE_KEEP_MIN_BYTES (262144) on they are objects of their own
  --rounds N        each with gateways of its own (3)

Needs radosgw (Debian: ceph-mon ceph-osd radosgw).
`

const { values } = parseArgs({
  options: {
    help: { type: 'boolean' },
    reads: { type: 'string', default: '1000' },
    bytes: { type: 'string', default: '10240' },
    rounds: { type: 'string', default: '3' },
  },
})

interface Given {
  readonly reads: number
  readonly bytes: number
}

interface Cost {
  readonly cpuUs: number
  readonly p50Ms: number
  readonly p95Ms: number
  readonly requests: number
}

/** As many at a time as a page load: what the program does beside is a smaller part of a short run. */
const readersAtOnce = 8

/** Reads all of them. */
async function costOf(
  gateway: { pid: number; port: number },
  ids: readonly string[],
  isThere: boolean,
): Promise<Cost> {
  const storeRequests = (): Promise<number> => requestsTo(gateway.port)
  // Sockets of the phase before may be closed by now.
  const agent = new Agent({ keepAlive: true })
  const read = (id: string): Promise<number> =>
    new Promise((resolve, reject) => {
      const beganMs = systemClock.monotonic()
      get({ agent, port: gateway.port, host: '127.0.0.1', path: `/raw/${id}` }, (answer) => {
        if (isThere !== (answer.statusCode === 200)) reject(new Error(`${id}: ${answer.statusCode}`))
        answer.resume().on('end', () => resolve(systemClock.monotonic() - beganMs))
      }).on('error', reject)
    })
  const warm = ids.slice(0, Math.floor(ids.length / 6))
  await Promise.all(shared(warm, read))
  const measured = ids.slice(warm.length)
  const before = await storeRequests()
  const watch = new Stopwatch(gateway.pid)
  const times = (await Promise.all(shared(measured, read))).flat()
  const cpuUs = (watch.seconds() * 1e6) / measured.length
  agent.destroy()
  const requests = ((await storeRequests()) - before) / measured.length
  return { cpuUs, p50Ms: quantile(times, 0.5), p95Ms: quantile(times, 0.95), requests }
}

/** Readers that take the next id when they have one; each gives the times of its own. */
function shared(ids: readonly string[], read: (id: string) => Promise<number>): Promise<number[]>[] {
  const left = [...ids]
  return Array.from({ length: readersAtOnce }, async () => {
    const times: number[] = []
    for (let id = left.pop(); id !== undefined; id = left.pop()) times.push(await read(id))
    return times
  })
}

async function requestsTo(port: number): Promise<number> {
  const text = await (await fetch(`http://127.0.0.1:${port}/gateway/__gateway_metrics`)).text()
  const lines = text.split('\n').filter((line) => line.startsWith('content_store_requests_total{'))
  return lines.reduce((sum, line) => sum + Number(line.split(' ').at(-1)), 0)
}

const { signal } = new AbortController()

async function put(store: ObjectStore, key: string, bytes: Buffer): Promise<void> {
  const sha256 = createHash('sha256').update(bytes).digest()
  const done = await store.put(key, { sizeBytes: bytes.length, sha256, bytes: () => [bytes] }, { signal })
  if (isRefusal(done)) throw new Error(done.message)
}

/** Small contents in packs of a thousand, with their directories; larger ones as objects. */
async function fill(store: ObjectStore, bodies: ReadonlyMap<string, Buffer>): Promise<void> {
  const keys = new TierKeys('bench')
  const all = [...bodies]
  if ((all[0]?.[1].length ?? 0) >= 262_144) {
    for (const [id, bytes] of all)
      await put(store, keys.object(idOfBytes(Buffer.from(id, 'base64url'))), bytes)
    return
  }
  for (let at = 0; at < all.length; at += 500) {
    const part = all.slice(at, at + 500)
    const pack = randomBytes(16).toString('hex')
    let offset = 0
    const entries = part.map(([id, bytes]): PackEntry => {
      const entry = { id: idOfBytes(Buffer.from(id, 'base64url')), offset, sizeBytes: bytes.length }
      offset += bytes.length
      return { ...entry, dataStart: 0, contentType: 'application/x-bench' }
    })
    await put(store, keys.pack(pack), Buffer.concat(part.map(([, bytes]) => bytes)))
    await put(store, keys.directory(1 + at / 500), encodeListing({ pack, entries }))
  }
}

function made({ reads, bytes }: Given): Map<string, Buffer> {
  const count = Math.floor(reads * 1.2)
  return new Map(
    Array.from({ length: count }, () => [randomBytes(32).toString('base64url'), randomBytes(bytes)]),
  )
}

function shown(name: string, { cpuUs, p50Ms, p95Ms, requests }: Cost): string {
  const times = `${p50Ms.toFixed(2)} ms, one in twenty above ${p95Ms.toFixed(2)}`
  return `  ${name.padEnd(28)} ${cpuUs.toFixed(0)} us of processor time, ${times}, ${requests.toFixed(3)} requests to S3`
}

async function round(given: Given): Promise<void> {
  const server = await startRadosgw()
  const bucket = await bucketAt(server)
  const { endpoint, region, credentials } = server
  const patience = { headMs: 10_000, stallMs: 10_000, connectionsMax: 8 }
  const store = new S3Objects({ endpoint, region, bucket, credentials, ...patience }, systemClock)
  const bodies = made(given)
  const source = createServer((request, response) => {
    const body = bodies.get((request.url ?? '').slice('/raw/'.length))
    if (body === undefined) response.writeHead(404).end()
    else
      response
        .writeHead(200, { 'content-length': body.length, 'content-type': 'application/x-bench' })
        .end(body)
  }).listen(0, '127.0.0.1')
  await new Promise((resolve) => source.once('listening', resolve))
  const url = `http://127.0.0.1:${(source.address() as { port: number }).port}`
  const network = {
    DEVNET_BLOCK_MS: '0',
    // What comes from either is verified afterwards in the same way.
    ENABLE_BACKGROUND_DATA_VERIFICATION: 'false',
    SERVICES: 'gateway',
    TRUSTED_GATEWAYS_URLS: JSON.stringify({ [url]: 1 }),
  }
  const s3 = {
    CONTENT_STORE: 's3',
    S3_ENDPOINT: endpoint,
    S3_BUCKET: bucket,
    S3_PREFIX: 'bench',
    AWS_REGION: region,
    AWS_ACCESS_KEY_ID: credentials.accessKeyId,
    AWS_SECRET_ACCESS_KEY: credentials.secretAccessKey,
  }
  const unknown = [...made({ reads: given.reads, bytes: 0 }).keys()]
  await fill(store, bodies)
  const alone = await startGateway({ name: 'without store', settings: network })
  const both = await startGateway({ name: 'with store', settings: { ...network, ...s3 } })
  try {
    for (let turn = 0; turn < 100 && (await requestsTo(both.port)) < 3; turn += 1)
      await new Promise((resolve) => systemClock.after(100, () => resolve(undefined)))
    const ids = [...bodies.keys()]
    say(`${given.reads} contents of ${given.bytes} bytes`)
    say(shown('from a gateway', await costOf(alone, ids, true)))
    say(shown('from S3', await costOf(both, ids, true)))
    say(shown('nobody has it, no store', await costOf(alone, unknown, false)))
    say(shown('nobody has it, with S3', await costOf(both, unknown, false)))
  } finally {
    await Promise.all([alone.stop(), both.stop(), store.close()])
    source.closeAllConnections()
    source.close()
    await server.stop()
  }
}

if (values.help === true) say(help)
else
  for (let number = 0; number < Number(values.rounds); number += 1)
    await round({ reads: Number(values.reads), bytes: Number(values.bytes) })
