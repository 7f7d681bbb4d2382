import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { createServer } from 'node:net'
import { pause } from '../../src/actor/clock.js'

/** A real redis-server on a port of its own, its state in `folder`. */
export interface RedisServer {
  readonly port: number
  readonly process: ChildProcess
  stop(): Promise<void>
}

export const hasRedis = spawnSync('redis-server', ['--version']).status === 0

export async function freePort(): Promise<number> {
  const server = createServer()
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const address = server.address()
  server.close()
  await once(server, 'close')
  return typeof address === 'object' && address !== null ? address.port : 0
}

/** Somebody else may take a free port before the server does: then it is started on another. */
export async function startRedis(
  folder: string,
  port = 0,
  more: readonly string[] = [],
): Promise<RedisServer> {
  if (port !== 0) return startedOn(port, folder, more)
  for (let tries = 0; tries < 3; tries += 1) {
    try {
      return await startedOn(await freePort(), folder, more)
    } catch (error) {
      if (tries === 2) throw error
    }
  }
  throw new Error('no free port')
}

async function startedOn(port: number, folder: string, more: readonly string[]): Promise<RedisServer> {
  const args = [
    '--port',
    String(port),
    '--bind',
    '127.0.0.1',
    '--dir',
    folder,
    '--save',
    '',
    '--appendonly',
    'yes',
  ]
  const child = spawn('redis-server', [...args, '--appendfsync', 'always', ...more], {
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  const exited = once(child, 'exit')
  await new Promise<void>((resolve, reject) => {
    child.stdout?.on('data', (text: Buffer) => {
      if (text.includes('Ready to accept connections')) resolve()
    })
    void exited.then(() => reject(new Error('redis-server ended before it was ready')))
  })
  return {
    port,
    process: child,
    async stop() {
      child.kill('SIGCONT')
      child.kill('SIGTERM')
      await exited
    },
  }
}

/** Waits until `isSo`, for half a minute at most. */
export async function until(isSo: () => boolean | Promise<boolean>): Promise<void> {
  for (let turn = 0; turn < 1200; turn += 1) {
    if (await isSo()) return
    await pause(25)
  }
  throw new Error('it did not come to be so')
}
