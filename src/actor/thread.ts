import { once } from 'node:events'
import { MessageChannel, MessagePort, Worker } from 'node:worker_threads'
import { endsWithin, pause } from './clock.js'
import { nameNextThread } from './heartbeats.js'
import { startSharedPool } from './priority.js'

/** One running thread of `workers/`. Its file only runs the function that opens this kind of thread. */
export interface Thread {
  readonly name: string
  /** What the thread sent when it was ready, for example the port that it listens on. */
  readonly reported: unknown
  /** Node's number of the thread. */
  readonly id: number
  /** A new message port to the thread's actor. `about` is sent along with it. */
  connect(about?: unknown): MessagePort
  /** Sends a message to the thread (`OpenThread.onMessage`); cloned. */
  tell(message: unknown): void
  /** Gives the thread a port to an actor that took the place of another one (`OpenThread.onLine`). */
  hand(line: ThreadLine): void
  /** All logs of the thread have this level from now on. */
  setLogLevel(level: string): void
  /** Resolves with the exit code once the thread has ended for any reason. */
  readonly gone: Promise<number>
  /** Resolves with what the thread threw and nobody caught, before it is gone; else never. */
  readonly thrown: Promise<unknown>
  /**
   * Asks the thread to finish its work and end; terminates it after `deadlineMs`. One that is inside an addon then is left
   * behind after ten seconds.
   */
  stop(deadlineMs: number): Promise<void>
  /** Terminates the thread at once. Does not resolve while it is inside an addon. */
  end(): Promise<void>
}

/** A port to an actor, and what the caller's side has to know of it; `about` is cloned. */
export interface ThreadLine {
  readonly port: MessagePort
  readonly about: unknown
}

/** A spinning thread that is terminated ends within this time; otherwise it is inside an addon that does not return. */
export const terminationMs = 10_000

/** Messages from the supervisor to a thread, apart from the actor's own ports. */
export type ThreadOrder =
  | { readonly connect: MessagePort; readonly about?: unknown }
  | { readonly tell: unknown }
  | { readonly line: MessagePort; readonly about: unknown }
  | { readonly logLevel: string }
  | { readonly stop: true }

/**
 * Starts `workers/<file>` with `data` (cloned; ports at its first level or in its `ports`, or in a list there, move to the
 * thread) and waits for `{ready: ...}` on its parent port. Rejects where the thread ends before that, or is not ready after
 * `startMs`.
 */
export async function startThread(
  name: string,
  file: string,
  data: object,
  startMs = 60_000,
): Promise<Thread> {
  await startSharedPool()
  nameNextThread(name)
  const worker = new Worker(new URL(`../../workers/${file}.js`, import.meta.url), {
    workerData: data,
    transferList: portsIn(data),
    name,
  })
  const failed = new Promise<never>((_, reject) => {
    worker.once('error', (error) => reject(new Error(`thread ${name}: ${error.message}`, { cause: error })))
    worker.once('exit', (code) => reject(new Error(`thread ${name} ended with code ${code}`)))
  })
  const gone = new Promise<number>((resolve) => worker.once('exit', resolve))
  const thrown = new Promise<unknown>((resolve) => worker.once('error', resolve))
  const late = new AbortController()
  const timeout = pause(startMs, late.signal).then(() => {
    if (!late.signal.aborted) throw new Error(`thread ${name} was not up after ${startMs} ms`)
  })
  failed.catch(() => 'seen by gone')
  timeout.catch(() => 'seen by the race')
  const up = once(worker, 'message').then(([word]) => (word as { ready: unknown }).ready)
  const reported = await Promise.race([up, failed, timeout]).finally(() => late.abort())

  return {
    name,
    reported,
    id: worker.threadId,
    gone,
    thrown,
    async end() {
      await worker.terminate()
    },
    ...ordersTo(worker, gone),
    async stop(deadlineMs) {
      worker.postMessage({ stop: true })
      await endsWithin(gone, deadlineMs)
      await endsWithin(worker.terminate(), terminationMs)
    },
  }
}

/** What is posted to a thread while it runs. */
function ordersTo(
  worker: Worker,
  gone: Promise<number>,
): Pick<Thread, 'connect' | 'tell' | 'hand' | 'setLogLevel'> {
  let isGone = false
  void gone.then(() => {
    isGone = true
  })
  const post = (order: ThreadOrder): void => worker.postMessage(order)
  // A thread that has ended takes no port: closed here, it is closed for the other side, too.
  const postPort = (port: MessagePort, order: ThreadOrder): void => {
    if (isGone) port.close()
    else worker.postMessage(order, [port])
  }
  return {
    connect(about) {
      const { port1, port2 } = new MessageChannel()
      postPort(port2, { connect: port2, about })
      return port1
    },
    tell: (message) => post({ tell: message }),
    hand: ({ port, about }) => postPort(port, { line: port, about }),
    setLogLevel: (logLevel) => post({ logLevel }),
  }
}

/** The message ports of what a thread is started with. */
function portsIn(data: { readonly ports?: object }): MessagePort[] {
  return [data, data.ports ?? {}]
    .flatMap((level) => Object.values(level).flat() as unknown[])
    .filter((value) => value instanceof MessagePort)
}
