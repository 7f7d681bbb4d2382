import { runThread } from '../src/actor/run-thread.js'
import { openEdge } from '../src/threads/edge/open-edge.js'

/** One thread that serves sockets: everything a request needs but the fetching of what is not here. */
await runThread(openEdge)
