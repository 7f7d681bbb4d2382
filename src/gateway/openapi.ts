import { STATUS_CODES } from 'node:http'
import type { Operation } from '../http/operation.js'

/** An operation with the methods that it answers to. */
export interface Described extends Operation {
  readonly methods: readonly string[]
}

interface Parameter {
  readonly description: string
  /** What may be asked for to see an answer. */
  readonly example: string
}

const anId = 'AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA'

/** What may stand in braces in a path, and in the query. */
const parameters: Readonly<Record<string, Parameter>> = {
  id: { description: 'A transaction or data item: 43 characters of base64url', example: anId },
  path: { description: 'A path in a manifest', example: 'index.html' },
  digest: { description: 'SHA-256 of the content, base64url', example: anId },
  sha256: { description: 'SHA-256 of a file, hex', example: '0'.repeat(64) },
  seed: { description: 'First 16 digits of an info hash', example: '0'.repeat(16) },
  offset: { description: 'Place of a byte in the weave, from 1', example: '1' },
  name: { description: 'A name, with an undername in front where there is one', example: 'name' },
  index: { description: 'An index of the publication', example: 'root-transactions' },
  band: { description: 'A band of an index', example: 'band' },
  file: { description: 'A file of a band', example: 'file' },
  height: { description: 'Height of a block', example: '0' },
  hash: { description: 'Hash of a block: 64 characters of base64url', example: 'A'.repeat(64) },
  bytes: { description: 'A number of bytes', example: '1000' },
  address: { description: 'Address of a wallet', example: anId },
  ip: { description: 'IP address of a client', example: '127.0.0.1' },
  url: { description: 'An address on this gateway, base64url', example: 'Lw' },
  job: { description: 'Number of a job', example: '1' },
  method: { description: 'An HTTP method', example: 'GET' },
  host: { description: 'A host of this gateway', example: 'localhost' },
  query: { description: 'A query of GraphQL', example: '{__typename}' },
  info_hash: { description: 'Of a torrent: 20 bytes, percent-encoded', example: '%00'.repeat(20) },
  before: { description: 'Only entries with a lower sequence number', example: '1000' },
  find: { description: 'An id, hash or name', example: 'name' },
  limit: { description: 'Entries of a page', example: '10' },
}

const always = [405, 500, 503]

/** Names in braces. */
export function parametersIn(path: string): string[] {
  return [...path.matchAll(/\{([^}]*)\}/g)].map(([, name = '']) => name)
}

/** A description that cannot be told: a bug. Undefined where it is right. */
export function descriptionFault({ path, query = [] }: Operation): string | undefined {
  const unknown = [...parametersIn(path), ...query].filter((name) => parameters[name] === undefined)
  return unknown.length === 0 ? undefined : `${path}: nothing says what ${unknown.join(', ')} means`
}

/** The document of OpenAPI 3.1 about these operations. */
export function openApiOf(operations: readonly Described[], release: string): object {
  const paths: Record<string, Record<string, object>> = {}
  for (const operation of operations) {
    const told = operationOf(operation)
    const methods = operation.methods.map((method) => [method.toLowerCase(), told] as const)
    // The first to be described is the one that answers.
    paths[operation.path] = { ...Object.fromEntries(methods), ...paths[operation.path] }
  }
  return {
    openapi: '3.1.0',
    info: { title: 'Sluice', version: release, description: 'A gateway for permanent storage.' },
    components: { securitySchemes: { adminKey: { type: 'http', scheme: 'bearer' } } },
    paths,
  }
}

function operationOf({ path, summary, statuses, query = [], type, operator }: Described): object {
  const told = (name: string, place: 'path' | 'query'): object => {
    return { name, in: place, required: place === 'path', schema: { type: 'string' }, ...parameters[name] }
  }
  const all = [...new Set([...statuses, ...(operator ? [401] : []), ...always])].sort((a, b) => a - b)
  const content = { content: { [type ?? 'application/json']: {} } }
  const responses = all.map((status) => {
    const description = STATUS_CODES[status] ?? String(status)
    return [status, status < 300 ? { description, ...content } : { description }] as const
  })
  return {
    summary,
    parameters: [
      ...parametersIn(path).map((name) => told(name, 'path')),
      ...query.map((name) => told(name, 'query')),
    ],
    responses: Object.fromEntries(responses),
    ...(operator ? { security: [{ adminKey: [] }] } : {}),
  }
}
