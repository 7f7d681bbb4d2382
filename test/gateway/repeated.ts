import { Agent, request as httpRequest } from 'node:http'
import { pause } from '../../src/actor/clock.js'
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
      const asked = httpRequest(`${on.url}${path}`, { agent, ...more }, async (answer) => {
        const pieces: Buffer[] = []
        for await (const piece of answer) pieces.push(piece as Buffer)
        const headers = answer.headers as Record<string, string>
        resolve({ status: answer.statusCode ?? 0, headers, body: Buffer.concat(pieces) })
      })
      asked.on('error', reject)
      asked.end()
    })
}

export const repeated = (on: Stage): number => on.meters.total('http_repeated_answers_total')

/** Asks until an answer was given by the server itself, for some seconds at most: each second the first ones are not. */
export async function untilRepeated(on: Stage, ask: () => Promise<Got>): Promise<Got> {
  const before = repeated(on)
  for (let turn = 0; turn < 4000; turn += 1) {
    const got = await ask()
    if (repeated(on) > before) return got
    // The blob may still have to be checked, by threads that have other work.
    if (turn > 50) await pause(5)
  }
  throw new Error('no answer was repeated')
}
