import { type Dispatcher, request } from 'undici'
import { abortAfter } from '../actor/clock.js'
import { expected } from '../format/bug.js'
import { decodeBencode } from './bencode.js'
import { decodePeers, type PeerAddress } from './compact-peers.js'

export interface Announcing {
  /** Address of the tracker. */
  readonly url: string
  /** 20 bytes. */
  readonly infohash: Uint8Array
  readonly peerId: Uint8Array
  /** Port where others reach us; 1 where they cannot: trackers refuse an announce without a port. */
  readonly port: number
  /** Bytes still missing. */
  readonly left: number
  readonly event?: 'started' | 'completed' | 'stopped'
}

/** One announce of a torrent, under each of its infohashes. */
export interface AnnounceRequest extends Omit<Announcing, 'infohash'> {
  readonly infohashes: readonly Uint8Array[]
}

export interface Announced {
  readonly peers: readonly PeerAddress[]
  readonly intervalSeconds: number
}

const answerMaxBytes = 64 * 1024

function escapeBytes(bytes: Uint8Array): string {
  return Array.from(bytes, (byte) => `%${byte.toString(16).padStart(2, '0')}`).join('')
}

/** Announces a torrent to an HTTP tracker, which answers with peers. Undefined where it gives no valid answer. Never rejects. */
export async function announceHttp(
  what: Announcing,
  dispatcher: Dispatcher,
  timeoutMs: number,
  signal: AbortSignal,
): Promise<Announced | undefined> {
  const { url, infohash, peerId, port, left, event } = what
  const own = `info_hash=${escapeBytes(infohash)}&peer_id=${escapeBytes(peerId)}&port=${port}`
  const state = `&uploaded=0&downloaded=0&left=${left}&compact=1${event === undefined ? '' : `&event=${event}`}`
  try {
    const answer = await request(`${url}${url.includes('?') ? '&' : '?'}${own}${state}`, {
      dispatcher,
      signal: AbortSignal.any([signal, abortAfter(timeoutMs)]),
    })
    const body = await readBodyUpTo(answer.body, answerMaxBytes)
    return answer.statusCode === 200 && body !== undefined ? readAnswer(body) : undefined
  } catch (error) {
    expected(error)
    // Not logged: a tracker that cannot be reached is common, and the announce is repeated later.
    return undefined
  }
}

/** A body of at most `maxBytes`; undefined, and the connection dropped, where it is longer. Rejects where it breaks. */
export async function readBodyUpTo(
  body: Dispatcher.ResponseData['body'],
  maxBytes: number,
): Promise<Buffer | undefined> {
  const parts: Buffer[] = []
  let bytes = 0
  for await (const part of body as AsyncIterable<Buffer>) {
    bytes += part.length
    if (bytes > maxBytes) {
      body.on('error', () => 'dropped on purpose').destroy()
      return undefined
    }
    parts.push(part)
  }
  return Buffer.concat(parts)
}

function readAnswer(body: Buffer): Announced | undefined {
  const value = decodeBencode(body, { depthMax: 4, valuesMax: 1024, anyOrder: true })?.value
  if (!(value instanceof Map) || value.has('failure reason')) return undefined
  const interval = value.get('interval')
  const intervalSeconds = intervalOf(typeof interval === 'number' ? interval : 300)
  return { peers: decodePeers(value.get('peers'), value.get('peers6'), 200), intervalSeconds }
}

/** Seconds until the next announce: the tracker's interval, but between 15 seconds and an hour. */
export function intervalOf(seconds: number): number {
  return Math.min(Math.max(seconds, 15), 3600)
}
