import { type Bencodable, type Bencoded, encodeBencode, readBencode } from './bencode.js'
import { decodePeers, encodePeers, type PeerAddress } from './compact-peers.js'
import { encode } from './wire.js'

/** Extension messages (BEP 10) that are supported: the info dictionary (BEP 9) and exchange of peers (BEP 11). */

/** Ids that peers use when they send them to this side. */
export const ownIds = { metadata: 1, pex: 2 } as const

/** Requests that a peer may have open at once, as our handshake states it. */
export const requestsMax = 512

const limits = { depthMax: 4, valuesMax: 512, anyOrder: true }

/** The info dictionary travels in parts of this size. */
const partBytes = 16 * 1024

export interface ExtensionGreeting {
  /** Ids to use when they are sent to the peer; 0 or absent: the peer does not support them. */
  readonly metadata: number
  readonly pex: number
  /** Where it listens for others. */
  readonly port: number
}

/** Our extension handshake. */
export function encodeGreeting(about: {
  readonly infoBytes: number
  readonly port: number
  readonly uploadOnly: boolean
}): Buffer {
  const messages = new Map<string, Bencodable>([
    ['ut_metadata', ownIds.metadata],
    ['ut_pex', ownIds.pex],
  ])
  const greeting = new Map<string, Bencodable>([
    ['m', messages],
    ['metadata_size', about.infoBytes],
    ['reqq', requestsMax],
    ['v', 'Sluice'],
  ])
  if (about.port > 0) greeting.set('p', about.port)
  if (about.uploadOnly) greeting.set('upload_only', 1)
  return encode.extended(0, encodeBencode(greeting))
}

function numberIn(value: Bencoded | undefined, max: number): number {
  return typeof value === 'number' && value > 0 && value <= max ? value : 0
}

/** Reads a peer's; undefined where it is none. */
export function decodeGreeting(payload: Buffer): ExtensionGreeting | undefined {
  const value = readBencode(payload, limits)?.value
  if (!(value instanceof Map)) return undefined
  const names: Bencoded = value.get('m') ?? new Map()
  if (!(names instanceof Map)) return undefined
  return {
    metadata: numberIn(names.get('ut_metadata'), 255),
    pex: numberIn(names.get('ut_pex'), 255),
    port: numberIn(value.get('p'), 65535),
  }
}

/** An answer to a request for a part of the info dictionary. */
export interface MetadataAnswer {
  /** The part is in it. */
  readonly isGiven: boolean
  /** Empty where nothing was requested. */
  readonly message: Buffer
}

const noAnswer: MetadataAnswer = { isGiven: false, message: Buffer.alloc(0) }

/** The answer to a request for a part of the info dictionary, to be sent under the peer's id. `give`: it may be given. */
export function answerMetadata(payload: Buffer, info: Buffer, id: number, give: boolean): MetadataAnswer {
  const value = readBencode(payload, limits)?.value
  if (!(value instanceof Map) || value.get('msg_type') !== 0) return noAnswer
  const part = value.get('piece')
  if (typeof part !== 'number') return noAnswer
  const isThere = give && part >= 0 && part * partBytes < info.length
  const head = new Map<string, Bencodable>([
    ['msg_type', isThere ? 1 : 2],
    ['piece', part],
  ])
  if (!isThere) return { isGiven: false, message: encode.extended(id, encodeBencode(head)) }
  head.set('total_size', info.length)
  const bytes = info.subarray(part * partBytes, (part + 1) * partBytes)
  return { isGiven: true, message: encode.extended(id, encodeBencode(head), bytes) }
}

/** Addresses of peers in an exchange message, at most 50 of each kind. */
export function decodeExchange(payload: Buffer): readonly PeerAddress[] {
  const value = readBencode(payload, limits)?.value
  return value instanceof Map ? decodePeers(value.get('added'), value.get('added6'), 50) : []
}

/** A message with the addresses of other peers; `id`: the number that the peer chose for it. */
export function encodeExchange(id: number, peers: readonly PeerAddress[]): Buffer {
  const { v4, v6 } = encodePeers(peers)
  // A byte of flags for each peer: none is set, since nothing is known of them.
  const added = new Map<string, Bencodable>([
    ['added', v4],
    ['added.f', new Uint8Array(v4.length / 6)],
    ['added6', v6],
    ['added6.f', new Uint8Array(v6.length / 18)],
    ['dropped', new Uint8Array(0)],
  ])
  return encode.extended(id, encodeBencode(added))
}
