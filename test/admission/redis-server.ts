import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { findPort } from '../../src/actor/claim.js'
import { eventually } from '../eventually.js'

/** A real redis-server on a port of its own, its state in `folder`. */
export interface RedisServer {
  readonly port: number
  readonly process: ChildProcess
  stop(): Promise<void>
}

export const hasRedis = spawnSync('redis-server', ['--version']).status === 0

/** A port on which a server may be started, and started again: no other test gets it meanwhile. */
export const freePort = (): Promise<number> => findPort('127.0.0.1', 0, 'the port of Redis')

export async function startRedis(
  folder: string,
  port?: number,
  more: readonly string[] = [],
): Promise<RedisServer> {
  const place = port ?? (await freePort())
  const args = [
    '--port',
    String(place),
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
    port: place,
    process: child,
    async stop() {
      child.kill('SIGCONT')
      child.kill('SIGTERM')
      await exited
    },
  }
}

/** Waits until `isSo`. */
export async function until(isSo: () => boolean | Promise<boolean>): Promise<void> {
  await eventually('it comes to be so', isSo)
}
