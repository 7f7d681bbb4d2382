import { Agent, request as httpRequest } from 'node:http'
import type { Stage } from './rig.js'

export interface Got {
  readonly status: number
  readonly headers: Readonly<Record<string, string>>
  readonly body: Buffer
}

/** Asks over one connection that is kept. */
export function caller(
  t: { teardown(act: () => void): void },
  on: Stage,
): (path: string, more?: object) => Promise<Got> {
  const agent = new Agent({ keepAlive: true, maxSockets: 1 })
  t.teardown(() => agent.destroy())
  return (path, more = {}) =>
    new Promise((resolve, reject) => {
      const request = httpRequest(`${on.url}${path}`, { agent, ...more }, async (answer) => {
        const pieces: Buffer[] = []
        for await (const piece of answer) pieces.push(piece as Buffer)
        const headers = answer.headers as Record<string, string>
        resolve({ status: answer.statusCode ?? 0, headers, body: Buffer.concat(pieces) })
      })
      request.on('error', reject)
      request.end()
    })
}
