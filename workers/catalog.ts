import { runThread } from '../src/actor/run-thread.js'
import { openCatalog } from '../src/threads/index/open-catalog.js'

/** The thread of the catalog's keeper: the one writer of the index environment. */
await runThread(openCatalog)
