import { randomBytes } from 'node:crypto'
import { createSocket, type Socket } from 'node:dgram'
import { once } from 'node:events'
import { isIPv6 } from 'node:net'
import { BoundedMap } from '../actor/bounded-map.js'
import type { Clock } from '../actor/clock.js'
import type { Meters } from '../actor/meter.js'
import { RateWindow } from '../actor/rate-window.js'
import { isNearAddress, type PeerAddress } from './compact-peers.js'
import { addressKey, nearestCount, nearestTo, Walk } from './dht-walk.js'
import {
  type DhtAnswer,
  type DhtContact,
  type DhtQuestion,
  decodeDhtAnswer,
  decodeDhtQuestion,
  encodeAnnouncePeer,
  encodeDhtAnswer,
  encodeDhtError,
  encodeGetPeers,
} from './krpc.js'
import { nodeId } from './node-id.js'

export interface DhtOptions {
  /** Address of this machine, IPv4 or IPv6: each has a table of its own. */
  readonly host: string
  /** UDP port; 0: a free one. */
  readonly port: number
  /** Where others see us, if that is known. */
  readonly address: string | undefined
  /** How long an answer is waited for. */
  readonly answerMs: number
}

export const dhtDefaults = { answerMs: 3000 }

/** Questions under way at once. */
const atOnce = 4
/** Nodes that answered lately: the next lookup starts from them. */
const knownMax = 400
const setOutFrom = 16
/** Where fewer nodes than this are known, the configured bootstrap nodes are queried first. */
const knownMin = 8
/**
 * The bootstrap nodes are also queried each hour: a group of nodes that name only each other could otherwise be all
 * that we know.
 */
const enterMs = 3_600_000
/** Questions of others that are answered: an answer has some 300 bytes, and takes 0.1 ms. */
const answerTurns = { windowMs: 1000, each: 10, all: 100 }
/** Peers taken from one lookup, at most. */
const peersMax = 200

/** The result of a lookup. */
export interface Walked {
  readonly peers: readonly PeerAddress[]
  /** Nodes that answered. */
  readonly answered: number
  /** Nodes that have stored our announce. */
  readonly stored: number
}

/**
 * A node of the distributed hash table (BEP 5). It sends queries, and answers queries with nearer nodes; it stores no announces
 * of others, so it gives no tokens. Only nodes that answered a query of ours are remembered, and named to others.
 */
export class DhtNode {
  readonly #id: Buffer
  readonly #turns: RateWindow
  readonly #isV6: boolean
  /** Keyed by address; in the order of their last answers, the latest last. */
  readonly #known = new BoundedMap<string, DhtContact>(knownMax)
  /** Queries without an answer yet, by the address of the node. */
  readonly #pending = new Map<string, (answer: DhtAnswer) => void>()
  /** When the bootstrap nodes were queried last. */
  #enteredMs = 0
  #turn: Promise<unknown> = Promise.resolve()
  #over = false

