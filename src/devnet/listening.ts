import type { Server } from 'node:http'

export interface Listening {
  /** `http://host:port`, without a slash at the end. */
  readonly url: string
  /** Stops listening and drops idle connections; resolves when the last request is answered. */
  close(): Promise<void>
}

/** Lets a server listen. `port` 0: any free one. Rejects where the port cannot be had. */
export async function listening(server: Server, host: string, port: number): Promise<Listening> {
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject)
    server.listen(port, host, () => resolve())
  })
  const address = server.address()
  if (address === null || typeof address === 'string') throw new Error('the server has no address')
  return {
    url: `http://${host}:${address.port}`,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve())
        server.closeIdleConnections()
      }),
  }
}
