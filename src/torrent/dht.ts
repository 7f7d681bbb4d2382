import { lookup } from 'node:dns/promises'
import { isIP } from 'node:net'
import type { Clock } from '../actor/clock.js'
import type { Meters } from '../actor/meter.js'
import type { Announced, AnnounceRequest } from './announce.js'
import type { PeerAddress } from './compact-peers.js'
import { DhtNode } from './dht-node.js'

/** Stands for the distributed hash table where the address of a tracker is expected. */
export const dhtUrl = 'dht:'

export interface DhtPlace {
  /** Address of this machine that the seeder listens on; `0.0.0.0`: every one of IPv4, `::`: every one. */
  readonly host: string
  /** UDP port; 0: a free one. */
  readonly port: number
  /** IP addresses under which this machine is seen, as far as they are known. */
  readonly addresses: readonly string[]
  /** How long a node's answer is waited for. */
  readonly answerMs: number
}

/** Nodes forget an announce after half an hour. */
const intervalSeconds = 900

/** The distributed hash tables of IPv4 and of IPv6 (BEP 32), those of them whose network this machine has. */
export class Dht {
  private constructor(
    private readonly nodes: readonly { readonly node: DhtNode; readonly family: 4 | 6 }[],
    private readonly entries: readonly PeerAddress[],
  ) {}

  /** `entries`: nodes to begin with, names or addresses. */
  static async open(
    entries: readonly PeerAddress[],
    { host, port, addresses, answerMs }: DhtPlace,
    clock: Clock,
    meters: Meters,
  ): Promise<Dht> {
    const opened = await Promise.all(
      ([4, 6] as const).map(async (family) => {
        if (host !== '::' && isIP(host) !== family) return []
        const own = host === '::' && family === 4 ? '0.0.0.0' : host
        const address = addresses.find((one) => isIP(one) === family)
        const node = await DhtNode.open({ host: own, port, address, answerMs }, clock, meters)
        return node === undefined ? [] : [{ node, family }]
      }),
    )
    return new Dht(opened.flat(), entries)
  }

  /** IP versions that it is there for. */
  get families(): readonly number[] {
    return this.nodes.map(({ family }) => family)
  }

  /**
   * Looks up the peers of a torrent, under each of its infohashes; where the torrent is complete here, announces it too.
   * Undefined where no node answered. Never rejects.
   */
  async announce(
    { infohashes, left, port }: AnnounceRequest,
    signal: AbortSignal,
  ): Promise<Announced | undefined> {
    const entries = await this.#resolve()
    const walked = await Promise.all(
      this.nodes.flatMap(({ node, family }) => {
        const own = entries.filter((entry) => entry.family === family)
        return infohashes.map((infohash) =>
          node.walk(Buffer.from(infohash), left === 0 ? port : undefined, own, signal),
        )
      }),
    )
    const isAnswered = walked.some(({ answered, stored }) => (left === 0 ? stored : answered) > 0)
    return isAnswered ? { intervalSeconds, peers: walked.flatMap(({ peers }) => peers) } : undefined
  }

  close(): void {
    for (const { node } of this.nodes) node.close()
  }

  async #resolve(): Promise<readonly (PeerAddress & { readonly family: number })[]> {
    const found = await Promise.all(
      this.entries.map(async ({ host, port }) => {
        const all = await lookup(host, { all: true }).catch(() => [])
        return all.slice(0, 4).map(({ address, family }) => ({ host: address, port, family }))
      }),
    )
    return found.flat()
  }
}
