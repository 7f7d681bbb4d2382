import { partiesOf } from '../../format/ip.js'
import type { Environment, Table } from '../../store/lmdb.js'

export interface FreeRules {
  /** Larger items are never free; 0: nothing is. Bytes of the whole signed item. */
  readonly itemMaxBytes: number
  /** For one wallet, ever. */
  readonly walletBytes: number
  /** For the clients of one address range, ever. */
  readonly rangeBytes: number
  /**
   * What an address range is charged for each item beyond its bytes, 0 where absent: the records of a small item take more
   * room on disk than the item. Wallets are charged the bytes alone, because a stranger has any number of them.
   */
  readonly itemOverheadBytes?: number
  /** Wallets whose items are all free, of any size, by their normalized addresses. */
  readonly exemptWallets: readonly string[]
}

/** Who takes from the pools. */
export interface FreeTaker {
  /** Normalized address of the signer: who pays otherwise does not matter. Absent: only the range is counted. */
  readonly wallet?: string
  /** The same wallet as its own network writes it. */
  readonly name?: string
  /** Undefined: the address is not counted (this machine's own). */
  readonly range: string | undefined
}

/** What was taken for one item; it is given back where the item is not accepted. */
export interface Taken {
  readonly keys: readonly string[]
  /** Of the wallet, where its network calls it otherwise than we do. */
  readonly name?: { readonly of: string; readonly wallet: string }
  readonly bytes: number
  /** Of address ranges, where it is not `bytes`. */
  readonly rangeBytes?: number
}

/**
 * A site of IPv6 (/48) has 65,536 ranges, and anybody can have one. Together they get the bytes of this many ranges, the number
 * of addresses in an IPv4 network (/24). A provider (/32) has 65,536 sites, and gets what a block of IPv4 (/16) gets.
 */
const [siteRanges, providerRanges] = [256, 65_536]

/** Wallets and ranges whose counts are kept in memory; all others are read from disk. Beyond it each is looked up once. */
const rememberedMax = 4096
/** Ranges and wallets that are read in one turn of the event loop. */
const listedAtOnce = 5000

/**
 * Bytes that wallets and address ranges have uploaded for free. Never refilled. Counts on disk change in the transaction that
 * accepts the item. In memory bytes count as soon as they are taken, so that two concurrent uploads cannot both get the last
 * byte.
 */
export class FreePools {
  readonly #table: Table
  readonly #used = new Map<string, number>()
  #exempt: ReadonlySet<string>

  constructor(
    private readonly environment: Environment,
    readonly rules: FreeRules,
  ) {
    this.#table = environment.table('free')
    this.#exempt = new Set(rules.exemptWallets)
  }

  /** From now on all items of these wallets are free, and of no others. */
  exempt(wallets: readonly string[]): void {
    this.#exempt = new Set(wallets)
  }

