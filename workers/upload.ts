import { runThread } from '../src/actor/run-thread.js'
import { openUpload } from '../src/threads/upload/open-upload.js'

/** The thread of the upload service: its sockets, the log of accepted items, and what becomes of them. */
await runThread(openUpload)
