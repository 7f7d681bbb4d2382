/** A signal that fires when the program is told to stop, which it then does by itself. */
export function stopRequested(): AbortSignal {
  const stop = new AbortController()
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => stop.abort())
  return stop.signal
}
