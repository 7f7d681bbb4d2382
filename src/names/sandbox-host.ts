import { type Id, idBytes } from '../format/id.js'

const letters = 'abcdefghijklmnopqrstuvwxyz234567'

/**
 * The label under which the content of an id has an origin of its own. It is base32 of the id's 32 bytes (RFC 4648 section 6),
 * lower case, without padding: 52 characters.
 */
export function sandboxLabel(id: Id): string {
  let label = ''
  let bits = 0
  let held = 0
  for (const byte of idBytes(id)) {
    held = (held << 8) | byte
    bits += 8
    while (bits >= 5) {
      bits -= 5
      label += letters[(held >> bits) & 31]
    }
    held &= (1 << bits) - 1
  }
  return label + letters[(held << (5 - bits)) & 31]
}

export interface Redirect {
  /** `http` or `https`. */
  readonly protocol: string
  readonly id: Id
  readonly root: string
  /** Port of the request's Host header with its colon, or ''. */
  readonly port: string
  /** Where this program itself listens, in plain HTTP. */
  readonly ownPort: number
  /** Starts with the id's slash, as the client wrote it. */
  readonly path: string
  readonly query: string
}

/**
 * The same place on the id's own host. The question mark stands there always, as clients of the network know it. The port
 * stays, but for the usual one of the protocol, and for our own where the client is sent to HTTPS: behind that port nobody
 * speaks it.
 */
export function sandboxUrl({ id, path, query, ...place }: Redirect): string {
  return `${originOf(`${sandboxLabel(id)}.${place.root}`, place)}${path.replace('//', '/')}?${query}`
}

/** Address of a host of this gateway, with the port by the rule of `sandboxUrl`, without a slash at the end. */
export function originOf(
  host: string,
  { protocol, port, ownPort }: Omit<Redirect, 'id' | 'root' | 'path' | 'query'>,
): string {
  const usual = protocol === 'https' ? ':443' : ':80'
  const isWrong = port === usual || (protocol === 'https' && port === `:${ownPort}`)
  return `${protocol}://${host}${isWrong ? '' : port}`
}
