import { randomBytes, randomInt } from 'node:crypto'
import { createSocket, type Socket } from 'node:dgram'
import { once } from 'node:events'
import type { Clock } from '../actor/clock.js'
import { type Announced, type Announcing, intervalOf } from './announce.js'
import { decodePeers } from './compact-peers.js'

/**
 * The UDP tracker protocol, BEP 15, with the path of the address by BEP 41. Integers are big-endian:
 *
 *     connect    protocol id u64, action 0 u32, transaction u32
 *     connected  action 0, transaction, connection id u64
 *     announce   connection id, action 1, transaction, infohash 20, peer id 20, downloaded u64, left u64, uploaded u64,
 *                event u32, address u32, key u32, peers wanted i32, port u16, then options
 *     announced  action 1, transaction, interval u32, leechers u32, seeders u32, then 6 bytes a peer (over IPv6: 18)
 * error action 3, transaction, text
 */

const protocolId = 0x41727101980n
const events = { none: 0, completed: 1, started: 2, stopped: 3 } as const
/** A connection id is valid for so long after it was received. */
const connectionMs = 60_000
const urlBytesMax = 1024
const peersMax = 200

export type UdpAnswer =
  | { readonly kind: 'connected'; readonly connection: Buffer }
  | ({ readonly kind: 'announced' } & Announced)
  | { readonly kind: 'refused'; readonly why: string }

/** The first message to a tracker over UDP (BEP 15), 16 bytes. `transaction`: 32 bits that its answer repeats. */
export function encodeConnect(transaction: number): Buffer {
  const bytes = Buffer.alloc(16)
  bytes.writeBigUInt64BE(protocolId)
  bytes.writeUInt32BE(transaction, 12)
  return bytes
}

/** `key`: lets the tracker recognize us when our address changes. */
export function encodeAnnounce(
  connection: Buffer,
  transaction: number,
  what: Announcing,
  key: number,
): Buffer {
  const bytes = Buffer.alloc(98)
  connection.copy(bytes, 0, 0, 8)
  bytes.writeUInt32BE(1, 8)
  bytes.writeUInt32BE(transaction, 12)
  bytes.set(what.infohash, 16)
  bytes.set(what.peerId, 36)
  bytes.writeBigUInt64BE(BigInt(what.left), 64)
  bytes.writeUInt32BE(events[what.event ?? 'none'], 80)
  bytes.writeUInt32BE(key, 88)
  bytes.writeInt32BE(-1, 92)
  bytes.writeUInt16BE(what.port, 96)
  return Buffer.concat([bytes, ...urlOptions(what.url)])
}

/** The path of an address and what follows it, in pieces of 255 bytes; none where the path is empty. */
function urlOptions(url: string): Buffer[] {
  const { pathname, search } = new URL(url)
  const words = Buffer.from(`${pathname}${search}`.slice(0, urlBytesMax))
  if (words.length < 2) return []
  const options: Buffer[] = []
  for (let at = 0; at < words.length; at += 255) {
    const some = words.subarray(at, at + 255)
    options.push(Buffer.from([2, some.length]), some)
  }
  return options
}

/** The answer to `transaction`; undefined for whatever else came. `isV6`: it came over IPv6. */
export function decodeUdpAnswer(bytes: Buffer, transaction: number, isV6: boolean): UdpAnswer | undefined {
  if (bytes.length < 8 || bytes.readUInt32BE(4) !== transaction) return undefined
  const action = bytes.readUInt32BE(0)
  if (action === 3) return { kind: 'refused', why: bytes.toString('latin1', 8, 208).replace(/[^ -~]/g, '?') }
  if (action === 0 && bytes.length >= 16) {
    return { kind: 'connected', connection: Buffer.from(bytes.subarray(8, 16)) }
  }
  if (action !== 1 || bytes.length < 20) return undefined
  const list = bytes.subarray(20)
  const peers = isV6 ? decodePeers(undefined, list, peersMax) : decodePeers(list, undefined, peersMax)
  return { kind: 'announced', peers, intervalSeconds: intervalOf(bytes.readUInt32BE(8)) }
}

