import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import type { Test } from 'tap'
import { systemClock } from '../../src/actor/clock.js'
import { silentLog } from '../../src/actor/log.js'
import { Meters, meterBytes } from '../../src/actor/meter.js'
import { meterTable } from '../../src/actor/meter-table.js'
import { Tip } from '../../src/actor/shared.js'
import type { Admission } from '../../src/admission/admission-port.js'
import { createSigner } from '../../src/attest/answer-signature.js'
import { loadSigningKey } from '../../src/attest/keys.js'
import { type Vocabulary, vocabularies } from '../../src/attest/vocabulary.js'
import type { ChunkFinderOptions } from '../../src/chain/chunk-finder.js'
import type { OffsetIndex } from '../../src/chain/span.js'
import type { GatewayParts, Transfers } from '../../src/gateway/gateway-parts.js'
import type { Guard } from '../../src/gateway/guard.js'
import { nodeRoutes } from '../../src/routes/node-routes.js'
import type { ClientOf } from '../../src/serving/in-slot.js'
import type { Forbidden } from '../../src/source/transfer/transfer-parts.js'
import { patient } from '../chain/hostile.js'
import { remoteAddress, type Stage, stage } from '../gateway/rig.js'
import { scratch } from '../scratch.js'

export interface NodeStage extends Stage {
  post(path: string, body: string): Promise<{ status: number; text: string }>
}

/** A gateway with the routes of nodes, over these nodes. */
export async function nodeStage(
  t: Test,
  nodes: readonly string[],
  given: {
    vocabulary?: Vocabulary['name']
    finder?: Partial<ChunkFinderOptions>
    guard?: Guard
    index?: OffsetIndex
    tip?: Tip
    forbidden?: Forbidden
    admission?: Admission
    naming?: NonNullable<GatewayParts['hostNames']>
    dryRun?: boolean
    learnMaxBytes?: number
    clientOf?: ClientOf
  } = {},
): Promise<NodeStage> {
  const key = loadSigningKey({ keyFile: join(scratch('nodes'), 'key.pem') })
  const {
    vocabulary = 'neutral',
    finder = {},
    dryRun = false,
    tip = new Tip(),
    learnMaxBytes = 2 ** 26,
  } = given
  const { guard, forbidden, admission, naming, index, clientOf = remoteAddress } = given
  // The routes come first, the fetcher with the stage.
  const transfers: Pick<Transfers, 'digestOf'> = { digestOf: (id) => whole.transfers.digestOf(id) }
  const built = nodeRoutes({
    vocabulary: vocabularies[vocabulary],
    signer: createSigner(key, { bindRequest: true }),
    clientOf,
    clock: systemClock,
    log: silentLog,
    meters: new Meters(meterTable, new SharedArrayBuffer(meterBytes(meterTable, 1)), 0),
    settledSeconds: 1000,
    tip,
    ...(index === undefined ? {} : { index }),
    ...(guard === undefined ? {} : { blocking: { guard, transfers } }),
    ...(admission === undefined ? {} : { admission }),
    chain: {
      ...patient,
      nodes,
      callsMax: 64,
      waitingMax: 1000,
      connectionsMax: 64,
      coolMs: 100,
      coolMaxMs: 100,
    },
    chunks: {
      finder: {
        deadlineMs: 5000,
        nameMs: 1000,
        flightsMax: 100,
        searchesMax: 5,
        fetchedCacheBytes: 2 ** 24,
        postedCacheBytes: 2 ** 22,
        ...finder,
      },
      broadcast: { successesMin: 3, concurrency: 3, abortMs: 2000, responseMs: 2000, perNodeMax: 20 },
      pricedBytes: 368_640,
      learnMaxBytes,
      dryRun,
    },
  })
  const whole = await stage({
    routes: built.routes,
    vocabulary,
    ...(forbidden === undefined ? {} : { forbidden }),
    parts: {
      ...(guard === undefined ? {} : { guard }),
      ...(admission === undefined ? {} : { admission }),
      ...(naming === undefined ? {} : { hostNames: naming }),
    },
  })
  t.teardown(async () => {
    await whole.close()
    await built.close()
  })
  return {
    ...whole,
    async post(path, body) {
      const answer = await fetch(whole.url + path, { method: 'POST', body })
      return { status: answer.status, text: await answer.text() }
    },
  }
}

/** A node between a gateway and a true one that may twist what it says; `act` gives true where it has answered itself. */
export async function twisted(
  t: Test,
  truth: string,
  act: (request: IncomingMessage, response: ServerResponse) => boolean | Promise<boolean>,
): Promise<{ url: string; requests: string[] }> {
  const requests: string[] = []
  const server = createServer(async (request, response) => {
    // Older nodes have chunks as JSON only, which is what is twisted here.
    if (request.url?.startsWith('/chunk2/') === true) {
      response.writeHead(404).end()
      return
    }
    requests.push(`${request.method} ${request.url}`)
    const pieces: Buffer[] = []
    for await (const piece of request) pieces.push(piece as Buffer)
    if (await act(request, response)) return
    const method = request.method ?? 'GET'
    const body = method === 'POST' ? Buffer.concat(pieces) : undefined
    const answer = await fetch(truth + request.url, { method, ...(body === undefined ? {} : { body }) })
    response.writeHead(answer.status, { 'content-type': answer.headers.get('content-type') ?? 'text/plain' })
    response.end(Buffer.from(await answer.arrayBuffer()))
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  t.teardown(() => {
    server.closeAllConnections()
    server.close()
  })
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, requests }
}

export interface ChunkJson {
  readonly chunk: string
  readonly data_path: string
  readonly tx_path?: string
  readonly packing: string
}

/** What a true node says of a chunk. */
export async function chunkOf(node: string, offset: number): Promise<ChunkJson> {
  return (await (await fetch(`${node}/chunk/${offset}`)).json()) as ChunkJson
}
