import type { NameRecord } from '../../src/names/names-port.js'
import { type Upstream, upstream } from '../source/rig.js'

/** A registry of names that speaks JSON-RPC, with the records of `has` by full name. */
export function registryServer(has: ReadonlyMap<string, NameRecord>): Promise<Upstream> {
  return upstream((request, response) => {
    const pieces: Buffer[] = []
    request.on('data', (piece: Buffer) => pieces.push(piece))
    request.on('end', () => {
      const call = JSON.parse(Buffer.concat(pieces).toString()) as {
        id: number
        method: string
        params: string[]
      }
      const [basename, record] = call.params
      const found = has.get(record === '@' ? `${basename}` : `${record}_${basename}`)
      const result =
        found === undefined
          ? null
          : { ...found, transactionId: found.id, id: undefined, index: found.recordIndex }
      const reply =
        call.method === 'ns_getRecord' ? { result } : { error: { code: -32601, message: 'no such method' } }
      response.setHeader('content-type', 'application/json')
      response.end(JSON.stringify({ jsonrpc: '2.0', id: call.id, ...reply }))
    })
  })
}

/** A gateway that answers HEAD with name headers; the name is the first label of the Host header, or the path. */
export function nameGateway(has: ReadonlyMap<string, NameRecord>, prefix: string): Promise<Upstream> {
  return upstream((request, response) => {
    const name = (request.url ?? '').slice(1) || (request.headers.host ?? '').split('.')[0] || ''
    const found = has.get(name)
    if (found === undefined) {
      response.writeHead(404).end()
      return
    }
    const { id, ttlSeconds, antId, antProgramId, undernameLimit, recordIndex } = found
    const lines: Record<string, string | number | undefined> = {
      Name: name,
      'Resolved-Id': id,
      'TTL-Seconds': ttlSeconds,
      'ANT-Id': antId,
      'ANT-Program-Id': antProgramId,
      'Undername-Limit': undernameLimit,
      'Record-Index': recordIndex,
    }
    for (const [suffix, value] of Object.entries(lines)) {
      if (value !== undefined) response.setHeader(prefix + suffix, String(value))
    }
    response.writeHead(200).end()
  })
}
