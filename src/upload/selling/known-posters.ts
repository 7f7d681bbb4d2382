import { networkOfAddress } from '../../format/ip.js'
import type { ItemHeader } from '../../format/item.js'
import { sha256 } from '../../proof/digest.js'
import type { Environment, Table } from '../../store/lmdb.js'

/** Networks that are remembered of a wallet, and for how long. */
const [networksMax, daysMax] = [8, 90]
const [walletBytes, networkBytes, dayMs] = [32, 8, 86_400_000]

/**
 * From which networks (IPv4 /24, IPv6 /48) items came that a wallet has paid for. Who posts from one of them is most likely the
 * wallet's owner; a stranger who posts its public items comes from elsewhere. An entry is 32 bytes of the wallet and 8 of the
 * network's SHA-256, with the day of the last item (4 bytes).
 */
export class KnownPosters {
  readonly #days: Table

  constructor(environment: Environment) {
    this.#days = environment.table('posters')
  }

  /** Whether the owner of an item is at home there. `range`: IP address of the client; undefined: this machine. */
  isHome({ owner }: Pick<ItemHeader, 'owner'>, range: string | undefined, nowMs: number): boolean {
    return range === undefined || this.has(sha256(owner), range, nowMs)
  }

  /** `wallet`: SHA-256 of its public key. `address`: IP address of the client. */
  has(wallet: Uint8Array, address: string, nowMs: number): boolean {
    const day = this.#days.get(keyOf(wallet, address))
    return day !== undefined && dayOf(nowMs) - Buffer.from(day).readUInt32BE() <= daysMax
  }

  /** Remembers that an item came from there. The network that was not seen for longest gives way. Only inside a `write`. */
  keep(wallet: Uint8Array, address: string, nowMs: number): void {
    const key = keyOf(wallet, address)
    const day = Buffer.alloc(4)
    day.writeUInt32BE(dayOf(nowMs))
    const before = this.#days.get(key)
    if (before !== undefined && Buffer.compare(before, day) === 0) return
    if (before === undefined) this.#makeRoom(wallet)
    this.#days.put(key, day)
  }

  #makeRoom(wallet: Uint8Array): void {
    const entries = this.#days
      .from(wallet, networksMax)
      .filter(({ key }) => Buffer.compare(key.subarray(0, walletBytes), wallet) === 0)
    if (entries.length < networksMax) return
    const [oldest] = entries.sort((one, other) => Buffer.compare(one.value, other.value))
    if (oldest !== undefined) this.#days.remove(oldest.key)
  }
}

function dayOf(nowMs: number): number {
  return Math.max(0, Math.floor(nowMs / dayMs))
}

function keyOf(wallet: Uint8Array, address: string): Buffer {
  const network = sha256(Buffer.from(networkOfAddress(address)))
  return Buffer.concat([wallet, network.subarray(0, networkBytes)])
}
