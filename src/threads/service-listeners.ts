import type { Log } from '../actor/log.js'
import type { CertificatePair } from '../certificates/pair.js'
import { type Handler, type SecurePlace, type ServeOptions, securely, serve } from '../http/listen.js'

/** What the main thread says to a thread that speaks TLS: certificates for new connections, in place of those before. */
export interface CertificateNews {
  readonly certificates: readonly CertificatePair[]
}

/** The listeners of one handler. */
export interface ServiceListeners {
  /** The port of plain HTTP; final when it listens. */
  readonly port: number
  /** Resolves when connections are taken. */
  readonly listening: Promise<unknown>
  onMessage(news: CertificateNews): void
  /** Ends running answers within `graceMs`, then closes what is left. */
  close(graceMs: number): Promise<void>
}

/** `ServeOptions.onThrow` of every listener: writes the error into the log. */
export function logsThrows(log: Pick<Log, 'error'>): (error: unknown) => void {
  return (error) => log.error({ err: error }, 'a request threw: its socket was closed')
}

/** Opens the listener of plain HTTP, and beside it the one of HTTPS where there is a place for it. */
export function serviceListeners(
  handler: Handler,
  options: ServeOptions,
  secure: SecurePlace | undefined,
): ServiceListeners {
  const plain = serve(handler, options)
  const tls = secure && serve(handler, { ...options, ...securely(secure) })
  return {
    get port() {
      return plain.port
    },
    listening: Promise.all([plain.listening, tls?.listening]),
    onMessage: ({ certificates }) => tls?.setCertificates(certificates),
    async close(graceMs) {
      await Promise.all([plain.close(graceMs), tls?.close(graceMs)])
    },
  }
}
