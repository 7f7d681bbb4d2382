import { safeValue } from '../attest/line.js'
import type { Reply, Request } from '../http/exchange.js'

/** On every answer: content is public, and scripts may read every header of it. */
export const corsLines = 'Access-Control-Allow-Origin: *\r\nAccess-Control-Expose-Headers: *'

/** What stands before the request's id in every head. */
export const idLead = `${corsLines}\r\nX-Request-Id: `

const wishMax = 2048

/** Answers OPTIONS: every method and every header that the browser requests is allowed. */
export function preflight(request: Request, reply: Reply, lines: string): void {
  const wish = safeValue(request.header('access-control-request-headers') ?? '')
  const allowed =
    wish === '' || wish.length > wishMax
      ? ''
      : `\r\nAccess-Control-Allow-Headers: ${wish}\r\nVary: Access-Control-Request-Headers`
  const block = `${lines}\r\nAccess-Control-Allow-Methods: GET,HEAD,PUT,PATCH,POST,DELETE${allowed}`
  reply.endEmpty({ status: 204, block })
}
