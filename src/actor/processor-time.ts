import { readFileSync } from 'node:fs'
import { ranMs } from '../../native/schedule/schedule.js'
import { systemClock } from './clock.js'

/**
 * Processor time of this thread in milliseconds; only differences have a meaning. Without the addon it is read from
 * /proc (10 to 20 us a call), and where that is missing, the monotonic clock is used.
 */
export const processorTime = {
  monotonic: (): number => ranMs() ?? accountMs() ?? systemClock.monotonic(),
}

let hasAccount = process.platform === 'linux'

function accountMs(): number | undefined {
  if (!hasAccount) return undefined
  try {
    // "<ran ns> <waited ns> <turns>"
    return Number(readFileSync('/proc/thread-self/schedstat', 'utf8').split(' ')[0]) / 1e6
  } catch {
    hasAccount = false // this kernel keeps none
    return undefined
  }
}
