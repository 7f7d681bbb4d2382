import type { Log } from '../actor/log.js'
import type { SampleRings } from '../actor/sample-rings.js'
import { repeatOptions } from '../gateway/repeating.js'
import { type Handler, type ServeOptions, serve } from '../http/listen.js'
import type { RepeatOptions } from '../http/repeater.js'
import { type ConsoleDoorParts, consoleDoor } from '../routes/console-door.js'
import type { Route } from '../serving/route.js'

export interface EdgeListening extends Pick<ConsoleDoorParts, 'meters' | 'clock'> {
  readonly gateway: { readonly handle: Handler }
  readonly log: Log
  /** Hears of requests that the listener answered by itself. */
  readonly resources: SampleRings
  /** Absent `onThrow`: what a request threw is logged. */
  readonly serve: Omit<ServeOptions, 'onThrow' | 'repeats'> & Partial<Pick<ServeOptions, 'onThrow'>>
  /** Answers that the listener repeats by itself; `maxBytes` 0: none. */
  readonly repeated: Pick<RepeatOptions, 'maxBytes' | 'limits' | 'signing' | 'group'>
  /** The console; absent: it is not served. */
  readonly operator?: {
    readonly place: Pick<ServeOptions, 'host' | 'port'>
    readonly routes: readonly Route[]
  }
}

export interface EdgeListeners {
  /** Of the gateway; final when it listens. */
  readonly port: number
  /** Resolves when connections are taken. */
  readonly listening: Promise<unknown>
  /** Ends running answers within `graceMs`, then closes what is left. */
  close(graceMs: number): Promise<void>
}

/** The listeners in front of a gateway: the public one, and that of the console. */
export function edgeListeners(given: EdgeListening): EdgeListeners {
  const { gateway, log, meters, clock, resources, repeated, operator } = given
  const onThrow = (error: unknown): void => log.error({ err: error }, 'a flow threw: its socket was closed')
  const content: Handler = (request, reply) => gateway.handle(request, reply)
  const options = { onThrow, ...given.serve }
  const { maxBytes, ...shared } = repeated
  const server = serve(content, { ...options, ...repeatOptions(maxBytes, log, resources, shared) })
  const { clientOf: _, ...plain } = options
  const beside =
    operator &&
    serve(consoleDoor({ content, meters, log, clock, routes: operator.routes }), {
      ...plain,
      ...operator.place,
    })
  return {
    get port() {
      return server.port
    },
    listening: Promise.all([server.listening, beside?.listening]),
    async close(graceMs) {
      await Promise.all([server.close(graceMs), beside?.close(graceMs)])
      // Requests that took too long were aborted, and an abort releases everything. What is left is a leak.
      if (server.flows > 0)
        log.error({ flows: server.flows }, 'requests were still open when the thread ended')
    },
  }
}
