import { runThread } from '../src/actor/run-thread.js'
import { openSwarm } from '../src/threads/index/open-swarm.js'

/** The thread that seeds bands and fetches those of others. */
await runThread(openSwarm)
