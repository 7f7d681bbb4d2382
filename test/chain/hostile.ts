import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { Test } from 'tap'
import type { ChainOptions } from '../../src/chain/remote-chain-options.js'

/** A real little server that answers as the test says; ends with the test. */
export async function nodeThat(
  t: Test,
  act: (request: IncomingMessage, response: ServerResponse) => void,
): Promise<{ url: string; requested: string[] }> {
  const requested: string[] = []
  const server = createServer((request, response) => {
    requested.push(`${request.method} ${request.url}`)
    act(request, response)
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  t.teardown(() => {
    server.closeAllConnections()
    server.close()
  })
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, requested }
}

/** A node with fixed answers by path; others are 404. */
export function nodeWith(
  t: Test,
  answers: Readonly<Record<string, string | { status: number; body: string }>>,
) {
  return nodeThat(t, (request, response) => {
    const answer = answers[request.url ?? ''] ?? { status: 404, body: 'Not Found.' }
    if (typeof answer === 'string') response.end(answer)
    else response.writeHead(answer.status).end(answer.body)
  })
}

export const patient: Omit<ChainOptions, 'nodes'> = {
  connectMs: 20_000,
  headMs: 20_000,
  stallMs: 20_000,
  connectionsMax: 4,
  callsMax: 8,
  waitingMax: 8,
  attemptsMax: 3,
  coolMs: 60_000,
  coolMaxMs: 60_000,
}
