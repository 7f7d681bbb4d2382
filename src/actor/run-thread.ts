import { type MessagePort, parentPort, workerData } from 'node:worker_threads'
import { keepHeartbeat } from './heartbeats.js'
import { type Log, setLogLevel } from './log.js'
import type { ThreadOrder } from './thread.js'

/** What a kind of thread gives back once it is up. */
export interface OpenThread {
  /** What the supervisor hears, for example the port that it listens on; plain, it is cloned. */
  readonly ready?: unknown
  /** Logs what nobody caught before the thread ends with code 1. Absent: the supervisor logs it. */
  readonly log?: Log
  /** True: it ends by itself once everything is closed, so that what stays open shows. Else it is ended. */
  readonly endsItself?: true
  /** Answers on a line of another thread. Absent: nobody can ask it anything. */
  connect?(port: MessagePort, about: unknown): void
  /** What the supervisor says to a thread that is up. Absent: it hears nothing. */
  onMessage?(message: unknown): void
  /** A port to an actor that took the place of one which this thread has had a line to. Absent: it has none of those. */
  onLine?(port: MessagePort, about: unknown): void
  /** Ends what is under way, and closes everything. */
  close(): Promise<unknown>
}

/** Runs this thread: opens what `open` makes out of its data, and follows the supervisor's orders until the one to stop. */
export async function runThread<Given>(
  open: (given: Given) => OpenThread | Promise<OpenThread>,
): Promise<void> {
  if (parentPort === null) throw new Error('this file runs as a thread')
  const parent = parentPort
  const thread = await open(workerData as Given)
  const { log } = thread
  if (log !== undefined) process.on('uncaughtException', (error) => endThread(log, error, 'uncaught: ending'))
  let isStopping = false
  const stop = async (): Promise<void> => {
    if (isStopping) return
    isStopping = true
    await thread.close()
    if (thread.endsItself === true) parent.close()
    else process.exit(0)
  }
  parent.on('message', (order: ThreadOrder) => {
    if ('stop' in order) void stop()
    else if ('logLevel' in order) setLogLevel(order.logLevel)
    else if ('tell' in order) thread.onMessage?.(order.tell)
    else if ('line' in order) {
      if (thread.onLine === undefined) order.line.close()
      else thread.onLine(order.line, order.about)
    } else if (thread.connect === undefined) order.connect.close()
    else thread.connect(order.connect, order.about)
  })
  keepHeartbeat()
  parent.postMessage({ ready: thread.ready ?? true })
}

/** Ends this thread after a bug, and the program with it: only a fresh one recovers from disk. */
export function endThread(log: Log, error: unknown, why: string): void {
  log.fatal({ err: error }, why)
  process.exit(1)
}
