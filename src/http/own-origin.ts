import type { Request } from './exchange.js'

const hostShape = /^(?:[A-Za-z0-9_.-]{1,255}|\[[0-9A-Fa-f:.]{2,45}\])(?::\d{1,5})?$/

/**
 * How the client wrote this server's address, without a slash at the end; `localhost` where it wrote no host. `protocol`: of
 * requests that did not come over TLS themselves, but perhaps to a proxy in front.
 */
export function ownOrigin(request: Pick<Request, 'header' | 'secure'>, protocol: 'http' | 'https'): string {
  const given = request.header('host') ?? ''
  return `${request.secure === true ? 'https' : protocol}://${hostShape.test(given) ? given : 'localhost'}`
}
