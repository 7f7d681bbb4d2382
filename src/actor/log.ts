import { existsSync, mkdirSync, renameSync, statSync } from 'node:fs'
import { dirname } from 'node:path'
import { getEnvironmentData, setEnvironmentData } from 'node:worker_threads'
import { type Logger, pino } from 'pino'
import { logRingWriter } from './log-ring.js'

/** Structured log lines, JSON, one a line, on standard output or in a file. Every thread has its own, named after it. */
export type Log = Logger

/** Threads that are started later read the name of the log file under this key. */
const fileKey = 'log file'

/** A log file that is larger than this at the start is renamed, and a new one begun; one old file is kept. */
const keptMaxBytes = 16 * 2 ** 20

/** Lines of one thread that a full disk did not take yet; what is more is lost. */
const unwrittenMaxBytes = 2 ** 20

/** Sends all logs that are made from now on, those of threads started later too, to the end of a file (0600). */
export function logToFile(path: string): void {
  mkdirSync(dirname(path), { recursive: true, mode: 0o700 })
  if (existsSync(path) && statSync(path).size > keptMaxBytes) renameSync(path, `${path}.1`)
  setEnvironmentData(fileKey, path)
}

/** The logs of this thread. */
const logs = new Set<Log>()

/** All logs of this thread have this level from now on. */
export function setLogLevel(level: string): void {
  for (const log of logs) log.level = level
}

/** Makes the log of one thread. `level` is one of pino's names or `silent`. */
export function createLog(level: string, thread: string): Log {
  const file = getEnvironmentData(fileKey)
  const place = typeof file === 'string' ? { dest: file, append: true, mode: 0o600 } : { fd: 1 }
  // Synchronous writes, because a line that explains a crash must be written before the process ends.
  const destination = pino.destination({ ...place, sync: true, maxLength: unwrittenMaxBytes })
  // Without a listener a log on a full disk would end the thread. Lines that were not written come with the next one.
  destination.on('error', () => 'the health of the disk shows it')
  const keep = logRingWriter()
  const both = keep && {
    write(line: string): void {
      keep(line)
      destination.write(line)
    },
    flushSync: () => destination.flushSync(),
  }
  const log = pino({ level, base: { thread }, timestamp: pino.stdTimeFunctions.isoTime }, both ?? destination)
  logs.add(log)
  return log
}

/** A log that says nothing. */
export const silentLog: Log = pino({ level: 'silent' })
