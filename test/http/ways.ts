import t from 'tap'
import { servedBy } from '../../native/server/server.js'
import type { Reply, Request } from '../../src/http/exchange.js'
import type { ServeOptions, Server } from '../../src/http/listen.js'
import { isSecure, serve } from './transport.js'

/** The ways in which sockets are served: each test of the server runs over all that this machine has. */
const all: readonly ('addon' | 'fallback')[] = servedBy === 'addon' ? ['addon', 'fallback'] : ['fallback']
/** Over TLS the fallback has tests of its own (tls.test.ts): what it adds is node:tls, and time. */
export const ways = isSecure() ? all.filter((way) => way === 'addon') : all
if (servedBy === 'fallback') t.comment('the addon was not built: only its fallback is tested')

/** A server of this kind that listens, until the end of the tests. A handler that throws fails them. */
export async function listening(
  by: (typeof ways)[number],
  handle: (request: Request, reply: Reply) => void,
  more: Pick<Partial<ServeOptions>, 'clock' | 'clientOf' | 'requestsMax'> = {},
): Promise<Server> {
  const onThrow = (error: unknown) => t.fail(String(error))
  const usual = { host: '127.0.0.1', port: 0, stallMs: 5000, requestsMax: 100 }
  const server = serve(handle, { ...usual, ...more, onThrow, by })
  t.teardown(() => server.close(0))
  await server.listening
  return server
}
