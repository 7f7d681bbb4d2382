import { randomBytes } from 'node:crypto'
import { type Id, idBytes, idOfBytes } from '../../format/id.js'
import { sha256 } from '../../proof/digest.js'
import { present, type Table } from '../../store/lmdb.js'

/** Bytes of a digest that stand for one party in a turn. */
const partyBytes = 6
/** Provider, network, address range, wallet. */
export const turnBytes = 4 * partyBytes
const keyBytes = 40
/** Keys of one wallet that are read at once, after the first. */
const pageKeys = 64

/** A turn of these four parties, the widest first. */
export function turnOfParties(parties: readonly [string, string, string, string]): Buffer {
  return Buffer.concat(parties.map((party) => sha256(Buffer.from(party)).subarray(0, partyBytes)))
}

/** Key of an item that waits: in the order in which they came. */
export function ageKey({ receivedMs, id }: { readonly receivedMs: number; readonly id: Id }): Buffer {
  const key = Buffer.alloc(keyBytes)
  key.writeBigUInt64BE(BigInt(receivedMs))
  key.set(idBytes(id), 8)
  return key
}

/** The id in such a key, or in one with a turn in front. */
export function idInAgeKey(key: Uint8Array): Id {
  return idOfBytes(key.subarray(key.length - 32))
}

/** Behind all keys that begin with these bytes. */
function endOf(prefix: Uint8Array): Buffer {
  return Buffer.concat([prefix, Buffer.alloc(turnBytes + keyBytes + 1 - prefix.length, 0xff)])
}

/**
 * A line on disk with turns: as many items of each provider, of each network in it, of each address range in that, and of each
 * wallet there. A key is a turn (`turnBytes`) and then the age of the item (`ageKey`).
 */
export class TurnLine {
  constructor(private readonly table: Table) {}

  get count(): number {
    return this.table.count()
  }

  /** Only inside a `write` of the environment. */
  put(key: Uint8Array): void {
    this.table.put(key, present)
  }

  /** Only inside a `write` of the environment. */
  remove(key: Uint8Array): void {
    this.table.remove(key)
  }

  /**
   * Ids by turns. `from` (6 bytes): where the turns begin, at random, because not all have one in one round. Nothing may be
   * written meanwhile.
   */
  *byTurns(limit: number, from?: Uint8Array): Generator<Id> {
    for (const key of this.keysByTurns(limit, from)) yield idInAgeKey(key)
  }

  /** The keys of these. */
  *keysByTurns(limit: number, from: Uint8Array = randomBytes(partyBytes)): Generator<Uint8Array> {
    let left = limit
    for (const key of this.#below(Buffer.alloc(0), from)) {
      if (left <= 0) return
      left -= 1
      yield key
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
      for (let [key] = this.table.keys({ start, end, limit: 1 }); key !== undefined; ) {
        const member = key.subarray(0, prefix.length + partyBytes)
        yield member
        start = endOf(member)
        ;[key] = this.table.keys({ start, end, limit: 1 })
      }
    }
  }

  *#ofWallet(turn: Uint8Array): Generator<Uint8Array> {
    const end = endOf(turn)
    let start: Uint8Array = turn
    for (let limit = 1; ; limit = pageKeys) {
      const page = [...this.table.keys({ start, end, limit })]
      yield* page
      const last = page.at(-1)
      if (last === undefined || page.length < limit) return
      start = Buffer.concat([last, Buffer.of(0)])
    }
  }
}