  private constructor(
    private readonly socket: Socket,
    private readonly options: DhtOptions,
    private readonly clock: Clock,
    private readonly meters: Meters,
  ) {
    this.#id = nodeId(options.address)
    this.#isV6 = isIPv6(options.host)
    this.#turns = new RateWindow(answerTurns, clock)
    socket.on('error', () => 'what was sent is lost, and the query stays unanswered')
    socket.on('message', (bytes: Buffer, { address, port }) => this.#take(bytes, { host: address, port }))
  }

  /** Undefined where there is no such network, or the port is taken. */
  static async open(options: DhtOptions, clock: Clock, meters: Meters): Promise<DhtNode | undefined> {
    const socket = createSocket(isIPv6(options.host) ? { type: 'udp6', ipv6Only: true } : { type: 'udp4' })
    socket.unref()
    try {
      socket.bind(options.port, options.host)
      await once(socket, 'listening')
      return new DhtNode(socket, options, clock, meters)
    } catch {
      socket.on('error', () => 'it is closed').close()
      return undefined
    }
  }

  get port(): number {
    return this.socket.address().port
  }

  close(): void {
    if (this.#over) return
    this.#over = true
    this.socket.close()
  }

  /**
   * Looks up the nodes that store the announces of a torrent (infohash of 20 bytes) and gets peers from them; with a
   * port, also announces the torrent to them. One lookup at a time. `entries`: the bootstrap nodes, queried while few
   * others are known. Never rejects.
   */
  walk(
    infohash: Buffer,
    port: number | undefined,
    entries: readonly PeerAddress[],
    signal: AbortSignal,
  ): Promise<Walked> {
    const mine = this.#turn.then(() => this.#walk(infohash, port, entries, signal))
    this.#turn = mine
    return mine
  }

  async #walk(
    infohash: Buffer,
    port: number | undefined,
    entries: readonly PeerAddress[],
    signal: AbortSignal,
  ): Promise<Walked> {
    // Tests and closed networks: where the first node is in our own network, others there are accepted too.
    const isNear = entries.some(({ host }) => isNearAddress(host))
    const walk = new Walk(infohash, this.#id, isNear)
    const peers = new Map<string, PeerAddress>()
    let answered = 0
    const question = (transaction: Buffer): Buffer => encodeGetPeers(transaction, this.#id, infohash)
    const onAnswer = (contact: DhtContact, answer: DhtAnswer): void => {
      answered += 1
      this.#remember(contact)
      walk.add(answer.contacts)
      walk.answered(contact, answer.token)
      for (const peer of answer.peers) {
        if (peers.size < peersMax && (isNear || !isNearAddress(peer.host))) peers.set(addressKey(peer), peer)
      }
    }
    const now = this.clock.monotonic()
    if (this.#known.size < knownMin || now - this.#enteredMs > enterMs) {
      this.#enteredMs = now
      await Promise.all(
        entries.map(async (entry) => {
          const answer = await this.#ask(entry, question)
          if (answer === undefined) return
          const contact = { ...entry, id: answer.id }
          walk.add([contact])
          walk.add(answer.contacts)
        }),
      )
    }
    walk.add(nearestTo(infohash, this.#known.values(), setOutFrom))
    const step = async (): Promise<void> => {
      for (let next = walk.next(); next !== undefined; next = walk.next()) {
        if (signal.aborted || this.#over) return
        const answer = await this.#ask(next, question)
        if (answer?.id.equals(next.id) === true) onAnswer(next, answer)
        else {
          // It answers with another id than the one it was named with. A node that changes its id can claim to be
          // near any infohash, so its answer is not used.
          this.#known.delete(addressKey(next))
          walk.silent(next)
        }
      }
    }
    // A worker that finds no node to query ends; an answer may name new nodes, so workers are started again until none is left.
    for (let before = -1; before !== answered; ) {
      before = answered
      await Promise.all(Array.from({ length: atOnce }, step))
    }
    const stored = port === undefined ? 0 : await this.#announce(walk, infohash, port, signal)
    return { peers: [...peers.values()], answered, stored }
  }

  async #announce(walk: Walk, infohash: Buffer, port: number, signal: AbortSignal): Promise<number> {
    if (signal.aborted) return 0
    const answers = await Promise.all(
      walk.nearest().map(({ contact, token }) => {
        return this.#ask(contact, (transaction) =>
          encodeAnnouncePeer(transaction, this.#id, infohash, port, token),
        )
      }),
    )
    return answers.filter((answer) => answer !== undefined).length
  }

  #take(bytes: Buffer, from: PeerAddress): void {
    const onAnswer = this.#pending.get(addressKey(from))
    const answer = onAnswer === undefined ? undefined : decodeDhtAnswer(bytes, this.#isV6)
    if (answer !== undefined) onAnswer?.(answer)
    else if (this.#turns.take(from.host)) {
      const question = decodeDhtQuestion(bytes)
      if (question === undefined || from.port === 0) return
      this.socket.send(this.#reply(question), from.port, from.host, () => 'it may ask again')
    }
  }

  #reply({ name, transaction, target }: DhtQuestion): Buffer {
    const answer = { transaction, id: this.#id, token: undefined, contacts: [], peers: [] }
    if (name === 'ping') return encodeDhtAnswer(answer)
    if (name !== 'find_node' && name !== 'get_peers') {
      return encodeDhtError(transaction, name === 'announce_peer' ? 203 : 204, 'not kept here')
    }
    if (target === undefined) return encodeDhtError(transaction, 203, 'no target')
    return encodeDhtAnswer({ ...answer, contacts: nearestTo(target, this.#known.values(), nearestCount) })
  }

  #remember(contact: DhtContact): void {
    this.#known.set(addressKey(contact), contact)
  }

  /** Sends one query to one address; resolves with the answer, or undefined where none came in time. */
  #ask(to: PeerAddress, question: (transaction: Buffer) => Buffer): Promise<DhtAnswer | undefined> {
    const key = addressKey(to)
    if (this.#over || this.#pending.has(key)) return Promise.resolve(undefined)
    const transaction = randomBytes(4)
    return new Promise((resolve) => {
      const finish = (answer: DhtAnswer | undefined): void => {
        timer.cancel()
        this.#pending.delete(key)
        this.meters
          .of('dht_questions_total', { outcome: answer === undefined ? 'silent' : 'answered' })
          .add(1)
        resolve(answer)
      }
      const timer = this.clock.after(this.options.answerMs, () => finish(undefined))
      this.#pending.set(key, (answer) => {
        if (answer.transaction.equals(transaction)) finish(answer)
      })
      this.socket.send(question(transaction), to.port, to.host, () => 'what is lost stays unanswered')
    })
  }
}
