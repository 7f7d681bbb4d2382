import { randomUUID } from 'node:crypto'
import { setImmediate as turn } from 'node:timers/promises'
import type { FreeElsewhere, FreeWish, OwnFreeCounts } from '../../cluster/free-elsewhere.js'
import { networkOfAddress, partiesOf } from '../../format/ip.js'
import type { Environment, Table } from '../../store/lmdb.js'

export interface FreeRules {
  /** Larger items are never free; 0: nothing is. Bytes of the whole signed item. */
  readonly itemMaxBytes: number
  /** Free for one wallet from one network (IPv4 /24, IPv6 /48), ever. What others post of its items counts where they are. */
  readonly walletBytes: number
  /** Free for the clients of one address range, ever. */
  readonly rangeBytes: number
  /**
   * What an address range is charged for each item, and each item in a bundle, beyond its bytes, 0 where absent: the records of a
   * small item take more room on disk than the item. Wallets are charged the bytes alone, because a stranger has any number of
   * them.
   */
  readonly itemOverheadBytes?: number
  /** Wallets whose items are all free, of any size, by any of their addresses (`listedAddress`). */
  readonly exemptWallets: readonly string[]
}

/** Whose free bytes an item uses. */
export interface FreeUser {
  /** `canonicalAddress` of the signer: who pays otherwise does not matter. Absent: only the range is counted. */
  readonly wallet?: string
  /** Whether a list names the signer. Absent: only by `wallet`. */
  readonly isExempt?: (list: ReadonlySet<string>) => boolean
  /** The same wallet as its own network writes it. */
  readonly name?: string
  /** Undefined: the address is not counted (this machine's own). */
  readonly range: string | undefined
  /** Number of items in a bundle: its range is charged for the records of each of them, too. */
  readonly itemsInside?: number
}

/** Free bytes that are reserved for one item; they are refunded where it is not accepted. */
export interface FreeReservation {
  readonly keys: readonly string[]
  /** The wallet as its network calls it, where that is another name than ours. */
  readonly name?: { readonly of: string; readonly wallet: string }
  readonly bytes: number
  /** Bytes that count for its address range, where these are not `bytes`. */
  readonly rangeBytes?: number
}

/**
 * A site of IPv6 (/48) has 65,536 ranges, and anybody can have one. Together they get the bytes of this many ranges, the number
 * of addresses in an IPv4 network (/24). A provider (/32) has 65,536 sites, and gets what a block of IPv4 (/16) gets.
 */
const [siteRanges, providerRanges] = [256, 65_536]

/** Wallets and ranges whose counts are kept in memory; all others are read from disk. Beyond it each is looked up once. */
const rememberedMax = 4096
/** The prefix of counts of other machines, and the key of the name of this disk. */
const [othersMark, storeKey] = ['o:', Buffer.from('i:store')] as const
/** Wallets of one name: a key signs in two ways at most, and releases before have counted a third. */
const namesMax = 4
/** Ranges and wallets that are read in one turn of the event loop. */
const listedAtOnce = 5000

/**
 * Bytes that wallets and address ranges have uploaded for free. Never refilled. Counts on disk change in the transaction that
 * accepts the item. In memory bytes count as soon as they are reserved, so that two concurrent uploads cannot both get the last
 * byte.
 */
export class FreePools implements OwnFreeCounts {
  readonly #table: Table
  readonly #used = new Map<string, number>()
  /** What other machines have given, as far as it was requested since the start; else as it was when this machine last gave. */
  readonly #others = new Map<string, number>()
  #elsewhere: FreeElsewhere | undefined
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

  /** From now on what other machines give counts, too. */
  shareWith(elsewhere: FreeElsewhere): void {
    this.#elsewhere = elsewhere
  }

  /** A UUID of this disk; made by the first who asks. */
  store(): string {
    const found = this.#table.get(storeKey)
    if (found !== undefined) return Buffer.from(found).toString()
    return this.environment.write(() => {
      const made = this.#table.get(storeKey) ?? Buffer.from(randomUUID())
      this.#table.put(storeKey, made)
      return Buffer.from(made).toString()
    })
  }

