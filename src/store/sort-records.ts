/** Below so many a plain insertion is faster than anything else. */
const fewRecords = 16

/** A position in a sort key: the first number of a record above it stays exact in a double. */
const positions = 2 ** 21

/**
 * The order of `count` records (at most 2^21) of `width` 32-bit numbers each, in `words` from the start: positions of
 * records, the least first. Sorts by one number at a time as doubles that hold number and position, which is what the engine
 * sorts fastest. `first`: numbers of a record in front of those that count.
 */
export function orderOf(words: Uint32Array, width: number, count: number, first = 0): Uint32Array {
  if (count > positions) throw new RangeError(`${count} records are too many to be sorted at once`)
  const order = Uint32Array.from({ length: count }, (_, at) => at)
  sort({ words, width, order }, 0, count, first)
  return order
}

interface Records {
  readonly words: Uint32Array
  readonly width: number
  readonly order: Uint32Array
}

/** Sorts `order` between two places by the numbers from `word` on; all before are the same. */
function sort(records: Records, from: number, end: number, word: number): void {
  const { words, width, order } = records
  if (end - from < 2 || word === width) return
  if (end - from <= fewRecords) {
    insert(records, from, end, word)
    return
  }
  const keys = new Float64Array(end - from)
  for (let at = from; at < end; at += 1) {
    const record = order[at] as number
    keys[at - from] = (words[record * width + word] as number) * positions + record
  }
  keys.sort()
  let [since, number] = [from, -1]
  for (let at = from; at < end; at += 1) {
    const key = keys[at - from] as number
    const here = Math.floor(key / positions)
    order[at] = key - here * positions
    if (here === number) continue
    sort(records, since, at, word + 1)
    since = at
    number = here
  }
  sort(records, since, end, word + 1)
}

function insert(records: Records, from: number, end: number, word: number): void {
  const { order } = records
  for (let at = from + 1; at < end; at += 1) {
    const record = order[at] as number
    let to = at
    while (to > from && isBelow(records, record, order[to - 1] as number, word)) {
      order[to] = order[to - 1] as number
      to -= 1
    }
    order[to] = record
  }
}

function isBelow({ words, width }: Records, one: number, other: number, from: number): boolean {
  for (let word = from; word < width; word += 1) {
    const difference = (words[one * width + word] as number) - (words[other * width + word] as number)
    if (difference !== 0) return difference < 0
  }
  return false
}
