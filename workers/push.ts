import { runThread } from '../src/actor/run-thread.js'
import { openPush } from '../src/threads/index/open-push.js'

/** The thread that writes the index into ClickHouse. */
await runThread(openPush)
