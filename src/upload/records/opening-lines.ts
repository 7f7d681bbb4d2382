import { type Id, idBytes, idOfBytes } from '../../format/id.js'
import { tryWrite } from '../../store/disk-error.js'
import type { Environment, Table } from '../../store/lmdb.js'
import { ageKey, idInAgeKey, TurnLine, turnOfParties } from './turn-line.js'

/** Bundles of more items or bytes are large. */
const [smallItems, smallBytes] = [64, 4 * 2 ** 20]
/** Bundles of one round of turns: who comes meanwhile waits for the rest of it. */
const roundMax = { small: 64, large: 8 } as const

/** What decides where an accepted bundle waits to be opened. */
export interface OpeningItem {
  readonly id: Id
  readonly receivedMs: number
  readonly owner: string
  /** The turn of a free item (`turnOf`); absent: it is paid for. */
  readonly turn?: string
  /** Absent: of an older release. */
  readonly itemsInside?: number
  readonly place: { readonly sizeBytes: number }
}

/** The lines of those that wait: their names, and what share of the opened items each gets while all have some. */
const lines: readonly {
  readonly name: string
  readonly isFree: boolean
  readonly isLarge: boolean
  readonly weight: number
}[] = [
  { name: 'opening-paid', isFree: false, isLarge: false, weight: 8 },
  { name: 'opening-free', isFree: true, isLarge: false, weight: 4 },
  { name: 'opening-paid-large', isFree: false, isLarge: true, weight: 4 },
  { name: 'opening-free-large', isFree: true, isLarge: true, weight: 1 },
]

/** Number of the line in `lines`; the last one has those that an older release has written down. */
export type OpeningLine = 0 | 1 | 2 | 3 | 4
export const openingLines: readonly OpeningLine[] = [0, 1, 2, 3, 4]
const oldLine: OpeningLine = 4

/** The share of a line in the opened items. */
export function weightOf(line: OpeningLine): number {
  return lines[line]?.weight ?? 1
}

/**
 * Accepted bundles that were not looked into yet, on disk, in lines: paid or free, small or large, each with turns of parties
 * (`TurnLine`; of what is paid for the wallet is the party). So who uploads many items in free bundles delays himself.
 */
export class OpeningLines {
  /** Keyed by id: the number of the line, and the key there. Nothing: of an older release. */
  readonly #unopened: Table
  readonly #lines: readonly TurnLine[]

  constructor(private readonly environment: Environment) {
    this.#unopened = environment.table('unopened')
    this.#lines = lines.map(({ name }) => new TurnLine(environment.table(name)))
  }

  /** Only inside a `write` of the environment. */
  put(item: OpeningItem): void {
    this.remove(item.id)
    const line = lineOf(item)
    const { owner, turn } = item
    const parties =
      turn === undefined ? turnOfParties([owner, owner, owner, owner]) : Buffer.from(turn, 'base64url')
    const key = Buffer.concat([parties, ageKey(item)])
    this.#lines[line]?.put(key)
    this.#unopened.put(idBytes(item.id), placeIn(line, key))
  }

  /** Only inside a `write` of the environment. */
  remove(id: Id): void {
    const found = this.#placeOf(id)
    if (found === undefined) return
    const [line] = found
    if (line !== undefined) this.#lines[line]?.remove(found.subarray(1))
    this.#unopened.remove(idBytes(id))
  }

  has(id: Id): boolean {
    return this.#unopened.get(idBytes(id)) !== undefined
  }

  /** Some of a line, by turns. Not inside of a `write`. */
  round(line: OpeningLine): Id[] {
    if (line === oldLine) return this.#old()
    const max = lines[line]?.isLarge === true ? roundMax.large : roundMax.small
    for (;;) {
      const keys = [...(this.#lines[line]?.keysByTurns(max) ?? [])].map((key) => Buffer.from(key))
      const waiting = keys.filter(
        (key) => this.#placeOf(idInAgeKey(key))?.equals(placeIn(line, key)) === true,
      )
      // An older release has opened the others, and knows nothing of lines.
      const opened = keys.filter((key) => !waiting.includes(key))
      if (opened.length === 0 || waiting.length > 0) return waiting.map(idInAgeKey)
      const remove = (): void =>
        this.environment.write(() => {
          for (const key of opened) this.#lines[line]?.remove(key)
        })
      if (tryWrite(remove) !== undefined) return []
    }
  }

  #placeOf(id: Id): Buffer | undefined {
    const found = this.#unopened.get(idBytes(id))
    return found === undefined ? undefined : Buffer.from(found)
  }

  /** Those of an older release are in no line. They are few, and come when nothing else waits. */
  #old(): Id[] {
    if (this.#lines.some(({ count }) => count > 0)) return []
    return [...this.#unopened.keys({ limit: roundMax.large })].map((key) => idOfBytes(key))
  }
}

/** What the row of a bundle says. */
function placeIn(line: OpeningLine, key: Uint8Array): Buffer {
  return Buffer.concat([Uint8Array.of(line), key])
}

function lineOf({ turn, itemsInside, place }: OpeningItem): 0 | 1 | 2 | 3 {
  const isLarge = (itemsInside ?? smallItems + 1) > smallItems || place.sizeBytes > smallBytes
  const isFree = turn !== undefined
  return lines.findIndex((one) => one.isFree === isFree && one.isLarge === isLarge) as 0 | 1 | 2 | 3
}
