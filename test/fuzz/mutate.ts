import { fc } from '../property.js'

/** One change to an input. Numbers are taken modulo what there is, so that every change means something. */
type Change =
  | { readonly kind: 'set'; readonly at: number; readonly value: number }
  | { readonly kind: 'flip'; readonly at: number; readonly bit: number }
  | { readonly kind: 'extreme'; readonly at: number; readonly size: number; readonly ones: boolean }
  | { readonly kind: 'cut'; readonly at: number; readonly size: number }
  | { readonly kind: 'repeat'; readonly at: number; readonly size: number; readonly to: number }
  | { readonly kind: 'insert'; readonly at: number; readonly bytes: Uint8Array }
  | { readonly kind: 'truncate'; readonly at: number }

/** Near the start, where headers are, as often as anywhere. */
const place = fc.oneof(fc.nat(150), fc.nat(1200), fc.nat())
const size = fc.constantFrom(1, 2, 4, 8, 16, 32, 64)

const change: fc.Arbitrary<Change> = fc.oneof(
  fc.record({ kind: fc.constant('set' as const), at: place, value: fc.nat(255) }),
  fc.record({ kind: fc.constant('flip' as const), at: place, bit: fc.nat(7) }),
  fc.record({ kind: fc.constant('extreme' as const), at: place, size, ones: fc.boolean() }),
  fc.record({ kind: fc.constant('cut' as const), at: place, size }),
  fc.record({ kind: fc.constant('repeat' as const), at: place, size, to: place }),
  fc.record({ kind: fc.constant('insert' as const), at: place, bytes: fc.uint8Array({ maxLength: 9 }) }),
  fc.record({ kind: fc.constant('truncate' as const), at: place }),
)

function apply(input: Buffer, { at: where, ...change }: Change): Buffer {
  const at = input.length === 0 ? 0 : where % input.length
  const bytes = Buffer.from(input)
  if (change.kind === 'truncate') return bytes.subarray(0, at)
  if (change.kind === 'insert')
    return Buffer.concat([bytes.subarray(0, at), change.bytes, bytes.subarray(at)])
  if (change.kind === 'cut') return Buffer.concat([bytes.subarray(0, at), bytes.subarray(at + change.size)])
  if (change.kind === 'repeat') {
    const to = change.to % (bytes.length + 1)
    return Buffer.concat([bytes.subarray(0, to), bytes.subarray(at, at + change.size), bytes.subarray(to)])
  }
  if (bytes.length === 0) return bytes
  if (change.kind === 'set') bytes[at] = change.value
  else if (change.kind === 'flip') bytes[at] = (bytes[at] ?? 0) ^ (1 << change.bit)
  else bytes.subarray(at, at + change.size).fill(change.ones ? 255 : 0)
  return bytes
}

/** Inputs that are nearly one of `seeds`, and now and then pure noise. */
export function mutated(seeds: readonly Uint8Array[]): fc.Arbitrary<Uint8Array> {
  const changes = fc.array(change, { minLength: 1, maxLength: 4 })
  const near = fc
    .tuple(fc.constantFrom(...seeds), changes)
    .map(([seed, list]) => list.reduce(apply, Buffer.from(seed)))
  return fc.oneof({ weight: 9, arbitrary: near }, { weight: 1, arbitrary: fc.uint8Array({ maxLength: 300 }) })
}

/** The same for texts. */
export function mutatedText(seeds: readonly string[]): fc.Arbitrary<string> {
  return mutated(seeds.map((seed) => Buffer.from(seed, 'latin1'))).map((bytes) =>
    Buffer.from(bytes).toString('latin1'),
  )
}
