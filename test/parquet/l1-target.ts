import type { L1Target } from '../../src/parquet/l1-import.js'
import type { L1House } from './l1-chain.js'

/** The house's index as an import writes to it. */
export function targetOf(house: L1House, change: Partial<L1Target> = {}): L1Target {
  return {
    index: house.index,
    async write(request) {
      await house.keeper.handle(request)
    },
    keep: () => Promise.resolve(),
    remember: () => undefined,
    imported: () => undefined,
    ...change,
  }
}
