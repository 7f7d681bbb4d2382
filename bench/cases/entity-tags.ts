import { once } from 'node:events'
import { Agent, type IncomingMessage, request } from 'node:http'
import type { Target } from '../load/load.js'
import type { Candidate } from '../rivals/candidate.js'

/** The same targets asked for with the entity tags that the server gives them: it has to answer 304. */
export async function entityTags({ name, port }: Candidate, targets: readonly Target[]): Promise<Target[]> {
  const agent = new Agent({ keepAlive: true, maxSockets: 1 })
  const conditional: Target[] = []
  try {
    for (const target of targets) {
      const exchange = request({ port, host: '127.0.0.1', path: target.path, method: 'HEAD', agent }).end()
      const [answer] = (await once(exchange, 'response')) as [IncomingMessage]
      answer.resume()
      await once(answer, 'end')
      const { etag } = answer.headers
      if (etag === undefined) throw new Error(`${name} gives ${target.path} no ETag`)
      conditional.push({ path: target.path, status: 304, lines: [`If-None-Match: ${etag}`] })
    }
  } finally {
    agent.destroy()
  }
  return conditional
}
