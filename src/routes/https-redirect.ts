import { type Challenges, challengePath } from '../certificates/challenges.js'
import type { Reply, Request } from '../http/exchange.js'
import { answerExchange, answerFailed, answerText } from '../serving/exchange-answers.js'
import { openExchange } from '../serving/open-exchange.js'
import { RequestLog } from '../serving/request-log.js'
import type { ConsoleHandlerParts } from './console-handler.js'

export interface HttpsRedirectParts extends Pick<ConsoleHandlerParts, 'meters' | 'log' | 'clock'> {
  /** Where https is served. A client that reached this port as the usual one, 80, is sent to the usual one of https. */
  readonly httpsPort: number
  readonly challenges: Challenges
}

const hostShape = /^([A-Za-z0-9_.-]{1,255})(:\d{1,5})?$/

/**
 * The handler of a port that serves no content. It redirects every request to the same path over https, and answers http-01
 * challenges. 308 keeps method and body (RFC 9110 section 15.4.9).
 */
export function httpsRedirect(parts: HttpsRedirectParts): (request: Request, reply: Reply) => void {
  const { meters, log, clock, challenges, httpsPort } = parts
  const requestLog = new RequestLog(meters, log, clock)
  return (request, reply) => {
    const exchange = openExchange(requestLog, request, reply, 'other', 'X-Request-Id: ')
    if (request.path.startsWith(challengePath)) {
      const answer = async (): Promise<void> => {
        const text = await challenges.answer(request.path.slice(challengePath.length))
        if (text === undefined)
          return answerText(requestLog, exchange, { status: 404, text: 'Not found' }, { fault: 'client' })
        answerExchange(
          requestLog,
          exchange,
          { status: 200, type: 'application/octet-stream', lines: '', body: text },
          { reason: 'challenge' },
        )
      }
      void answer().catch((error: unknown) => answerFailed(requestLog, exchange, error))
      return
    }
    const [, host, givenPort] = hostShape.exec(request.header('host') ?? '') ?? []
    if (host === undefined) {
      answerText(
        requestLog,
        exchange,
        { status: 400, text: 'the Host header names no host' },
        { fault: 'client' },
      )
      return
    }
    const port = givenPort === undefined || givenPort === ':80' ? '' : `:${httpsPort}`
    const query = request.query === '' ? '' : `?${request.query}`
    const location = `https://${host.toLowerCase()}${port}${request.path}${query}`
    answerText(requestLog, exchange, { status: 308, text: 'See https', lines: `\r\nLocation: ${location}` })
  }
}
