import { loadAddon } from '../addon.js'

/** The words of a batch in memory: see src/index/word-batch.ts. */
export interface WordMemory {
  readonly keys: Uint8Array
  readonly starts: Uint32Array
  readonly hashes: Int32Array
  readonly slots: Int32Array
  readonly secret: Int32Array
}

interface Addon {
  sort(bytes: Uint8Array, starts: Uint32Array, order: Uint32Array): void
  intern(
    keys: Uint8Array,
    starts: Uint32Array,
    hashes: Int32Array,
    slots: Int32Array,
    count: number,
    secret: Int32Array,
    message: Uint8Array,
    words: Uint32Array,
    numbers: Uint32Array,
  ): number
}

const addon = loadAddon<Addon>('words')

/** Which way is taken here: the addon, or what src/index does itself in two to four times the time. */
export const wordsBy: 'addon' | 'fallback' = addon === undefined ? 'fallback' : 'addon'

/**
 * Fills `order` with the numbers of texts, the least first; text `at` lies from `starts[at]` to `starts[at + 1]`, and no two are
 * the same. Undefined without the addon.
 */
export const sortNatively: Addon['sort'] | undefined = addon?.sort

/**
 * The number of each word of a message, in `numbers`; new words are added to the memory, which has room for all. Returns how many
 * words there are then. Undefined without the addon.
 */
export const internNatively:
  | ((
      memory: WordMemory,
      count: number,
      message: Uint8Array,
      words: Uint32Array,
      numbers: Uint32Array,
    ) => number)
  | undefined =
  addon &&
  (({ keys, starts, hashes, slots, secret }, count, message, words, numbers) =>
    addon.intern(keys, starts, hashes, slots, count, secret, message, words, numbers))
