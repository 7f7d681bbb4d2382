import { type Logger, pino } from 'pino'

/** Structured log lines, JSON, one a line, on standard output. Every thread has its own, named after it. */
export type Log = Logger

/** Makes the log of one thread. `level` is one of pino's names or `silent`. */
export function createLog(level: string, thread: string): Log {
  // Synchronous writes: a line that explains a crash must be out before the process is gone.
  return pino(
    { level, base: { thread }, timestamp: pino.stdTimeFunctions.isoTime },
    pino.destination({ fd: 1, sync: true }),
  )
}

/** A log that says nothing. */
export const silentLog: Log = pino({ level: 'silent' })
