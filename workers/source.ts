import { runThread } from '../src/actor/run-thread.js'
import { openSource } from '../src/threads/source/open-source.js'

/** The thread of the fetcher: every transfer from a source, the blobs on disk, and their proof. */
await runThread(openSource)
