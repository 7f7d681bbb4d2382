import { randomBytes } from 'node:crypto'
import { encodeBase64url } from '../../format/base64url.js'
import { type Id, idBytes, idOfBytes } from '../../format/id.js'
import { partiesOf } from '../../format/ip.js'
import { sha256 } from '../../proof/digest.js'
import { type Environment, present, type Table } from '../../store/lmdb.js'
import type { Taken } from './free-pools.js'

/** What decides where an item waits. */
export interface WaitingItem {
  readonly id: Id
  readonly receivedMs: number
  /** Of a free item (`turnOf`). Absent: it is paid for, or of an exempt wallet, or of an older release. */
  readonly turn?: string
}

/** Bytes of a digest that stand for one party in a turn. */
const partyBytes = 6
/** Provider, network, address range, wallet. */
const turnBytes = 4 * partyBytes
const keyBytes = 40
/** Keys of one wallet that are read at once, after the first. */
const pageKeys = 64

/**
 * Whose turn a free item waits for: base64url of the parties of its uploader, the widest first. Undefined where nothing was taken
 * from the free bytes: the operator has exempted the wallet.
 */
export function turnOf({ keys }: Taken): string | undefined {
  if (keys.length === 0) return undefined
  const named = (kind: string): string => keys.find((key) => key.startsWith(kind))?.slice(kind.length) ?? ''
  const parties = [...partiesOf(named('r:')), named('w:')]
  return encodeBase64url(
    Buffer.concat(parties.map((party) => sha256(Buffer.from(party)).subarray(0, partyBytes))),
  )
}

/** Key of an item that waits for a bundle: in the order in which they came. */
function ageKey({ receivedMs, id }: WaitingItem): Buffer {
  const key = Buffer.alloc(keyBytes)
  key.writeBigUInt64BE(BigInt(receivedMs))
  key.set(idBytes(id), 8)
  return key
}

/** The id in such a key, or in one with a turn in front. */
function idIn(key: Uint8Array): Id {
  return idOfBytes(key.subarray(key.length - 32))
}

/** Behind all keys that begin with these bytes. */
function endOf(prefix: Uint8Array): Buffer {
  return Buffer.concat([prefix, Buffer.alloc(turnBytes + keyBytes + 1 - prefix.length, 0xff)])
}

/**
 * Items that wait for a bundle, on disk, in two lines. The first has what was paid for, in the order in which it came. Free items
 * have turns: as many items of each provider, of each network in it, of each address range in that, and of each wallet there. So
 * who sends many free items delays nobody but himself.
 */
export class WaitingLines {
  readonly #first: Table
  /** Free items by their age. */
  readonly #free: Table
  /** The same items by their turns, and then by their age. */
  readonly #turns: Table

  constructor(environment: Environment) {
    // Items of older releases are all in this table: they are taken first.
    this.#first = environment.table('waiting')
    this.#free = environment.table('free-waiting')
    this.#turns = environment.table('free-turns')
  }

  get count(): number {
    return this.#first.count() + this.#free.count()
  }

  /** Only inside a `write` of the environment. */
  put(item: WaitingItem): void {
    const key = ageKey(item)
    if (item.turn === undefined) {
      this.#first.put(key, present)
      return
    }
    this.#free.put(key, present)
    this.#turns.put(Buffer.concat([Buffer.from(item.turn, 'base64url'), key]), present)
  }

  /** Only inside a `write` of the environment. */
  remove(item: WaitingItem): void {
    const key = ageKey(item)
    if (item.turn === undefined) {
      this.#first.remove(key)
      return
    }
    this.#free.remove(key)
    this.#turns.remove(Buffer.concat([Buffer.from(item.turn, 'base64url'), key]))
  }

  /** Ids of both lines by their age. */
  oldest(limit: number): Id[] {
    const keys = [this.#first, this.#free].flatMap((table) => [...table.keys({ limit })])
    return keys.sort(Buffer.compare).slice(0, limit).map(idIn)
  }

  /** Ids of the first line, the first come first. */
  *first(limit: number): Generator<Id> {
    for (const key of this.#first.keys({ limit })) yield idIn(key)
  }

  /**
   * Ids of free items by turns. `from` (6 bytes): where the turns begin, at random, because not all have one in one bundle.
   * Nothing may be written meanwhile.
   */
  *byTurns(limit: number, from: Uint8Array = randomBytes(partyBytes)): Generator<Id> {
    let left = limit
    for (const key of this.#below(Buffer.alloc(0), from)) {
      if (left <= 0) return
      left -= 1
      yield idIn(key)
    }
  }

  /** Keys with this prefix: one of each member in turn, and so on until none has more. */
  *#below(prefix: Uint8Array, from: Uint8Array): Generator<Uint8Array> {
    if (prefix.length === turnBytes) {
      yield* this.#ofWallet(prefix)
      return
    }
    let open: Generator<Uint8Array>[] = []
    for (const member of this.#members(prefix, from)) {
      const keys = this.#below(member, from)
      const { done, value } = keys.next()
      if (done === true) continue
      yield value
      open.push(keys)
    }
    while (open.length > 0) {
      const more: Generator<Uint8Array>[] = []
      for (const keys of open) {
        const { done, value } = keys.next()
        if (done === true) continue
        yield value
        more.push(keys)
      }
      open = more
    }
  }

  /** The parties with items below a prefix, in a circle. */
  *#members(prefix: Uint8Array, from: Uint8Array): Generator<Uint8Array> {
    const middle = Buffer.concat([prefix, from])
    for (const [first, end] of [
      [middle, endOf(prefix)],
      [prefix, middle],
    ] as const) {
      let start: Uint8Array = first
      for (let [key] = this.#turns.keys({ start, end, limit: 1 }); key !== undefined; ) {
        const member = key.subarray(0, prefix.length + partyBytes)
        yield member
        start = endOf(member)
        ;[key] = this.#turns.keys({ start, end, limit: 1 })
      }
    }
  }

  *#ofWallet(turn: Uint8Array): Generator<Uint8Array> {
    const end = endOf(turn)
    let start: Uint8Array = turn
    for (let limit = 1; ; limit = pageKeys) {
      const page = [...this.#turns.keys({ start, end, limit })]
      yield* page
      const last = page.at(-1)
      if (last === undefined || page.length < limit) return
      start = Buffer.concat([last, Buffer.of(0)])
    }
  }
}
