import { runThread } from '../src/actor/run-thread.js'
import { openCluster } from '../src/threads/open-cluster.js'

/** The thread that shares lists with other machines. */
await runThread(openCluster)
