import { connect } from './transport.js'

/** What came back on one connection before it was closed. */
export interface Conversation {
  readonly statuses: readonly number[]
  readonly text: string
}

/**
 * Sends these bytes (one character each), says that no more will come (where `open` is not set), and listens until the other
 * side closes.
 */
export function converse(port: number, sent: string, open = false): Promise<Conversation> {
  return new Promise((resolve, reject) => {
    const pieces: Buffer[] = []
    const socket = connect(port)
    socket.on('data', (piece: Buffer) => pieces.push(piece))
    // A reset is one of the ways in which a connection may be closed on us.
    socket.on('error', (error: NodeJS.ErrnoException) => {
      if (error.code !== 'ECONNRESET' && error.code !== 'EPIPE') reject(error)
    })
    socket.on('close', () => {
      const text = Buffer.concat(pieces).toString('latin1')
      const statuses = [...text.matchAll(/HTTP\/1\.1 (\d{3}) /g)].map((found) => Number(found[1]))
      resolve({ statuses, text })
    })
    if (open) socket.write(Buffer.from(sent, 'latin1'))
    else socket.end(Buffer.from(sent, 'latin1'))
  })
}
