/** A signal that fires when a stop of the program is requested. The program then stops by itself. */
export function stopRequested(): AbortSignal {
  const stop = new AbortController()
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => stop.abort())
  return stop.signal
}
