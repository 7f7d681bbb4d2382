import { runThread } from '../src/actor/run-thread.js'
import { openAdmission } from '../src/threads/edge/open-admission.js'

/** The thread of the keeper of buckets. */
await runThread(openAdmission)
