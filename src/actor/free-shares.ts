import { networkOfAddress } from '../format/ip.js'

/** Gives a place back; calling it again does nothing. */
export type Leave = () => void

/** Of the second half, each may hold this part, at least one. */
const modestPart = 32

/**
 * Places for clients, named by their addresses. One client alone has at most half of them, and so has one network (IPv4 /24, IPv6
 * /48): a site of IPv6 has 65,536 ranges, each of them a client. The second half is for those who hold few: a newcomer finds a
 * place while fewer networks than `modestPart` / 2 take all that they can.
 */
export class FreeShares {
  readonly #clients = new Map<string, number>()
  readonly #networks = new Map<string, number>()
  #taken = 0

  constructor(private readonly max: number) {}

  /** Undefined: it has its share. */
  take(client: string): Leave | undefined {
    const network = networkOfAddress(client)
    const isHalf = this.#taken * 2 >= this.max
    const most = isHalf ? Math.max(1, Math.floor(this.max / modestPart)) : this.max - this.#taken
    const isFull = this.#taken >= this.max || held(this.#clients, client) >= most
    if (isFull || held(this.#networks, network) >= most) return undefined
    this.#add(client, network, 1)
    let isHeld = true
    return () => {
      if (!isHeld) return
      isHeld = false
      this.#add(client, network, -1)
    }
  }

  #add(client: string, network: string, change: 1 | -1): void {
    this.#taken += change
    count(this.#clients, client, change)
    count(this.#networks, network, change)
  }
}

function held(counts: ReadonlyMap<string, number>, name: string): number {
  return counts.get(name) ?? 0
}

function count(counts: Map<string, number>, name: string, change: number): void {
  const left = held(counts, name) + change
  if (left > 0) counts.set(name, left)
  else counts.delete(name)
}
