import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { createServer } from 'node:net'
import { systemClock } from '../../src/actor/clock.js'

/** The environment of a program under test. */
export const plainEnvironment = { PATH: '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin' }

/** A program that was started and is stopped by `stop`. */
export interface Child {
  readonly pid: number
  /** Asks it to end (SIGTERM) and waits; after ten seconds it is killed. */
  stop(): Promise<void>
}

const running = new Set<ChildProcess>()

/** Ends the child when this process ends. */
export function bound(child: ChildProcess): void {
  listenOnce()
  running.add(child)
  child.once('exit', () => running.delete(child))
}

let isListening = false

function listenOnce(): void {
  if (isListening) return
  isListening = true
  process.once('exit', () => {
    for (const child of running) child.kill('SIGTERM')
  })
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.once(signal, () => process.exit(130))
}

/** Starts a program. Its standard error is ours; `shape` is waited for in what it says on standard output. */
export async function start(
  program: string,
  args: readonly string[],
  options: { env?: Record<string, string>; shape?: RegExp; quiet?: boolean } = {},
): Promise<Child & { matched: RegExpExecArray | undefined }> {
  const child = spawn(program, args, {
    stdio: ['ignore', 'pipe', options.quiet === true ? 'ignore' : 'inherit'],
    env: { ...plainEnvironment, ...options.env },
  })
  bound(child)
  const ended = new Promise<void>((resolve) => child.once('close', () => resolve()))
  const failed = new Promise<never>((_, reject) => child.once('error', reject))
  const stop = async (): Promise<void> => {
    child.kill('SIGTERM')
    const killer = systemClock.after(10_000, () => child.kill('SIGKILL'))
    await ended
    killer.cancel()
  }
  const { shape } = options
  if (shape === undefined) {
    child.stdout.resume()
    await Promise.race([once(child, 'spawn'), failed])
  }
  const matched = shape === undefined ? undefined : await Promise.race([found(child, shape), failed])
  return { pid: child.pid ?? 0, stop, matched }
}

/** The first match of `shape` in the child's output. Rejects where it ends before. */
function found(child: ChildProcess, shape: RegExp): Promise<RegExpExecArray> {
  return new Promise((resolve, reject) => {
    let text = ''
    child.stdout?.on('data', (piece: Buffer) => {
      if (text === '\0') return
      text += piece.toString()
      const match = shape.exec(text)
      if (match === null) return
      text = '\0'
      resolve(match)
    })
    child.once('close', () => reject(new Error(`it ended before it was ready:\n${text}`)))
  })
}

/** A free port of 127.0.0.1. */
export async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const address = server.address()
  server.close()
  return typeof address === 'object' && address !== null ? address.port : 0
}

/** Whether this command is installed; what it says of its version. */
export function versionOf(program: string, flag: string): string | undefined {
  const { status, stdout, stderr } = spawnSync(program, [flag], { encoding: 'utf8', env: plainEnvironment })
  return status === 0 ? `${stdout}${stderr}`.trim().split('\n')[0] : undefined
}
