import { readFileSync } from 'node:fs'
import { ranMs } from '../../native/schedule/schedule.js'
import { systemClock } from './clock.js'

/**
 * Counts milliseconds that this thread has had of the processors; only differences mean something. Without the addon: from the
 * kernel's account (10 to 20 us a call), and where there is none, by the clock.
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
