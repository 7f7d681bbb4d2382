/** How content is proven after it was kept. Times in milliseconds. */
export interface VerifierOptions {
  /** Contents that wait to be proven; the catalog lists the rest. */
  readonly waitingMax: number
  /** Between two looks into the catalog for what is left to prove. */
  readonly everyMs: number
  /** So soon a block is heard of. */
  readonly tipEveryMs: number
  /** A new root waits so long for more of its contents; one that was looked at just now longer. */
  readonly gatherMs: number
  readonly gatherMoreMs: number
  /** Until the second look at a root; doubles with each further one. */
  readonly retryMs: number
  readonly retryMaxMs: number
  /** The same of ids without a known root that no node knows; four times as long with each look. */
  readonly loneMs: number
  readonly loneMaxMs: number
  /** Looks before a root is left alone, and of an id without a known root. */
  readonly attemptsMax: number
  readonly loneAttemptsMax: number
  /** Roots that are looked at side by side. */
  readonly rootsAtOnce: number
}

/** Values for everything that is not an operator's decision. */
export const sourceDefaults = {
  keeperMailboxMax: 1024,
  chunks: { aheadMax: 10, concurrencyMax: 50 },
  location: { depthMax: 10, headersMax: 1000, headerMaxBytes: 67_108_864 },
  fetch: { digestBufferMaxBytes: 2_097_152, finishBytes: 8_388_608, finishShare: 0.75 },
  fetchesMax: 512,
  joinBytes: 2_097_152,
  wholeForWindowMaxBytes: 268_435_456,
  eviction: { everyMs: 15_000, graceMs: 60_000, orphanMs: 3_600_000 },
  verifier: {
    everyMs: 60_000,
    tipEveryMs: 5000,
    gatherMs: 2000,
    gatherMoreMs: 15_000,
    retryMs: 2000,
    retryMaxMs: 6 * 3_600_000,
    loneMs: 120_000,
    loneMaxMs: 24 * 3_600_000,
    loneAttemptsMax: 7,
    rootsAtOnce: 3,
  },
  // What a request costs was measured by the bench `misses`.
  proofBudget: { leastMsPerSecond: 20, burstMs: 250, requestMs: 0.3 },
  provingChain: {
    callsMax: 16,
    connectionsMax: 16,
    chunksMaxBytes: 24 * 2 ** 20,
    aheadMax: 2,
    headersMax: 300,
  },
  backgroundOrder: ['chunks-offset-aware', 'tx-data'],
} as const
