import { encodeBase64url } from '../../format/base64url.js'
import type { Id } from '../../format/id.js'
import { partiesOf } from '../../format/ip.js'
import { type Environment, present, type Table } from '../../store/lmdb.js'
import type { FreeReservation } from './free-pools.js'
import { ageKey, idInAgeKey, TurnLine, turnOfParties } from './turn-line.js'

/** What decides where an item waits. */
export interface WaitingItem {
  readonly id: Id
  readonly receivedMs: number
  /** The turn of a free item (`turnOf`). Absent: it is paid for, or of an exempt wallet, or of an older release. */
  readonly turn?: string
}

/**
 * Whose turn a free item waits for: base64url of the parties of its uploader, the widest first. Undefined where nothing was taken
 * from the free bytes: the operator has exempted the wallet.
 */
export function turnOf({ keys }: FreeReservation): string | undefined {
  if (keys.length === 0) return undefined
  const named = (kind: string): string => keys.find((key) => key.startsWith(kind))?.slice(kind.length) ?? ''
  return encodeBase64url(turnOfParties([...partiesOf(named('r:')), named('w:')]))
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
  readonly #turns: TurnLine

  constructor(environment: Environment) {
    // Items of older releases are all in this table: they are taken first.
    this.#first = environment.table('waiting')
    this.#free = environment.table('free-waiting')
    this.#turns = new TurnLine(environment.table('free-turns'))
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
    this.#turns.put(Buffer.concat([Buffer.from(item.turn, 'base64url'), key]))
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
    return keys.sort(Buffer.compare).slice(0, limit).map(idInAgeKey)
  }

  /** Ids of the first line, the first come first. */
  *first(limit: number): Generator<Id> {
    for (const key of this.#first.keys({ limit })) yield idInAgeKey(key)
  }

  /** Ids of free items by turns (`TurnLine.byTurns`). */
  byTurns(limit: number, from?: Uint8Array): Generator<Id> {
    return this.#turns.byTurns(limit, from)
  }
}
