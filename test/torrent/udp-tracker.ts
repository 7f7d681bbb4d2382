import { randomBytes } from 'node:crypto'
import { createSocket, type RemoteInfo } from 'node:dgram'
import { once } from 'node:events'
import type { Test } from 'tap'
import { encodePeers, type PeerAddress } from '../../src/torrent/compact-peers.js'

/** What a tracker heard in an announce. */
export interface Heard {
  readonly infohash: string
  readonly port: number
  readonly left: number
  readonly event: number
  /** Of BEP 41, put together. */
  readonly url: string
  readonly host: string
}

/** A tracker of BEP 15 on loopback, as strict as the text: connection ids end, and announces without one are not answered. */
export class UdpTrackerRig {
  readonly heard: Heard[] = []
  connects = 0
  /** Packets that are lost before one is answered. */
  losing = 0
  /** Not undefined: what is sent instead of answers. */
  lie: ((transaction: number, request: Buffer) => readonly Buffer[]) | undefined
  port = 0
  readonly #ids = new Set<string>()
  readonly #swarms = new Map<string, Map<string, PeerAddress>>()

  static async start(t: Test, isV6 = false): Promise<UdpTrackerRig> {
    const rig = new UdpTrackerRig()
    const socket = createSocket(isV6 ? 'udp6' : 'udp4')
    socket.bind(0, isV6 ? '::1' : '127.0.0.1')
    await once(socket, 'listening')
    rig.port = socket.address().port
    socket.on('message', (request: Buffer, from: RemoteInfo) => {
      for (const bytes of rig.#answer(request, from)) socket.send(bytes, from.port, from.address)
    })
    t.teardown(() => socket.close())
    return rig
  }

  #answer(request: Buffer, from: RemoteInfo): readonly Buffer[] {
    if (request.length < 16) return []
    if (this.losing > 0) {
      this.losing -= 1
      return []
    }
    const transaction = request.readUInt32BE(12)
    if (this.lie !== undefined) return this.lie(transaction, request)
    const head = Buffer.alloc(8)
    head.writeUInt32BE(transaction, 4)
    if (request.readUInt32BE(8) === 0) {
      if (request.readBigUInt64BE(0) !== 0x41727101980n || request.length !== 16) return []
      this.connects += 1
      const id = randomBytes(8)
      this.#ids.add(id.toString('hex'))
      return [Buffer.concat([head, id])]
    }
    const isKnown = this.#ids.has(request.toString('hex', 0, 8))
    if (!isKnown || request.readUInt32BE(8) !== 1 || request.length < 98) return []
    head.writeUInt32BE(1, 0)
    const { peers, total } = this.#enter(request, from)
    const { v4, v6 } = encodePeers(peers)
    const numbers = Buffer.alloc(12)
    numbers.writeUInt32BE(1800, 0)
    numbers.writeUInt32BE(total, 4)
    return [Buffer.concat([head, numbers, from.family === 'IPv6' ? v6 : v4])]
  }

  #enter(request: Buffer, { address }: RemoteInfo): { peers: readonly PeerAddress[]; total: number } {
    const infohash = request.toString('hex', 16, 36)
    const port = request.readUInt16BE(96)
    const left = Number(request.readBigUInt64BE(64))
    const event = request.readUInt32BE(80)
    let url = ''
    for (let at = 98; at + 1 < request.length && request[at] === 2; at += 2 + request[at + 1]!) {
      url += request.toString('latin1', at + 2, at + 2 + request[at + 1]!)
    }
    this.heard.push({ infohash, port, left, event, url, host: address })
    const swarm = this.#swarms.get(infohash) ?? new Map<string, PeerAddress>()
    this.#swarms.set(infohash, swarm)
    const peers = [...swarm.values()].filter((peer) => peer.port !== port)
    swarm.set(`${address} ${port}`, { host: address, port })
    return { peers, total: swarm.size }
  }
}
