import { request as httpRequest } from 'node:http'
import { systemClock } from '../../src/actor/clock.js'
import { silentLog } from '../../src/actor/log.js'
import { Meters, meterBytes } from '../../src/actor/meter.js'
import { meterTable } from '../../src/actor/meter-table.js'
import { SampleRings } from '../../src/actor/sample-rings.js'
import { Tip } from '../../src/actor/shared.js'
import { createSigner } from '../../src/attest/answer-signature.js'
import { loadSigningKey } from '../../src/attest/keys.js'
import { type Vocabulary, vocabularies } from '../../src/attest/vocabulary.js'
import type { Attributes } from '../../src/catalog/attributes.js'
import type { Id } from '../../src/format/id.js'
import { type GatewayParts, gatewayDefaults, type Transfers } from '../../src/gateway/gateway-parts.js'
import type { GatewayOptions } from '../../src/gateway/gateway-rules.js'
import type { CacheLimits } from '../../src/http/response-cache.js'
import { EdgeHandler } from '../../src/routes/edge-handler.js'
import type { ClientOf } from '../../src/serving/in-slot.js'
import type { Route } from '../../src/serving/route.js'
import type { ManifestPacker } from '../../src/source/keeping/manifest-packer.js'
import type { Forbidden } from '../../src/source/transfer/transfer-parts.js'
import { blobPath } from '../../src/store/blobs.js'
import { MappedFiles } from '../../src/store/mapped.js'
import { edgeListeners } from '../../src/threads/edge/edge-listeners.js'
import { gateways, type Rig, rig, sha256, upstream } from '../source/rig.js'
import { watchSteps } from './watched-steps.js'

/** What the upstream gateway has, by id. `breakAt`: its connection dies after so many bytes; `holdAt`: it falls silent. */
export interface Upstream {
  readonly body: Buffer
  readonly contentType?: string
  /** That it says its bytes have: base64url of the SHA-256. */
  readonly digest?: string
  readonly breakAt?: number
  readonly holdAt?: number
}

export interface Answered {
  readonly status: number
  readonly headers: Readonly<Record<string, string>>
  /** As they came: name, value, in order. */
  readonly fields: readonly (readonly [string, string])[]
  readonly body: Buffer
  /** False where the connection ended before the length that was announced. */
  readonly complete: boolean
}

export interface Stage {
  readonly url: string
  /** The same gateway behind a server that repeats nothing. */
  readonly stepwiseUrl: string
  /** The other server, with `isShared`. */
  readonly otherUrl: string
  readonly rig: Rig
  readonly transfers: Transfers
  readonly tip: Tip
  readonly meters: Meters
  readonly has: Map<string, Upstream>
  /** Paths that were requested from the upstream gateway. */
  readonly requested: string[]
  /** Their Range lines. */
  readonly ranges: (string | undefined)[]
  /** Puts content into the local store, as if it had been fetched. */
  keep(id: Id, body: Buffer, more?: Partial<Attributes>): Promise<string>
  ask(path: string, wish?: { method?: string; headers?: Record<string, string> }): Promise<Answered>
  close(): Promise<void>
}

export interface StageOptions {
  readonly vocabulary?: Vocabulary['name']
  readonly options?: Partial<GatewayOptions>
  readonly parts?: Partial<GatewayParts>
  readonly routes?: readonly Route[]
  /** Address of a trusted gateway that is not there. */
  readonly upstreamUrl?: string
  readonly forbidden?: Forbidden
  readonly packer?: ManifestPacker
  /** For what the server repeats under limits, beside `admission` in `parts`. */
  readonly limits?: CacheLimits | undefined
  /** False: the operator does not trust it. */
  readonly trusted?: boolean
  /** Another server stands in front of the same gateway, and repeats what the first has answered. */
  readonly isShared?: boolean
}

/** As where no proxy is trusted. */
export const remoteAddress: ClientOf = (request) => request.remoteAddress

