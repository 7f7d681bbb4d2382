import { once } from 'node:events'
import { connect, createServer, type Socket } from 'node:net'
import { pause } from '../../src/actor/clock.js'

/** Carries connections from another address of this machine to a server on 127.0.0.1, as well or as badly as it is told to. */
export interface Relay {
  /** Each piece waits so long before it goes on; 0: not at all. */
  delayMs: number
  /** Cuts all connections, and takes none until `open`. */
  shut(): Promise<void>
  open(): Promise<void>
}

/** `address` and `at`: where it listens. `port`: of the server. Open at once. Nobody waits for it when the process ends. */
export async function startRelay(address: string, at: number, port: number): Promise<Relay> {
  const sockets = new Set<Socket>()
  const keep = (socket: Socket, other: Socket): void => {
    sockets.add(socket)
    socket.setNoDelay(true)
    // The other end learns of it by its own end.
    socket.on('error', () => other.destroy())
    socket.on('close', () => {
      sockets.delete(socket)
      other.destroy()
    })
  }
  const relay = { delayMs: 0 }
  const carry = async (from: Socket, to: Socket): Promise<void> => {
    for await (const piece of from) {
      if (relay.delayMs > 0) await pause(relay.delayMs)
      if (!to.write(piece as Buffer)) await once(to, 'drain')
    }
    to.end()
  }
  const server = createServer({ allowHalfOpen: true }, (client) => {
    const target = connect({ port, host: '127.0.0.1', allowHalfOpen: true })
    keep(client, target)
    keep(target, client)
    // A connection that broke on the way: both ends are closed by then.
    carry(client, target).catch(() => target.destroy())
    carry(target, client).catch(() => client.destroy())
  })
  server.unref()
  const open = async (): Promise<void> => {
    server.listen(at, address)
    await once(server, 'listening')
  }
  await open()
  return Object.assign(relay, {
    open,
    async shut() {
      const closed = once(server, 'close')
      server.close()
      for (const socket of sockets) socket.destroy()
      await closed
    },
  })
}
