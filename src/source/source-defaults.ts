/** How content is proven after it was kept. */
export interface VerifierOptions {
  /** Payloads waiting to be proven; the catalog remembers the rest. */
  readonly waitingMax: number
  /** Between two looks into the catalog for what is left to prove. */
  readonly everyMs: number
  /** Until the second look at one id; doubles with each further one, up to an hour. */
  readonly retryMs: number
  /** Looks at one id before it is left alone. */
  readonly attemptsMax: number
}

/** Values for everything that is not an operator's decision. */
export const sourceDefaults = {
  keeperMailboxMax: 1024,
  chunks: { aheadMax: 10, concurrencyMax: 50 },
  location: { depthMax: 10, headersMax: 1000, headerMaxBytes: 67_108_864 },
  fetch: { wholeFirstMaxBytes: 2_097_152, finishBytes: 8_388_608, finishShare: 0.75 },
  fetchesMax: 512,
  joinBytes: 2_097_152,
  wholeForWindowMaxBytes: 268_435_456,
  eviction: { everyMs: 15_000, graceMs: 60_000, orphanMs: 3_600_000 },
  // 14 looks: one block time after two seconds, and nearly five hours in all for what is pending.
  verifier: { waitingMax: 10_000, everyMs: 60_000, retryMs: 2000, attemptsMax: 14 },
  backgroundOrder: ['chunks-offset-aware', 'tx-data'],
} as const
