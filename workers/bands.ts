import { runThread } from '../src/actor/run-thread.js'
import { openBands } from '../src/threads/index/open-bands.js'

/** The thread that builds bands of the index and publishes them. */
await runThread(openBands)
