import { runThread } from '../src/actor/run-thread.js'
import { openDevnet } from '../src/threads/open-devnet.js'

/** The thread of the embedded base-layer node. */
await runThread(openDevnet)
