import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { Test } from 'tap'
import { ClientError } from '../../src/client/errors.js'
import { encodeBase64url } from '../../src/format/base64url.js'
import { parseItemHeader } from '../../src/format/item.js'
import { isRefusal } from '../../src/format/refusal.js'
import { deepHash } from '../../src/proof/deep-hash.js'
import { normalizedAddress } from '../../src/proof/owner-address.js'
import { rsaSigner } from '../../src/proof/sign.js'
import { fixtureJson } from '../fixture-file.js'

/** A service of a few lines whose answers a test can bend: the real ones do not lie. */
export interface Counter {
  readonly url: string
  /** Requests so far: method and path. */
  readonly requests: string[]
  readonly bodies: Map<string, Buffer>
}

export interface ServedRequest {
  readonly method: string
  readonly path: string
  readonly headers: IncomingMessage['headers']
  readonly body: Buffer
}

export interface ServedAnswer {
  readonly status?: number
  readonly json?: unknown
  readonly text?: string
  readonly bytes?: Uint8Array
  readonly headers?: Readonly<Record<string, string>>
  /** Ends the connection without an answer. */
  readonly cut?: boolean
}

/** Serves on a free port of this machine until the test ends. */
export async function serving(
  t: Test,
  answer: (request: ServedRequest) => ServedAnswer | undefined | Promise<ServedAnswer | undefined>,
): Promise<Counter> {
  const requests: string[] = []
  const bodies = new Map<string, Buffer>()
  const handle = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const pieces: Buffer[] = []
    for await (const piece of request) pieces.push(piece as Buffer)
    const one = { method: request.method ?? '', path: request.url ?? '', headers: request.headers }
    const body = Buffer.concat(pieces)
    requests.push(`${one.method} ${one.path}`)
    bodies.set(one.path, body)
    const reply = (await answer({ ...one, body })) ?? { status: 404, text: 'Not Found' }
    if (reply.cut === true) return void request.socket.destroy()
    const type = reply.json === undefined ? 'text/plain' : 'application/json'
    response.writeHead(reply.status ?? 200, { 'content-type': type, ...reply.headers })
    response.end(reply.bytes ?? (reply.json === undefined ? reply.text : JSON.stringify(reply.json)))
  }
  const server = createServer((request, response) => {
    handle(request, response).catch((error: Error) => response.destroy(error))
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  t.teardown(() => {
    server.closeAllConnections()
    server.close()
  })
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, requests, bodies }
}

/** Changes the answer of an honest gateway. */
export type Bend = (request: ServedRequest, answer: ServedAnswer) => ServedAnswer | Promise<ServedAnswer>

/** A gateway that hands on what an honest one says, with some answers bent. */
export async function bent(t: Test, honest: string, bend: Bend = (_, answer) => answer): Promise<string> {
  const { url } = await serving(t, async (request) => {
    const { method, path, body } = request
    const headers: Record<string, string> = {}
    for (const name of ['range', 'content-type']) {
      const value = request.headers[name]
      if (typeof value === 'string') headers[name] = value
    }
    const response = await fetch(honest + path, { method, headers, ...(method === 'POST' ? { body } : {}) })
    const forwarded = Object.fromEntries([...response.headers].filter(([name]) => name !== 'content-length'))
    return bend(request, {
      status: response.status,
      headers: forwarded,
      bytes: Buffer.from(await response.arrayBuffer()),
    })
  })
  return url
}

const jwk = fixtureJson<Record<string, string>>('rsa-4096.jwk.json')
const serviceKey = rsaSigner(jwk)
export const serviceAddress = normalizedAddress(serviceKey.owner)

/** The receipt of a service for an item, signed by the fixture's key. */
export function receiptFor(id: string, owner: string, winc = '0'): Record<string, unknown> {
  const [version, deadlineHeight, timestamp] = ['0.2.0', 1234, 1_700_000_000_000]
  const signed = ['Bundlr', version, id, String(deadlineHeight), String(timestamp)]
  const signature = serviceKey.sign(deepHash(signed.map((text) => Buffer.from(text))))
  const service = { public: encodeBase64url(serviceKey.owner), signature: encodeBase64url(signature) }
  return {
    id,
    owner,
    winc,
    timestamp,
    version,
    deadlineHeight,
    ...service,
    dataCaches: [],
    fastFinalityIndexes: [],
  }
}

/** The receipt of an item that was posted. */
export function receiptOf(body: Uint8Array, winc = '0'): Record<string, unknown> {
  const header = parseItemHeader(body)
  if (header === 'more' || isRefusal(header)) throw new Error('what was posted is no item')
  return receiptFor(header.id, normalizedAddress(header.owner), winc)
}

export const info: ServedAnswer = { json: { version: '0.2.0', addresses: { arweave: serviceAddress } } }

/** The code of the error by which `work` fails; `no failure` where it does not. Other errors are thrown on. */
export async function codeOf(work: PromiseLike<unknown>): Promise<string> {
  try {
    await work
  } catch (error) {
    if (error instanceof ClientError) return error.code
    throw error
  }
  return 'no failure'
}