  /**
   * Reserves by what all machines have used. While the others do not answer, what this machine knows of them decides.
   * Undefined: it is not free.
   */
  async reserve(user: FreeUser, bytes: number): Promise<FreeReservation | undefined> {
    const reserved = this.reserveHere(user, bytes)
    if (reserved === undefined || this.#elsewhere === undefined || reserved.keys.length === 0) return reserved
    const wishes = reserved.keys.map(
      (key): FreeWish => ({ key, bytes: bytesOf(key, reserved), maxBytes: this.#maxOf(key) }),
    )
    const verdict = await this.#elsewhere.take(wishes)
    this.#learn(verdict?.others)
    if (verdict?.isFree !== false) return reserved
    this.refund(reserved)
    return undefined
  }

  /** Reads what the other machines have given, for `left` and `leftOfRange`. */
  async refresh(address: string, range?: string): Promise<void> {
    if (this.#elsewhere === undefined) return
    const wallets = this.#walletsOf(address).map((wallet) => walletCount(wallet, range))
    const keys = range === undefined ? wallets : [...wallets, ...rangeCounts(range)]
    this.#learn(await this.#elsewhere.look(keys))
  }

  /** The count of this machine alone, as `left`. */
  own(key: string): number {
    return this.#used.get(key) ?? this.#stored(key)
  }

  keysBehind(after: string, limit: number): string[] {
    const found: string[] = []
    const start = Buffer.from(after === '' ? 'p:' : `${after}\0`)
    for (const key of this.#table.keys({ start, limit })) found.push(Buffer.from(key).toString())
    return found
  }

  /** Reserves by what this machine knows. Undefined: it is not free. */
  reserveHere(user: FreeUser, bytes: number): FreeReservation | undefined {
    // Not while a transaction runs: it may be undone.
    if (this.#used.size > rememberedMax) this.#forgetSettled()
    const reserved = this.reservable(user, bytes)
    if (reserved === undefined) return undefined
    for (const key of reserved.keys) this.#used.set(key, this.own(key) + bytesOf(key, reserved))
    return reserved
  }

  /** What `reserveHere` would reserve now. */
  reservable(user: FreeUser, bytes: number): FreeReservation | undefined {
    const { wallet, name: of = wallet, range, itemsInside = 0 } = user
    const { itemMaxBytes, itemOverheadBytes = 0 } = this.rules
    const inRange = bytes + itemOverheadBytes * (1 + itemsInside)
    const name = of === undefined || wallet === undefined || of === wallet ? {} : { name: { of, wallet } }
    if (this.isExempt(user)) return { keys: [], bytes, ...name }
    if (itemMaxBytes === 0 || bytes > itemMaxBytes) return undefined
    const walletKey = wallet === undefined ? [] : [walletCount(wallet, range)]
    // Other machines may never have seen which wallet is meant by the address of its own network.
    if (this.#elsewhere !== undefined && of !== undefined && of !== wallet)
      walletKey.push(walletCount(of, range))
    const ranges = range === undefined ? [] : rangeCounts(range)
    const keys = [...walletKey, ...ranges]
    const full = keys.filter(
      (key) => this.#count(key) + (key.startsWith('w:') ? bytes : inRange) > this.#maxOf(key),
    )
    if (full.length > 0) {
      // Others may have refunded what they had reserved.
      void this.#elsewhere?.lookAgain(full)?.then((others) => this.#learn(others))
      return undefined
    }
    return { keys, bytes, ...(inRange === bytes ? {} : { rangeBytes: inRange }), ...name }
  }

  /** Whether all its items are free, of any size. */
  isExempt({ wallet, isExempt }: FreeUser): boolean {
    if (wallet === undefined || this.#exempt.size === 0) return false
    return this.#exempt.has(wallet) || isExempt?.(this.#exempt) === true
  }

  /** The item was not accepted. */
  refund(reserved: FreeReservation): void {
    for (const key of reserved.keys) this.#used.set(key, this.own(key) - bytesOf(key, reserved))
    this.#elsewhere?.changed(reserved.keys)
  }

  /** Writes what was reserved to disk. Only inside a `write` of the environment. */
  record(reserved: FreeReservation): void {
    const { keys, name } = reserved
    if (name !== undefined) this.#name(name.of, name.wallet)
    for (const key of keys) {
      const before = this.#stored(key)
      this.#table.put(Buffer.from(key), Buffer.from(String(before + bytesOf(key, reserved))))
      // For the time when the others do not answer.
      const others = this.#others.get(key) ?? 0
      if (others > 0) this.#table.put(Buffer.from(`${othersMark}${key}`), Buffer.from(String(others)))
    }
  }

  /**
   * Bytes that a wallet has left from this address; null: without end. `address`: of either form. One that is not known here has
   * used nothing. Of a key that signs in several ways each has its own: what is left of the one that has used most.
   */
  left(address: string, range?: string): number | null {
    const wallets = this.#walletsOf(address)
    if ([address, ...wallets].some((one) => this.#exempt.has(one))) return null
    if (this.rules.itemMaxBytes === 0) return 0
    const used = wallets.map((wallet) => this.#count(walletCount(wallet, range)))
    return Math.max(0, this.rules.walletBytes - Math.max(...used))
  }

  /** The same of an address range; undefined: it is not counted. */
  leftOfRange(range: string | undefined): number | null {
    if (this.rules.itemMaxBytes === 0) return 0
    if (range === undefined) return null
    const left = rangeCounts(range).map((key) => this.#maxOf(key) - this.#count(key))
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
      const users = page.filter(({ name }) => !name.startsWith('s:') && !this.#isOtherName(name))
      known += users.length
      most = [...most, ...users].sort((one, other) => other.bytes - one.bytes).slice(0, max)
      isMore = page.length === listedAtOnce
      start = Buffer.from(`${page.at(-1)?.name ?? ''}\0`)
      if (isMore) await turn()
    }
    return { known, most: most.map(({ name, bytes }) => ({ name: name.slice(2), bytes })) }
  }

  /** The same on a thread that only reads: what another has written so far counts. */
  leftNow(address: string, range?: string): number | null {
    this.environment.refresh()
    return this.left(address, range)
  }

  /** The count of all machines, as far as this one knows. */
  #count(key: string): number {
    return this.own(key) + (this.#others.get(key) ?? this.#stored(`${othersMark}${key}`))
  }

  #maxOf(key: string): number {
    if (key.startsWith('w:')) return this.rules.walletBytes
    return this.rules.rangeBytes * (rangesOf[key.slice(0, 2)] ?? 1)
  }

  /** The same count as that of a wallet, by the address of its own network. */
  #isOtherName(key: string): boolean {
    const [name = ''] = key.slice(2).split(' ')
    return key.startsWith('w:') && this.#table.get(Buffer.from(`n:${name}`)) !== undefined
  }

  /** Those whose own network writes this address; the address itself where there is none. */
  #walletsOf(address: string): readonly string[] {
    const known = this.#table.get(Buffer.from(`n:${address.slice(0, 128)}`))
    return known === undefined ? [address.slice(0, 128)] : Buffer.from(known).toString().split(' ')
  }

  /** Another wallet of the same name stays: one key may sign in several ways. */
  #name(of: string, wallet: string): void {
    const key = Buffer.from(`n:${of}`)
    const known = this.#table.get(key)
    const before = known === undefined ? [] : Buffer.from(known).toString().split(' ')
    if (before.includes(wallet)) return
    this.#table.put(key, Buffer.from([...before, wallet].slice(-namesMax).join(' ')))
  }

  #learn(others: ReadonlyMap<string, number> | undefined): void {
    if (this.#others.size > rememberedMax) this.#others.clear()
    for (const [key, bytes] of others ?? []) this.#others.set(key, bytes)
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

/** How many bytes of it count under a key. */
function bytesOf(key: string, { bytes, rangeBytes = bytes }: FreeReservation): number {
  return key.startsWith('w:') ? bytes : rangeBytes
}

/** Under which key a wallet counts, by the network from which its items come: by itself where they come from this machine. */
function walletCount(wallet: string, range: string | undefined): string {
  return range === undefined ? `w:${wallet}` : `w:${wallet} ${networkOfAddress(range)}`
}

/** How many ranges' bytes the counts of ranges get, by the beginning of their keys. */
const rangesOf: Readonly<Record<string, number>> = { 'r:': 1, 's:': siteRanges, 'p:': providerRanges }

/** Under which keys a range counts: its own, and for one of IPv6 those of its site and provider. */
function rangeCounts(range: string): string[] {
  if (!range.includes(':')) return [`r:${range}`]
  const [provider, network] = partiesOf(range)
  return [`r:${range}`, `s:${network}`, `p:${provider}`]
}
