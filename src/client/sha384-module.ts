/** SHA-384 for browsers: WebCrypto hashes only what is there as a whole, and JavaScript has no fast numbers of 64 bits. */

/** What is used of WebAssembly. */
export interface Assembly {
  compile(bytes: Uint8Array): Promise<object>
  readonly Instance: new (
    module: object,
  ) => { readonly exports: { memory: { buffer: ArrayBuffer }; blocks(from: number, to: number): void } }
}

/** Where a module's memory has the state (8 numbers of 64 bits) and what is to be hashed. */
export const layout = { input: 1024, inputBytes: 64 * 1024 }

const mask = (1n << 64n) - 1n

/** The first 64 bits behind the point of a root of a whole number (FIPS 180-4, 4.2.3 and 5.3.4). */
function rootBits(number: number, degree: 2n | 3n): bigint {
  const scaled = BigInt(number) << (64n * degree)
  let [low, high] = [0n, 1n << 70n]
  while (high - low > 1n) {
    const middle = (low + high) >> 1n
    if (middle ** degree <= scaled) low = middle
    else high = middle
  }
  return low & mask
}

function primes(count: number): number[] {
  const found: number[] = []
  for (let number = 2; found.length < count; number++)
    if (found.every((prime) => number % prime !== 0)) found.push(number)
  return found
}

/** What the state begins with. */
export function initialState(): BigUint64Array {
  return BigUint64Array.from(primes(16).slice(8), (prime) => rootBits(prime, 2n))
}

function unsigned(value: number): number[] {
  const bytes: number[] = []
  for (let rest = value; ; ) {
    const low = rest & 127
    rest >>>= 7
    if (rest === 0) return [...bytes, low]
    bytes.push(low | 128)
  }
}

function signed(value: bigint): number[] {
  const bytes: number[] = []
  for (let rest = BigInt.asIntN(64, value); ; ) {
    const low = Number(rest & 127n)
    rest >>= 7n
    if ((rest === 0n && low < 64) || (rest === -1n && low >= 64)) return [...bytes, low]
    bytes.push(low | 128)
  }
}

type Code = readonly number[]
const get = (local: number): Code => [0x20, ...unsigned(local)]
const set = (local: number): Code => [0x21, ...unsigned(local)]
const long = (value: bigint): Code => [0x42, ...signed(value)]
const load = (offset: number): Code => [0x29, 0, ...unsigned(offset)]
const [add, and, or, xor] = [[0x7c], [0x83], [0x84], [0x85]] as const
const [shiftLeft, shiftRight, rotate] = [[0x86], [0x88], [0x8a]] as const

/** Three turns or shifts of one number, together by exclusive or. */
function sigma(local: number, first: bigint, second: bigint, third: bigint, isShift: boolean): Code {
  const last = isShift ? shiftRight : rotate
  const [one, other] = [first, second].map((by) => [...get(local), ...long(by), ...rotate])
  return [...(one ?? []), ...(other ?? []), ...xor, ...get(local), ...long(third), ...last, ...xor]
}

/** Turns the bytes of a number around. */
function swapped(local: number): Code {
  const half = (by: bigint, kept: bigint): Code => [
    ...get(local),
    ...long(kept),
    ...and,
    ...long(by),
    ...shiftLeft,
    ...get(local),
    ...long(by),
    ...shiftRight,
    ...long(kept),
    ...and,
    ...or,
    ...set(local),
  ]
  const pairs = [...half(8n, 0x00ff00ff00ff00ffn), ...half(16n, 0x0000ffff0000ffffn)]
  return [...pairs, ...get(local), ...long(32n), ...rotate, ...set(local)]
}

const state = (at: number): number => 2 + (at & 7)
const word = (at: number): number => 10 + (at & 15)
const spare = 26

/** One of 80 rounds. The names of the state's numbers move on instead of the numbers. */
function round(at: number, constant: bigint): Code {
  const name = (place: number): number => state(place - at + 80)
  const [A, B, C, D] = [name(0), name(1), name(2), name(3)]
  const [E, F, G, H] = [name(4), name(5), name(6), name(7)]
  const next: Code =
    at < 16
      ? []
      : [
          ...get(word(at)),
          ...sigma(word(at - 2), 19n, 61n, 6n, true),
          ...add,
          ...get(word(at - 7)),
          ...add,
          ...sigma(word(at - 15), 1n, 8n, 7n, true),
          ...add,
          ...set(word(at)),
        ]
  const choice = [...get(F), ...get(G), ...xor, ...get(E), ...and, ...get(G), ...xor]
  const either = [...get(A), ...get(B), ...or, ...get(C), ...and]
  const majority = [...either, ...get(A), ...get(B), ...and, ...or]
  return [
    ...next,
    ...get(H),
    ...sigma(E, 14n, 18n, 41n, false),
    ...add,
    ...choice,
    ...add,
    ...long(constant),
    ...add,
    ...get(word(at)),
    ...add,
    ...set(spare),
    ...get(D),
    ...get(spare),
    ...add,
    ...set(D),
    ...get(spare),
    ...sigma(A, 28n, 34n, 39n, false),
    ...add,
    ...majority,
    ...add,
    ...set(H),
  ]
}

function section(id: number, body: Code): Code {
  return [id, ...unsigned(body.length), ...body]
}

const text = (name: string): Code => [name.length, ...Array.from(name, (char) => char.charCodeAt(0))]

/**
 * A WebAssembly module with `memory` and `blocks(from, to)`, which hashes whole blocks of 128 bytes into the state at the
 * beginning of the memory.
 */
export function sha384Module(): Uint8Array {
  const eight = Array.from({ length: 8 }, (_, at) => at)
  const sixteen = Array.from({ length: 16 }, (_, at) => at)
  const constants = primes(80).map((prime) => rootBits(prime, 3n))
  const zero = [0x41, 0]
  const code = [
    1,
    25,
    0x7e,
    ...eight.flatMap((at) => [...zero, ...load(8 * at), ...set(state(at))]),
    0x03,
    0x40,
    ...sixteen.flatMap((at) => [...get(0), ...load(8 * at), ...set(word(at)), ...swapped(word(at))]),
    ...constants.flatMap((constant, at) => round(at, constant)),
    ...eight.flatMap((at) => [
      ...zero,
      ...get(state(at)),
      ...zero,
      ...load(8 * at),
      ...add,
      0x37,
      0,
      ...unsigned(8 * at),
      ...zero,
      ...load(8 * at),
      ...set(state(at)),
    ]),
    // The next block, while there is one.
    ...get(0),
    0x41,
    0x80,
    0x01,
    0x6a,
    0x22,
    0,
    ...get(1),
    0x49,
    0x0d,
    0,
    0x0b,
    0x0b,
  ]
  return Uint8Array.from([
    0,
    0x61,
    0x73,
    0x6d,
    1,
    0,
    0,
    0,
    ...section(1, [1, 0x60, 2, 0x7f, 0x7f, 0]),
    ...section(3, [1, 0]),
    ...section(5, [1, 0, 2]),
    ...section(7, [2, ...text('memory'), 2, 0, ...text('blocks'), 0, 0]),
    ...section(10, [1, ...unsigned(code.length), ...code]),
  ])
}
