/**
 * Loaded before the command line of the network's library, which cannot be told how long to wait: the 15 seconds before it looks
 * for a transfer suit a public chain, and a chain of this machine has it after a second. Other waits stay as they are.
 */
const initialWaitMs = 15_000
const wait = globalThis.setTimeout

globalThis.setTimeout = Object.assign(
  (act: () => void, ms?: number, ...given: unknown[]) =>
    wait(act, ms === initialWaitMs ? 2500 : ms, ...(given as [])),
  wait,
) as typeof setTimeout
