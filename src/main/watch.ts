import type { Config } from '../../config/read.js'
import { systemClock } from '../actor/clock.js'
import { Heartbeats, listenForHeartbeats } from '../actor/heartbeats.js'
import type { Log } from '../actor/log.js'
import type { Meters } from '../actor/meter.js'
import { stackOf } from '../actor/stack.js'
import type { Part } from '../actor/supervise.js'
import { type Silence, Watchdog } from '../actor/watchdog.js'
import type { RunningThreads } from './running-threads.js'

/** Timeout for reading the stack of a silent thread. */
const stackMs = 3000

/**
 * What happens to a thread that is silent for `silentMs`. It is logged, with its stack where that can be read. Then:
 *
 * - A thread that serves sockets owns no state outside itself: it is terminated and replaced, whether it spins or
 *   sleeps in a call. Its connections are closed, others listen on the same port meanwhile. One that waits for a disk
 *   is only named: the next one would wait for the same disk.
 * - All others write what nobody else may write, or hold work of those: one of them cannot be replaced while other
 *   threads hold message ports to it and rely on its state. The program ends, and a fresh one recovers from disk, as
 *   after kill -9. One piece of their work may take long, so this takes `endFactor` times as long of processor time,
 *   or `sleepFactor` times as long asleep within a call (a keeper whose disk stands still waits for it, and is not
 *   ended).
 * - A thread that could run, and got no processor, is not to blame; nor is any for time that the main thread was late
 *   itself.
 */
const endFactor = 6
const sleepFactor = 30

/**
 * Makes all threads that start from now on write heartbeats, and returns the part that watches them: the last to
 * start, and the first to stop.
 */
export function watchdogPart(
  threads: RunningThreads,
  { watchdogSeconds, idleMemorySeconds }: Config['server'],
  meters: Meters,
  log: Log,
): Part {
  const silentMs = watchdogSeconds * 1000
  const heartbeats = new Heartbeats()
  listenForHeartbeats(heartbeats, idleMemorySeconds)
  return {
    name: 'watchdog',
    start: async () => {
      const watchdog = new Watchdog(heartbeats, systemClock, {
        silentMs,
        onSilent: (silence, isFirst) => {
          if (isFirst) meters.of('watchdog_reports_total', { cause: silence.cause }).add(1)
          act(threads, silence, isFirst, silentMs, log)
        },
        onHeard: (name) => log.warn({ name }, 'a thread that was silent sends heartbeats again'),
      })
      watchdog.start()
      return { stop: async () => watchdog.stop() }
    },
  }
}

function act(threads: RunningThreads, silence: Silence, isFirst: boolean, allowedMs: number, log: Log): void {
  const { name, cause, silentMs, cpuMs } = silence
  const isReplaced = threads.mayReplace(name) && cause !== 'disk'
  if (isFirst) {
    void named(threads, silence, log).then(() => (isReplaced ? threads.replace(name) : undefined))
    return
  }
  if (threads.mayReplace(name)) return
  const isOver = cause === 'spins' ? cpuMs >= endFactor * allowedMs : silentMs >= sleepFactor * allowedMs
  // A thread of a pool is lost with the thread that owns the pool.
  if (isOver && cause !== 'disk')
    threads.lose(name.split('/')[0] ?? '', `${name} ${cause} for ${Math.round(silentMs)} ms`)
}

async function named(
  threads: RunningThreads,
  { name, cause, silentMs, cpuMs }: Silence,
  log: Log,
): Promise<void> {
  const id = threads.idOf(name)
  const stack = cause === 'spins' && id !== undefined ? await stackOf(id, stackMs) : undefined
  const about = {
    name,
    cause,
    silentMs: Math.round(silentMs),
    cpuMs,
    ...(stack === undefined ? {} : { stack }),
  }
  log.error(about, 'a thread sends no heartbeat')
}
