import type { PathParameters } from '../http/openapi.js'

const anId = 'AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA'

/** Parameters of paths (in braces) and of queries. */
export const gatewayParameters: PathParameters = {
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
  find: { description: 'An id, hash or name; of the log, any text', example: 'name' },
  limit: { description: 'Entries of a page', example: '10' },
  cursor: { description: '`next` of the page before', example: '0'.repeat(16) },
  minutes: { description: 'Length of a stretch of time, up to 1440', example: '60' },
  endMs: {
    description: 'Its end, milliseconds since 1970; now where it is absent',
    example: '1800000000000',
  },
  kind: { description: 'all, requests, events or changes', example: 'events' },
  level: { description: 'The least level: all, info, warn, error or fatal', example: 'warn' },
}

/** The gateway, as its description for others begins. */
export const gatewayService = {
  title: 'Sluice',
  description: 'A gateway for permanent storage.',
  parameters: gatewayParameters,
  securitySchemes: { adminKey: { type: 'http', scheme: 'bearer' } },
}
