import { randomBytes } from 'node:crypto'
import type { Test } from 'tap'
import { type Id, idOfBytes } from '../../src/format/id.js'
import { isRefusal, type Refusal } from '../../src/format/refusal.js'
import type { Found, Source, Wanted } from '../../src/source/source.js'
import type { Hints, Window } from '../../src/source/source-messages.js'
import { random } from '../property.js'

/** A source and a payload that it has. */
export interface Case {
  readonly source: Source
  readonly id: Id
  readonly payload: Uint8Array
  readonly hints?: Hints
  /** What every answer must say about itself. */
  readonly proven: boolean
}

const never = new AbortController().signal

/** All bytes of a body, or the refusal that ended it. */
export async function taken(found: Found | Refusal): Promise<Buffer | Refusal> {
  if (isRefusal(found)) return found
  const pieces: Uint8Array[] = []
  for await (const piece of found.body) {
    if (isRefusal(piece)) return piece
    // A piece is only valid until the next one.
    pieces.push(Buffer.from(piece))
  }
  return Buffer.concat(pieces)
}

export function wantedOf(id: Id, hints: Hints = {}, window?: Window): Wanted {
  return {
    id,
    hints,
    provenance: { hops: 0, via: [], forward: true },
    avoid: new Set(),
    ...(window === undefined ? {} : { window }),
  }
}

/** What every implementation of `Source` does, and every decorator of one. */
export async function conform(t: Test, { source, id, payload, hints = {}, proven }: Case): Promise<void> {
  const size = payload.length
  const open = (window?: Window, signal = never): Promise<Found | Refusal> =>
    source.open(wantedOf(id, hints, window), signal)

  await t.test('the whole payload, of the size that was announced', async (t) => {
    const found = await open()
    if (isRefusal(found)) throw new Error(`${found.refused}: ${found.message}`)
    t.equal(found.sizeBytes, size)
    t.equal(found.proven, proven)
    t.ok(found.name.length > 0 && found.origin.length > 0)
    const bytes = await taken(found)
    t.ok(!isRefusal(bytes) && bytes.equals(payload))
  })

  await t.test('every window is the same bytes', async (t) => {
    const windows = [
      { start: 0, end: 0 },
      { start: size - 1, end: size - 1 },
      { start: 0, end: size - 1 },
      ...Array.from({ length: 6 }, () => {
        const [one, other] = [Math.floor(random() * size), Math.floor(random() * size)]
        return { start: Math.min(one, other), end: Math.max(one, other) }
      }),
    ]
    for (const window of windows) {
      const found = await open(window)
      const bytes = await taken(found)
      const right = !isRefusal(bytes) && bytes.equals(payload.subarray(window.start, window.end + 1))
      t.ok(right, `${window.start} to ${window.end}`)
      t.equal(!isRefusal(found) && found.sizeBytes, size, 'the size is that of the whole')
    }
  })

  await t.test('a window behind the end is unsatisfiable', async (t) => {
    const found = await open({ start: size, end: size })
    t.equal(isRefusal(found) && found.refused, 'unsatisfiable')
    if (!isRefusal(found)) await taken(found)
  })

  await t.test('an id that does not exist is unknown', async (t) => {
    const found = await source.open(wantedOf(idOfBytes(randomBytes(32)), hints), never)
    t.equal(isRefusal(found) && found.refused, 'unknown')
  })

  await t.test('a taker may leave early, and the source serves on', async (t) => {
    const found = await open()
    if (isRefusal(found)) throw new Error(found.message)
    for await (const piece of found.body) {
      t.notOk(isRefusal(piece))
      break
    }
    const again = await taken(await open())
    t.ok(!isRefusal(again) && again.equals(payload))
  })

  await t.test('an aborted body does not end as if it were whole', async (t) => {
    const abort = new AbortController()
    const found = await open(undefined, abort.signal)
    if (isRefusal(found)) throw new Error(found.message)
    abort.abort()
    const bytes = await taken(found)
    // What was at hand already may still be given, to its very end.
    t.ok(isRefusal(bytes) || bytes.equals(payload))
  })

  await t.test('an origin that is to be avoided is not asked', async (t) => {
    const first = await open()
    if (isRefusal(first)) throw new Error(first.message)
    await taken(first)
    const wanted = { ...wantedOf(id, hints), avoid: new Set([first.origin]) }
    const second = await source.open(wanted, never)
    t.ok(isRefusal(second) || second.origin !== first.origin)
    if (!isRefusal(second)) await taken(second)
  })
}
