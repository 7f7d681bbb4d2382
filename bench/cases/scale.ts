import { smallSizes } from '../corpus/corpus.js'

const { medianBytes } = smallSizes

/** How large and how long a run is. */
export interface Scale {
  readonly name: 'small' | 'usual' | 'full'
  readonly wide: number
  readonly wider: { readonly count: number; readonly medianBytes: number }
  readonly large: { readonly count: number; readonly sizeBytes: number }
  readonly sites: { readonly count: number; readonly pages: number }
  /** Contents asked for once in each round of a cold case. */
  readonly cold: number
  readonly streamBytes: number
  readonly importItems: number
  readonly indexItems: number
  readonly indexQueries: number
  /** Duration of the warm-up of each side in cases of the index. */
  readonly warmMs: number
  readonly slowReaders: number
  /** Contents that lie on the disk at a start. */
  readonly startObjects: number
  readonly rounds: number
  /** Of load for each candidate, round and way of asking. */
  readonly seconds: number
  /** Factor for the fixed rates. */
  readonly rate: number
  /** False: too short for a verdict on speed; only answers are compared. */
  readonly judges: boolean
  /** Beginnings of the names of cases that repeat another case with other numbers: they run only where they are named. */
  readonly omits: readonly string[]
}

const small: Scale = {
  name: 'small',
  wide: 200,
  wider: { count: 400, medianBytes },
  large: { count: 4, sizeBytes: 2 ** 20 },
  sites: { count: 10, pages: 10 },
  cold: 40,
  streamBytes: 2 ** 24,
  importItems: 80_000,
  indexItems: 2000,
  indexQueries: 5,
  warmMs: 100,
  slowReaders: 20,
  startObjects: 200,
  rounds: 1,
  seconds: 0.3,
  rate: 0.25,
  judges: false,
  omits: [
    'two threads',
    'wider',
    'little memory',
    'cold and steady',
    'one URL alone',
    'misses: never',
    'misses: 50 ',
    'misses: 1000',
    'misses: 5000',
  ],
}

const usual: Scale = {
  name: 'usual',
  wide: 20_000,
  wider: { count: 200_000, medianBytes },
  large: { count: 1000, sizeBytes: 2 ** 20 },
  sites: { count: 200, pages: 100 },
  cold: 1000,
  streamBytes: 2 ** 30,
  importItems: 300_000,
  indexItems: 100_000,
  indexQueries: 100,
  warmMs: 1000,
  slowReaders: 1000,
  startObjects: 1_000_000,
  rounds: 3,
  seconds: 2,
  rate: 1,
  judges: true,
  omits: [],
}

const full: Scale = {
  ...usual,
  name: 'full',
  wider: { count: 1_000_000, medianBytes: 2 ** 11 },
  large: { count: 1000, sizeBytes: 8 * 2 ** 20 },
  cold: 3000,
  streamBytes: 2 ** 30,
  importItems: 600_000,
  indexItems: 1_000_000,
  indexQueries: 300,
  startObjects: 10_000_000,
  rounds: 5,
  seconds: 4,
}

export const scales = { small, usual, full } as const