  /** Undefined: it is not free. */
  take(taker: FreeTaker, bytes: number): Taken | undefined {
    // Not while a transaction runs: it may be undone.
    if (this.#used.size > rememberedMax) this.#forgetSettled()
    const taken = this.would(taker, bytes)
    if (taken === undefined) return undefined
    for (const key of taken.keys) this.#used.set(key, this.#count(key) + bytesOf(key, taken))
    return taken
  }

  /** What `take` would take now. */
  would({ wallet, name: of = wallet, range }: FreeTaker, bytes: number): Taken | undefined {
    const { itemMaxBytes, walletBytes, rangeBytes, itemOverheadBytes = 0 } = this.rules
    const inRange = bytes + itemOverheadBytes
    const name = of === undefined || wallet === undefined || of === wallet ? {} : { name: { of, wallet } }
    if (wallet !== undefined && this.#exempt.has(wallet)) return { keys: [], bytes, ...name }
    if (itemMaxBytes === 0 || bytes > itemMaxBytes) return undefined
    const walletKey = wallet === undefined ? [] : [`w:${wallet}`]
    const rangeKey = range === undefined ? [] : [`r:${range}`]
    const site = range === undefined ? [] : siteOf(range)
    if (walletKey.some((key) => this.#count(key) + bytes > walletBytes)) return undefined
    if (rangeKey.some((key) => this.#count(key) + inRange > rangeBytes)) return undefined
    if (site.some(({ key, ranges }) => this.#count(key) + inRange > rangeBytes * ranges)) return undefined
    const keys = [...walletKey, ...rangeKey, ...site.map(({ key }) => key)]
    return { keys, bytes, ...(inRange === bytes ? {} : { rangeBytes: inRange }), ...name }
  }

  giveBack(taken: Taken): void {
    for (const key of taken.keys) this.#used.set(key, this.#count(key) - bytesOf(key, taken))
  }

  /** Writes down what was taken. Only inside a `write` of the environment. */
  keep(taken: Taken): void {
    const { keys, name } = taken
    if (name !== undefined) this.#table.put(Buffer.from(`n:${name.of}`), Buffer.from(name.wallet))
    for (const key of keys) {
      const before = this.#stored(key)
      this.#table.put(Buffer.from(key), Buffer.from(String(before + bytesOf(key, taken))))
    }
  }

  /**
   * Bytes that a wallet has left; null: without end. `address`: of either form. One that is not known here has taken nothing.
   */
  left(address: string): number | null {
    const known = this.#table.get(Buffer.from(`n:${address.slice(0, 128)}`))
    const wallet = known === undefined ? address.slice(0, 128) : Buffer.from(known).toString()
    if (this.#exempt.has(wallet)) return null
    if (this.rules.itemMaxBytes === 0) return 0
    return Math.max(0, this.rules.walletBytes - this.#count(`w:${wallet}`))
  }

  /** The same of an address range; undefined: it is not counted. */
  leftOfRange(range: string | undefined): number | null {
    if (this.rules.itemMaxBytes === 0) return 0
    if (range === undefined) return null
    const all = [{ key: `r:${range}`, ranges: 1 }, ...siteOf(range)]
    const left = all.map(({ key, ranges }) => this.rules.rangeBytes * ranges - this.#count(key))
    return Math.max(0, Math.min(...left))
  }

  /** Who has used most of what is free. Reads all ranges and wallets, some thousands in a turn of the event loop. */
  async listed(
    max: number,
  ): Promise<{ readonly known: number; readonly most: readonly { name: string; bytes: number }[] }> {
    let known = 0
    let most: { name: string; bytes: number }[] = []
    for (let start = Buffer.from('r:'), isMore = true; isMore; ) {
      const page = [...this.#table.span({ start, limit: listedAtOnce })].map(({ key, value }) => ({
        name: Buffer.from(key).toString(),
        bytes: Number(Buffer.from(value).toString()),
      }))
      // A site is the sum of ranges that are listed themselves. Providers (`p:`) stand in front of the ranges.
      const users = page.filter(({ name }) => !name.startsWith('s:'))
      known += users.length
      most = [...most, ...users].sort((one, other) => other.bytes - one.bytes).slice(0, max)
      isMore = page.length === listedAtOnce
      start = Buffer.from(`${page.at(-1)?.name ?? ''}\0`)
      if (isMore) await new Promise((resolve) => setImmediate(resolve))
    }
    return { known, most: most.map(({ name, bytes }) => ({ name: name.slice(2), bytes })) }
  }

  /** The same on a thread that only reads: what another has written so far counts. */
  leftNow(address: string): number | null {
    this.environment.refresh()
    return this.left(address)
  }

  #count(key: string): number {
    return this.#used.get(key) ?? this.#stored(key)
  }

  #stored(key: string): number {
    const found = this.#table.get(Buffer.from(key))
    return found === undefined ? 0 : Number(Buffer.from(found).toString())
  }

  /** What is in memory and not on disk yet stays. */
  #forgetSettled(): void {
    for (const [key, count] of this.#used) if (this.#stored(key) === count) this.#used.delete(key)
  }
}

/** What was taken under a key. */
function bytesOf(key: string, { bytes, rangeBytes = bytes }: Taken): number {
  return key.startsWith('w:') ? bytes : rangeBytes
}

/** Under which keys a range of IPv6 counts besides its own, and the bytes of how many ranges each of them gets. */
function siteOf(range: string): { readonly key: string; readonly ranges: number }[] {
  if (!range.includes(':')) return []
  const [provider, network] = partiesOf(range)
  return [
    { key: `s:${network}`, ranges: siteRanges },
    { key: `p:${provider}`, ranges: providerRanges },
  ]
}
