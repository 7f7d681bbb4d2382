import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'

setFlagsFromString('--expose-gc')

/** Removes all garbage of this process: `memoryUsage().heapUsed` is then what is held. */
export const collectGarbage = runInNewContext('gc') as () => void
