import { sortNatively } from '../../native/words/words.js'
import { compareBytes } from './word-key.js'

/** A position in a sort key: the four bytes above it stay exact in a double. */
const positions = 2 ** 21
/** Below so many a plain insertion is faster than anything else. */
const fewTexts = 12

/** Texts that `sortedTexts` sorts: text `at` lies from `starts[at]` to `starts[at + 1]` of `bytes`. */
interface Texts {
  readonly bytes: Uint8Array
  readonly starts: Uint32Array
  readonly order: Uint32Array
}

/** More texts cannot be sorted at once. */
export const textsMax = positions

/**
 * The order of `count` texts, which all differ: the least first. Without the addon it sorts by four bytes at a time as doubles
 * that hold them and a position, which is what the engine sorts fastest.
 */
export function sortedTexts(bytes: Uint8Array, starts: Uint32Array, count: number): Uint32Array {
  if (count > positions) throw new RangeError(`${count} texts are too many to be sorted at once`)
  if (sortNatively === undefined) return sortedHere(bytes, starts, count)
  const order = new Uint32Array(count)
  sortNatively(bytes, starts, order)
  return order
}

/** The same without the addon. */
export function sortedHere(bytes: Uint8Array, starts: Uint32Array, count: number): Uint32Array {
  const order = Uint32Array.from({ length: count }, (_, at) => at)
  sort({ bytes, starts, order }, 0, count, 0)
  return order
}

/** Sorts `order` between two places by what stands from `depth` on; all before is the same. */
function sort(texts: Texts, from: number, end: number, depth: number): void {
  if (end - from <= fewTexts) {
    insert(texts, from, end, depth)
    return
  }
  const keys = new Float64Array(end - from)
  let at = depth + 4 * Math.floor(sharedFrom(texts, from, end, depth) / 4)
  for (; ; at += 4) {
    const found = fill(texts, from, end, at, keys)
    if (found === 'differ') break
    if (found === 'over') {
      texts.order.subarray(from, end).sort((one, other) => lengthOf(texts, one) - lengthOf(texts, other))
      return
    }
  }
  keys.sort()
  let [since, number] = [from, -1]
  for (let place = from; place < end; place += 1) {
    const key = keys[place - from] as number
    const here = Math.floor(key / positions)
    texts.order[place] = key - here * positions
    if (here === number) continue
    if (place - since > 1) sort(texts, since, place, at + 4)
    since = place
    number = here
  }
  if (end - since > 1) sort(texts, since, end, at + 4)
}

/** So many bytes behind `depth` all texts share: those of a tag share its name. */
function sharedFrom({ bytes, starts, order }: Texts, from: number, end: number, depth: number): number {
  const first = (starts[order[from] as number] as number) + depth
  let shared = (starts[(order[from] as number) + 1] as number) - first
  for (let place = from + 1; place < end && shared >= 4; place += 1) {
    const text = order[place] as number
    const at = (starts[text] as number) + depth
    const most = Math.min(shared, (starts[text + 1] as number) - at)
    let same = 0
    while (same < most && bytes[at + same] === bytes[first + same]) same += 1
    shared = same
  }
  return Math.max(0, shared)
}

function lengthOf({ starts }: Texts, text: number): number {
  return (starts[text + 1] as number) - (starts[text] as number)
}

/** Fills in the keys of four bytes from `depth` on, zeros behind the end; `over`: all texts end in front of them. */
function fill(
  { bytes, starts, order }: Texts,
  from: number,
  end: number,
  depth: number,
  keys: Float64Array,
): 'same' | 'differ' | 'over' {
  let [first, same, over] = [-1, true, true]
  for (let place = from; place < end; place += 1) {
    const text = order[place] as number
    const at = (starts[text] as number) + depth
    const to = starts[text + 1] as number
    const number =
      at + 4 <= to
        ? ((bytes[at]! << 24) | (bytes[at + 1]! << 16) | (bytes[at + 2]! << 8) | bytes[at + 3]!) >>> 0
        : partial(bytes, at, to)
    if (at < to) over = false
    if (place === from) first = number
    else if (number !== first) same = false
    keys[place - from] = number * positions + text
  }
  return over ? 'over' : same ? 'same' : 'differ'
}

function partial(bytes: Uint8Array, at: number, to: number): number {
  let number = 0
  for (let byte = 0; byte < 4; byte += 1) {
    number = number * 256 + (at + byte < to ? (bytes[at + byte] as number) : 0)
  }
  return number
}

/** Sorts few texts, whose first `depth` bytes are the same. */
function insert({ bytes, starts, order }: Texts, from: number, end: number, depth: number): void {
  for (let at = from + 1; at < end; at += 1) {
    const text = order[at] as number
    const stop = starts[text + 1] as number
    const start = Math.min((starts[text] as number) + depth, stop)
    let to = at
    for (; to > from; to -= 1) {
      const other = order[to - 1] as number
      const otherStop = starts[other + 1] as number
      const otherStart = Math.min((starts[other] as number) + depth, otherStop)
      if (compareBytes(bytes, otherStart, otherStop, bytes, start, stop) <= 0) break
      order[to] = other
    }
    order[to] = text
  }
}
