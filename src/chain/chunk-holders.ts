import { BoundedMap } from '../actor/bounded-map.js'
import type { Clock } from '../actor/clock.js'

/** Weave bytes that a node is believed to have all of, or none: those that it packs together (a partition of miners). */
const spanBytes = 3_600_000_000_000

/** Spans and nodes that are remembered; each takes some 100 bytes. */
const notesMax = 8192

/** A node that had no chunk of a span is queried later than others for so long: it may be fetching them. */
const absentMs = 30 * 60_000

const [preferredHandicap, unknownHandicap, absentHandicap] = [2, 4, 10_000]

/** What is known of a node's chunks in a span: it had the last one, or until when it is believed to have none. */
type Note = 'has' | number

/** Which nodes gave chunks of which parts of the weave, by their answers. */
export class ChunkHolders {
  /** Keyed by node and number of the span. */
  readonly #notes = new BoundedMap<string, Note>(notesMax)
  #changes = 0

  constructor(private readonly clock: Clock) {}

  /** How often something new was learned. */
  get changes(): number {
    return this.#changes
  }

  /**
   * Calls that a node is counted to have under way beside its own, when one is chosen for the chunk at weave byte `offset`: none
   * where it had such chunks, a few where nothing is known, so that others are tried when it is busy; fewer where the operator
   * prefers it.
   */
  handicap(node: string, offset: number, isPreferred = false): number {
    const note = this.#notes.get(keyOf(node, offset))
    if (note === 'has') return 0
    if (note !== undefined && note > this.clock.monotonic()) return absentHandicap
    return isPreferred ? preferredHandicap : unknownHandicap
  }

  /** The node gave a chunk that was proven, or stated that it has none. */
  note(node: string, offset: number, hasIt: boolean): void {
    const key = keyOf(node, offset)
    const before = this.#notes.get(key)
    if (hasIt && before === 'has') return
    this.#notes.set(key, hasIt ? 'has' : this.clock.monotonic() + absentMs)
    if (hasIt || before === 'has') this.#changes += 1
  }

  /** Nodes that have chunks, with the numbers of the spans, to be kept over a restart. What they lack is learned anew. */
  kept(): Readonly<Record<string, readonly number[]>> {
    const spans: Record<string, readonly number[]> = {}
    for (const [key, note] of this.#notes) {
      if (note !== 'has') continue
      const at = key.indexOf(' ')
      const node = key.slice(at + 1)
      spans[node] = [...(spans[node] ?? []), Number(key.slice(0, at))]
    }
    return spans
  }

  /** Takes over what an earlier process kept. Whatever is malformed is passed over. */
  takeOver(kept: unknown): void {
    if (typeof kept !== 'object' || kept === null) return
    for (const [node, spans] of Object.entries(kept)) {
      if (!Array.isArray(spans)) continue
      for (const span of spans.slice(0, notesMax))
        if (Number.isSafeInteger(span) && Number(span) >= 0) this.#notes.set(`${Number(span)} ${node}`, 'has')
    }
  }
}

function keyOf(node: string, offset: number): string {
  return `${Math.floor(offset / spanBytes)} ${node}`
}
