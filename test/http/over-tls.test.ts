/** What holds of the server holds over TLS, too: the tests of this folder that look at bytes, once more. */
import { speakTls } from './transport.js'

speakTls()
await import('./ambiguous-heads.test.js')
await import('./targets.test.js')
await import('./interim.test.js')
await import('./half-closed.test.js')
await import('./reply.test.js')
await import('./streamed.test.js')
await import('./from-file.test.js')
await import('./failing-content.test.js')
await import('./caching-server.test.js')
