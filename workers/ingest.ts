import { runThread } from '../src/actor/run-thread.js'
import { openIngest } from '../src/threads/index/open-ingest.js'

/** The thread that makes the index grow: follows the chain, repairs gaps, opens bundles. */
await runThread(openIngest)