/** A gateway on a real socket, over the real catalog, fetcher, blobs and mapped files, with one upstream gateway. */
export async function stage(given: StageOptions = {}): Promise<Stage> {
  const has = new Map<string, Upstream>()
  const requested: string[] = []
  const ranges: (string | undefined)[] = []
  const up = await upstream((request, response) => {
    requested.push(request.url ?? '')
    ranges.push(request.headers.range)
    const found = has.get((request.url ?? '').replace(/^\/raw\//, '').replace(/\?.*/, ''))
    if (found === undefined) {
      response.writeHead(404).end('Not found')
      return
    }
    const { body, contentType, digest, breakAt, holdAt } = found
    if (digest !== undefined) response.setHeader('x-ar-io-digest', digest)
    if (holdAt === 0) return
    const type = contentType === undefined ? {} : { 'content-type': contentType }
    const range = /^bytes=(\d+)-(\d*)$/.exec(request.headers.range ?? '')
    const last = range?.[2] === undefined || range[2] === '' ? Number.POSITIVE_INFINITY : Number(range[2])
    const [start, end] = [Number(range?.[1] ?? 0), Math.min(last + 1, body.length)]
    if (start >= body.length) {
      response.writeHead(416, { 'content-range': `bytes */${body.length}` }).end()
      return
    }
    const length = { 'content-length': end - start }
    const place = range === null ? {} : { 'content-range': `bytes ${start}-${end - 1}/${body.length}` }
    response.writeHead(range === null ? 200 : 206, { 'x-ar-io-hops': '1', ...type, ...length, ...place })
    if (holdAt !== undefined) response.write(body.subarray(0, holdAt))
    else if (breakAt === undefined) response.end(body.subarray(start, end))
    else if (breakAt <= start) response.destroy()
    else response.write(body.subarray(start, breakAt), () => setImmediate(() => response.destroy()))
  })
  const { forbidden } = given
  const below = await rig({
    source: gateways([given.upstreamUrl ?? up.url], given.trusted ?? true),
    ...(forbidden === undefined ? {} : { forbidden }),
    ...(given.packer === undefined ? {} : { packer: given.packer }),
  })
  const edge = below.edge()
  const files = new MappedFiles({ mappedMaxBytes: 2 ** 30, filesMax: 64, believeMs: 0 }, systemClock)
  const tip = new Tip()
  const meters = new Meters(meterTable, new SharedArrayBuffer(meterBytes(meterTable, 1)), 0)
  const key = loadSigningKey({ keyFile: `${below.path}/key.pem` })
  const own = createSigner(key, { bindRequest: true })
  const transfers = edge.transfers
  const gateway = new EdgeHandler({
    catalog: below.catalog,
    keeper: below.keeper,
    transfers,
    blobs: { path: (digest) => blobPath(below.store.folder, digest), open: (path) => files.open(path) },
    signer: own,
    vocabulary: vocabularies[given.vocabulary ?? 'neutral'],
    tip,
    meters,
    log: silentLog,
    clock: systemClock,
    routes: given.routes ?? [],
    clientOf: remoteAddress,
    options: { ...gatewayDefaults, ...given.options },
    ...given.parts,
  })
  const thrown: unknown[] = []
  const watched = watchSteps()
  const resources = new SampleRings(new SharedArrayBuffer(SampleRings.bytesFor(1)), 0)
  const listening = async (responseCache: Parameters<typeof edgeListeners>[0]['responseCache']) => {
    const onThrow = (error: unknown): unknown => thrown.push(error)
    const listeners = edgeListeners({
      edgeHandler: gateway,
      meters,
      log: silentLog,
      clock: systemClock,
      resources,
      serve: { host: '127.0.0.1', port: 0, stallMs: 10_000, requestsMax: 1000, onThrow },
      responseCache,
    })
    await listeners.listening
    return listeners
  }
  const signing = (given.parts?.signer ?? own).borrowed
  const group = given.isShared === true ? new Int32Array(new SharedArrayBuffer(4)) : undefined
  const cached = { maxBytes: 2 ** 24, limits: given.limits, signing, group }
  const server = await listening(cached)
  const stepwise = await listening({ maxBytes: 0 })
  const other = given.isShared === true ? await listening(cached) : undefined
  const url = `http://127.0.0.1:${server.port}`
  return {
    url,
    stepwiseUrl: `http://127.0.0.1:${stepwise.port}`,
    otherUrl: `http://127.0.0.1:${other?.port ?? 0}`,
    rig: below,
    transfers,
    tip,
    meters,
    has,
    requested,
    ranges,
    async keep(id, body, more = {}) {
      const digest = sha256(body)
      const draft = await below.store.draft()
      await draft.handle.write(body)
      await below.store.keep(draft, digest)
      await draft.handle.close()
      const attributes: Attributes = { id, size: body.length, digest, verified: true, trusted: true, ...more }
      await below.keeper.ask({ kind: 'kept', digest, sizeBytes: body.length })
      await below.keeper.ask({ kind: 'learn', attributes: [attributes] })
      return blobPath(below.store.folder, digest)
    },
    ask: (path, wish = {}) => askAt(url, path, wish.method, wish.headers),
    async close() {
      await Promise.all([server.close(1000), stepwise.close(1000), other?.close(1000)])
      gateway.close()
      files.close()
      await below.close()
      await up.close()
      watched.close()
      if (thrown.length > 0) throw thrown[0]
      if (watched.wrong.length > 0) throw new Error(watched.wrong.join(', '))
    },
  }
}

/** For sources from which only content is requested. */
export const contentOnly: Pick<Transfers, 'manifest' | 'digestOf'> = {
  manifest: () => Promise.reject(new Error('no manifest is asked for here')),
  digestOf: () => Promise.reject(new Error('no digest is asked for here')),
}

/** One request over a connection of its own. */
export function askAt(
  base: string,
  path: string,
  method = 'GET',
  headers: Record<string, string> = {},
): Promise<Answered> {
  return new Promise((resolve, reject) => {
    const { hostname, port } = new URL(base)
    const request = httpRequest({ hostname, port, path, method, headers, agent: false }, (response) => {
      const pieces: Buffer[] = []
      const fields: [string, string][] = []
      for (let at = 0; at + 1 < response.rawHeaders.length; at += 2) {
        fields.push([response.rawHeaders[at] ?? '', response.rawHeaders[at + 1] ?? ''])
      }
      const finish = (): void => {
        const merged: Record<string, string> = {}
        for (const [name, value] of fields) {
          const lower = name.toLowerCase()
          merged[lower] = merged[lower] === undefined ? value : `${merged[lower]}, ${value}`
        }
        const { complete } = response
        resolve({
          status: response.statusCode ?? 0,
          headers: merged,
          fields,
          body: Buffer.concat(pieces),
          complete,
        })
      }
      response.on('data', (piece: Buffer) => pieces.push(piece))
      response.on('end', finish)
      response.on('error', finish)
    })
    request.on('error', reject)
    request.end()
  })
}

/** What a cache keeps of an answer after a 304 for it (RFC 9111 section 3.2). */
export function freshened(kept: Answered, { fields }: Answered): Answered {
  const names = new Set(fields.map(([name]) => name.toLowerCase()))
  return { ...kept, fields: [...kept.fields.filter(([name]) => !names.has(name.toLowerCase())), ...fields] }
}

/** The names of an answer's headers in order, without those of the connection. */
export function names(answered: Answered): string[] {
  const plumbing = new Set(['date', 'content-length', 'connection', 'keep-alive'])
  return answered.fields.map(([name]) => name).filter((name) => !plumbing.has(name.toLowerCase()))
}
