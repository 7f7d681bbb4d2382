import type { Clock } from '../actor/clock.js'
import { type Refusal, refuse } from '../format/refusal.js'

const stalled = Symbol('stalled')

/**
 * The pieces of `body`, watched: when none comes for `stallMs` the last word is a refusal (`late`), when the body fails it is
 * one too (`upstream`). The watch runs only while a piece is being waited for, so a slow taker harms nobody. Leaving early
 * ends `body` as well.
 */
export async function* steady(
  body: AsyncIterable<Uint8Array>,
  stallMs: number,
  clock: Clock,
): AsyncGenerator<Uint8Array | Refusal, undefined> {
  const pieces = body[Symbol.asyncIterator]()
  let over = false
  try {
    for (;;) {
      const next = await within(pieces.next(), stallMs, clock)
      if (next === stalled) {
        yield refuse('late', 'upstream', 'the source sent nothing for too long')
        return undefined
      }
      if (next.done === true) {
        over = true
        return undefined
      }
      yield next.value
    }
  } catch (error) {
    yield refuse('upstream', 'upstream', `the source broke: ${(error as Error).message}`)
    return undefined
  } finally {
    // Not awaited: a stalled body would make us wait with it.
    if (!over) void pieces.return?.().catch(() => undefined)
  }
}

function within<T>(promise: Promise<T>, ms: number, clock: Clock): Promise<T | typeof stalled> {
  return new Promise((resolve, reject) => {
    const timer = clock.after(ms, () => resolve(stalled))
    promise.then(resolve, reject).finally(() => timer.cancel())
  })
}
