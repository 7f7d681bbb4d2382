import type { Config } from '../../config/read.js'
import type { Part } from '../actor/supervise.js'
import type { Listening } from '../devnet/listening.js'
import type { Examples } from '../devnet/seed.js'
import { isSeeding } from '../threads/host-names.js'

/** The liars of a seeded devnet, as steps of the program: they listen before the edges tell of them. */
export interface LyingGateways {
  readonly parts: readonly Part[]
  address(): { readonly liars?: string }
  /** From now on they have something to give for what is requested. */
  seeded(examples: Examples): void
}

/** Gateways that lie, for the page of the seeded site that shows how they are caught. */
export function lyingGateways(config: Config, gateway: () => string | undefined): LyingGateways {
  if (!isSeeding(config)) return { parts: [], address: () => ({}), seeded: () => undefined }
  let others: readonly string[] = []
  let running: Listening | undefined
  const part: Part = {
    name: 'liars',
    start: async () => {
      const { serveLiars } = await import('../devnet/liars.js')
      const up = await serveLiars({ truth: gateway, others: () => others })
      running = up
      return { stop: () => up.close() }
    },
  }
  return {
    parts: [part],
    address: () => (running === undefined ? {} : { liars: running.url }),
    seeded: ({ page, image }) => {
      others = [page, image].filter((id) => id !== undefined)
    },
  }
}
