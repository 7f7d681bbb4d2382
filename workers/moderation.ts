import { runThread } from '../src/actor/run-thread.js'
import { openModeration } from '../src/threads/edge/open-moderation.js'

/** The thread of the block list's keeper. */
await runThread(openModeration)
