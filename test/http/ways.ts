import t from 'tap'
import { servedBy } from '../../native/server/server.js'
import type { Reply, Request } from '../../src/http/exchange.js'
import { type ServeOptions, type Server, serve } from '../../src/http/listen.js'

/** The ways in which sockets are served: each test of the server runs over all that this machine has. */
export const ways: readonly ('addon' | 'twin')[] = servedBy === 'addon' ? ['addon', 'twin'] : ['twin']
if (servedBy === 'twin') t.comment('the addon was not built: only its twin is tested')

/** A server of this kind that listens, until the end of the tests. A handler that throws fails them. */
export async function listening(
  by: (typeof ways)[number],
  handle: (request: Request, reply: Reply) => void,
  more: Pick<Partial<ServeOptions>, 'clock' | 'clientOf' | 'flowsMax'> = {},
): Promise<Server> {
  const onThrow = (error: unknown) => t.fail(String(error))
  const usual = { host: '127.0.0.1', port: 0, stallMs: 5000, flowsMax: 100 }
  const server = serve(handle, { ...usual, ...more, onThrow, by })
  t.teardown(() => server.close(0))
  await server.listening
  return server
}