export interface UdpTimeouts {
  /** Timeout of the first request; each further one has twice the timeout of the one before. */
  readonly firstMs: number
  /** How often the timeout is doubled. */
  readonly doublings: number
}

/** The timeouts of BEP 15: two hours in all. */
export const udpTimeouts: UdpTimeouts = { firstMs: 15_000, doublings: 8 }

export interface UdpTracker {
  /** An address, no name. */
  readonly host: string
  readonly port: number
  readonly isV6: boolean
}

/** The exchange with one tracker at one address, from a port of its own; datagrams from other addresses are dropped. */
export class UdpSession {
  readonly #key = randomInt(2 ** 32)
  #connection: Buffer | undefined
  #connectedMs = 0
  #onReply: (bytes: Buffer) => void = () => undefined
  #over = false

  private constructor(
    private readonly socket: Socket,
    private readonly isV6: boolean,
    private readonly timeouts: UdpTimeouts,
    private readonly clock: Clock,
  ) {
    socket.on('message', (bytes) => this.#onReply(bytes))
    // An ICMP error, such as a closed port: treated like no answer, since the tracker may come back within the wait.
    socket.on('error', () => 'the request is repeated')
  }

  /** Undefined where there is no route to that address. */
  static async open(
    { host, port, isV6 }: UdpTracker,
    timeouts: UdpTimeouts,
    clock: Clock,
  ): Promise<UdpSession | undefined> {
    const socket = createSocket(isV6 ? 'udp6' : 'udp4')
    socket.unref()
    try {
      socket.connect(port, host)
      await once(socket, 'connect')
      return new UdpSession(socket, isV6, timeouts, clock)
    } catch {
      socket.on('error', () => 'it is closed').close()
      return undefined
    }
  }

  /** Announces, and repeats while there is no answer. Undefined where none ever comes, or after `close`. */
  async announce(what: Announcing): Promise<UdpAnswer | undefined> {
    for (let doubled = 0; doubled <= this.timeouts.doublings && !this.#over; doubled += 1) {
      const waitMs = this.timeouts.firstMs * 2 ** doubled
      const connected = await this.#connect(waitMs)
      if (connected?.kind !== 'connected') {
        if (connected !== undefined) return connected
        continue
      }
      const reply = await this.#ask((transaction) => {
        return encodeAnnounce(connected.connection, transaction, what, this.#key)
      }, waitMs)
      if (reply?.kind === 'announced') return reply
      // The tracker may have forgotten the connection id: the next attempt requests a new one.
      this.#connection = undefined
      if (reply !== undefined) return reply
    }
    return undefined
  }

  close(): void {
    if (this.#over) return
    this.#over = true
    this.#onReply(Buffer.alloc(0))
    this.socket.close()
  }

  async #connect(waitMs: number): Promise<UdpAnswer | undefined> {
    const now = this.clock.monotonic()
    if (this.#connection !== undefined && now - this.#connectedMs < connectionMs) {
      return { kind: 'connected', connection: this.#connection }
    }
    const reply = await this.#ask(encodeConnect, waitMs)
    if (reply?.kind === 'connected') {
      this.#connection = reply.connection
      this.#connectedMs = this.clock.monotonic()
    }
    return reply
  }

  /** Sends one request; resolves with its answer, or undefined where none comes in time. */
  async #ask(question: (transaction: number) => Buffer, waitMs: number): Promise<UdpAnswer | undefined> {
    if (this.#over) return undefined
    const transaction = randomBytes(4).readUInt32BE()
    const bytes = question(transaction)
    const wanted = bytes.readUInt32BE(8) === 0 ? 'connected' : 'announced'
    return new Promise((resolve) => {
      const finish = (answer: UdpAnswer | undefined): void => {
        timer.cancel()
        this.#onReply = () => undefined
        resolve(answer)
      }
      const timer = this.clock.after(waitMs, () => finish(undefined))
      this.#onReply = (reply) => {
        const answer = decodeUdpAnswer(reply, transaction, this.isV6)
        if (this.#over) finish(undefined)
        else if (answer?.kind === wanted || answer?.kind === 'refused') finish(answer)
      }
      this.socket.send(bytes, () => 'what is lost on the way is waited for likewise')
    })
  }
}
