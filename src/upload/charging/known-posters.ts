import { networkOfAddress } from '../../format/ip.js'
import type { ItemHeader } from '../../format/item.js'
import { sha256 } from '../../proof/digest.js'
import type { Environment, Table } from '../../store/lmdb.js'

/** Networks that are remembered of a wallet, and for how long. */
const [networksMax, daysMax] = [8, 90]
const [walletBytes, networkBytes, dayMs] = [32, 8, 86_400_000]
const daysCountMax = 0xffff

/**
 * From which networks (IPv4 /24, IPv6 /48) items came that a wallet has paid for. Who posts from one of them is most likely the
 * wallet's owner; a stranger who posts its public items comes from elsewhere. An entry is 32 bytes of the wallet and 8 of the
 * network's SHA-256, with the day of the last item (4 bytes) and the number of days with items (2 bytes; absent: one day).
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
    const found = this.#days.get(keyOf(wallet, address))
    return found !== undefined && dayOf(nowMs) - seenIn(found).lastDay <= daysMax
  }

  /**
   * Remembers that an item came from there. Only inside a `write`. Where there are too many, one gives way that is no home any
   * more, else the one that had items on the fewest days. So strangers who have a wallet pay for some items, from however many
   * networks, take one place, and no network from which its owner comes day by day.
   */
  record(wallet: Uint8Array, address: string, nowMs: number): void {
    const key = keyOf(wallet, address)
    const today = dayOf(nowMs)
    const before = this.#days.get(key)
    const { lastDay, days } = before === undefined ? { lastDay: today, days: 0 } : seenIn(before)
    if (days > 0 && lastDay === today) return
    if (before === undefined) this.#makeRoom(wallet, today)
    const value = Buffer.alloc(6)
    value.writeUInt32BE(today)
    value.writeUInt16BE(Math.min(days + 1, daysCountMax), 4)
    this.#days.put(key, value)
  }

  #makeRoom(wallet: Uint8Array, today: number): void {
    const entries = this.#days
      .from(wallet, networksMax)
      .filter(({ key }) => Buffer.compare(key.subarray(0, walletBytes), wallet) === 0)
      .map(({ key, value }) => ({ key, ...seenIn(value) }))
    if (entries.length < networksMax) return
    const worth = ({ lastDay, days }: Seen): number => (today - lastDay > daysMax ? 0 : days)
    const [least] = entries.sort((one, other) => worth(one) - worth(other) || one.lastDay - other.lastDay)
    if (least !== undefined) this.#days.remove(least.key)
  }
}

interface Seen {
  readonly lastDay: number
  /** On which items came. */
  readonly days: number
}

function seenIn(value: Uint8Array): Seen {
  const bytes = Buffer.from(value)
  return { lastDay: bytes.readUInt32BE(), days: bytes.length < 6 ? 1 : bytes.readUInt16BE(4) }
}

function dayOf(nowMs: number): number {
  return Math.max(0, Math.floor(nowMs / dayMs))
}

function keyOf(wallet: Uint8Array, address: string): Buffer {
  const network = sha256(Buffer.from(networkOfAddress(address)))
  return Buffer.concat([wallet, network.subarray(0, networkBytes)])
}
