import { runThread } from '../src/actor/run-thread.js'
import { openQuery } from '../src/threads/index/open-query.js'

/** One thread that answers queries, beside those that serve sockets. */
await runThread(openQuery)
