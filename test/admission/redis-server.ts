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

export async function startRedis(
  folder: string,
  port = 0,
  more: readonly string[] = [],
): Promise<RedisServer> {
  const found = port === 0 ? await freePort() : port
  const args = [
    '--port',
    String(found),
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
    port: found,
    process: child,
    async stop() {
      child.kill('SIGCONT')
      child.kill('SIGTERM')
      await exited
    },
  }
}

/** Waits until `isSo`, for five seconds at most. */
export async function until(isSo: () => boolean | Promise<boolean>): Promise<void> {
  for (let turn = 0; turn < 200; turn += 1) {
    if (await isSo()) return
    await pause(25)
  }
  throw new Error('it did not come to be so')
}
