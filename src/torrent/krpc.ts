import { type Bencodable, type Bencoded, decodeBencode, encodeBencode } from './bencode.js'
import { decodePeers, encodePeers, type PeerAddress } from './compact-peers.js'

/** Messages of the distributed hash table, BEP 5; for IPv6 BEP 32. Bytes to values and back; no socket here. */

export const nodeIdBytes = 20

/** A node of the table, as other nodes name it. */
export interface DhtContact extends PeerAddress {
  /** 20 bytes. */
  readonly id: Buffer
}

export interface DhtAnswer {
  /** The same as in the query. */
  readonly transaction: Buffer
  readonly id: Buffer
  /** To be sent back when announcing. */
  readonly token: Buffer | undefined
  readonly contacts: readonly DhtContact[]
  readonly peers: readonly PeerAddress[]
}

/** Longer datagrams are dropped: messages of this protocol are far shorter. */
const messageMaxBytes = 4096
/** Nodes that are read of one answer at most; by the protocol it names 8. */
const contactsMax = 16
const peersMax = 100
const tokenMaxBytes = 128
const limits = { depthMax: 4, valuesMax: 512, anyOrder: true }

type Fields = readonly (readonly [string, Bencodable])[]

function encodeQuery(name: string, transaction: Uint8Array, fields: Fields): Buffer {
  return encodeBencode(
    new Map<string, Bencodable>([
      ['a', new Map<string, Bencodable>(fields)],
      ['q', name],
      ['t', transaction],
      ['y', 'q'],
    ]),
  )
}

/** Asks for peers of a torrent, and for nodes nearer to it. */
export function encodeGetPeers(transaction: Uint8Array, id: Uint8Array, infohash: Uint8Array): Buffer {
  const fields: Fields = [
    ['id', id],
    ['info_hash', infohash],
  ]
  return encodeQuery('get_peers', transaction, fields)
}

/** Announces that this address has the torrent, at `port`. */
export function encodeAnnouncePeer(
  transaction: Uint8Array,
  id: Uint8Array,
  infohash: Uint8Array,
  port: number,
  token: Uint8Array,
): Buffer {
  const fields: Fields = [
    ['id', id],
    ['implied_port', 0],
    ['info_hash', infohash],
    ['port', port],
    ['token', token],
  ]
  return encodeQuery('announce_peer', transaction, fields)
}

function bytesIn(value: Bencoded | undefined, min: number, max: number): Buffer | undefined {
  if (!(value instanceof Uint8Array) || value.length < min || value.length > max) return undefined
  return Buffer.from(value)
}

/** An answer of a node; undefined for questions, errors and whatever else comes. `isV6`: it came over IPv6. */
export function decodeDhtAnswer(bytes: Buffer, isV6: boolean): DhtAnswer | undefined {
  if (bytes.length > messageMaxBytes) return undefined
  const message = decodeBencode(bytes, limits)?.value
  if (!(message instanceof Map) || bytesIn(message.get('y'), 1, 1)?.toString() !== 'r') return undefined
  const transaction = bytesIn(message.get('t'), 1, 16)
  const returned = message.get('r')
  if (transaction === undefined || !(returned instanceof Map)) return undefined
  const id = bytesIn(returned.get('id'), nodeIdBytes, nodeIdBytes)
  if (id === undefined) return undefined
  const token = bytesIn(returned.get('token'), 1, tokenMaxBytes)
  const contacts = decodeContacts(returned.get(isV6 ? 'nodes6' : 'nodes'), isV6)
  return { transaction, id, token, contacts, peers: decodeValues(returned.get('values'), isV6) }
}

/** Compact contacts: an id before each compact address. */
function decodeContacts(value: Bencoded | undefined, isV6: boolean): DhtContact[] {
  const addressBytes = isV6 ? 18 : 6
  const step = nodeIdBytes + addressBytes
  const all = bytesIn(value, step, messageMaxBytes)
  const found: DhtContact[] = []
  for (let at = 0; all !== undefined && at + step <= all.length && found.length < contactsMax; at += step) {
    const [address] = decodeAddress(all.subarray(at + nodeIdBytes, at + step), isV6)
    if (address !== undefined) found.push({ id: Buffer.from(all.subarray(at, at + nodeIdBytes)), ...address })
  }
  return found
}

function decodeValues(value: Bencoded | undefined, isV6: boolean): PeerAddress[] {
  if (!Array.isArray(value)) return []
  return (value as readonly Bencoded[]).slice(0, peersMax).flatMap((one) => {
    return one instanceof Uint8Array && one.length === (isV6 ? 18 : 6) ? decodeAddress(one, isV6) : []
  })
}

function decodeAddress(bytes: Uint8Array, isV6: boolean): readonly PeerAddress[] {
  return isV6 ? decodePeers(undefined, bytes, 1) : decodePeers(bytes, undefined, 1)
}

export interface DhtQuestion {
  readonly name: string
  readonly transaction: Buffer
  /** What is looked for: 20 bytes, where the question has such a thing. */
  readonly target: Buffer | undefined
}

/** The query of a node; undefined for whatever else comes. */
export function decodeDhtQuestion(bytes: Buffer): DhtQuestion | undefined {
  if (bytes.length > messageMaxBytes) return undefined
  const message = decodeBencode(bytes, limits)?.value
  if (!(message instanceof Map) || bytesIn(message.get('y'), 1, 1)?.toString() !== 'q') return undefined
  const transaction = bytesIn(message.get('t'), 1, 16)
  const name = bytesIn(message.get('q'), 1, 32)?.toString('latin1')
  const about = message.get('a')
  if (transaction === undefined || name === undefined || !(about instanceof Map)) return undefined
  if (bytesIn(about.get('id'), nodeIdBytes, nodeIdBytes) === undefined) return undefined
  const target = about.get(name === 'find_node' ? 'target' : 'info_hash')
  return { name, transaction, target: bytesIn(target, nodeIdBytes, nodeIdBytes) }
}

/** An error message. Codes of BEP 5: 203 protocol error, 204 method unknown. */
export function encodeDhtError(transaction: Uint8Array, code: 203 | 204, why: string): Buffer {
  return encodeBencode(
    new Map<string, Bencodable>([
      ['e', [code, why]],
      ['t', transaction],
      ['y', 'e'],
    ]),
  )
}

/** An answer as nodes send it. */
export function encodeDhtAnswer(answer: DhtAnswer): Buffer {
  const fields = new Map<string, Bencodable>([['id', answer.id]])
  const contacts: Record<'v4' | 'v6', Buffer[]> = { v4: [], v6: [] }
  for (const { id, ...address } of answer.contacts) {
    const { v4, v6 } = encodePeers([address])
    if (v4.length > 0) contacts.v4.push(id, v4)
    else contacts.v6.push(id, v6)
  }
  if (contacts.v4.length > 0) fields.set('nodes', Buffer.concat(contacts.v4))
  if (contacts.v6.length > 0) fields.set('nodes6', Buffer.concat(contacts.v6))
  if (answer.token !== undefined) fields.set('token', answer.token)
  if (answer.peers.length > 0) {
    fields.set(
      'values',
      answer.peers.map((peer) => Buffer.concat(Object.values(encodePeers([peer])))),
    )
  }
  return encodeBencode(
    new Map<string, Bencodable>([
      ['r', fields],
      ['t', answer.transaction],
      ['y', 'r'],
    ]),
  )
}
