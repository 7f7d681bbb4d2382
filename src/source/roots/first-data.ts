import type { Clock } from '../../actor/clock.js'
import { signalOf } from '../../actor/lazy-signal.js'
import { isRefusal, type Refusal, refuse } from '../../format/refusal.js'
import type { Found, Source, Wanted } from '../source.js'

/**
 * The same source, which is given up where no byte of the content came within `ms`: then it answers `late`, and the next source
 * gets the request. The time in which nobody reads does not count.
 */
export function firstDataWithin(source: Source, ms: number, clock: Clock): Source {
  return {
    name: source.name,
    ...(source.mayHave === undefined
      ? {}
      : { mayHave: (wanted: Wanted) => source.mayHave?.(wanted) ?? true }),
    async open(wanted, ending) {
      const signal = signalOf(ending)
      const late = new AbortController()
      const either = AbortSignal.any([signal, late.signal])
      const begunMs = clock.monotonic()
      const timer = clock.after(ms, () => late.abort())
      const found = await source.open(wanted, either)
      timer.cancel()
      if (isRefusal(found)) return late.signal.aborted && !signal.aborted ? tooLate(source.name, ms) : found
      const leftMs = Math.max(1, ms - (clock.monotonic() - begunMs))
      return { ...found, body: firstWithin(found, leftMs, late, clock, tooLate(source.name, ms)) }
    },
  }
}

function tooLate(name: string, ms: number): Refusal {
  return refuse('late', 'upstream', `${name} brought no byte within ${ms} ms`)
}

async function* firstWithin(
  { body }: Found,
  ms: number,
  late: AbortController,
  clock: Clock,
  refusal: Refusal,
): AsyncGenerator<Uint8Array | Refusal, undefined> {
  const timer = clock.after(ms, () => late.abort())
  let isFirst = true
  try {
    for await (const piece of body) {
      timer.cancel()
      yield isFirst && isRefusal(piece) && late.signal.aborted ? refusal : piece
      isFirst = false
    }
    return undefined
  } finally {
    timer.cancel()
  }
}
