import { execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { chmodSync, chownSync, existsSync, mkdirSync, readdirSync, readFileSync, renameSync } from 'node:fs'
import { join } from 'node:path'
import { Client } from 'pg'
import { findPort } from '../../src/actor/claim.js'
import { eventually } from '../eventually.js'
import { scratch } from '../scratch.js'

/** Where Debian and others put the programs of the server. */
const folders = ['/usr/local/bin', '/usr/bin', ...versions('/usr/lib/postgresql')]

function versions(root: string): string[] {
  return existsSync(root) ? readdirSync(root).map((version) => join(root, version, 'bin')) : []
}

export const postgresFolder = folders.find((folder) =>
  ['initdb', 'postgres'].every((name) => existsSync(join(folder, name))),
)

/** It does not run as root. */
function user(): { readonly uid?: number; readonly gid?: number } {
  if (process.getuid?.() !== 0) return {}
  for (const name of ['postgres', 'nobody']) {
    try {
      const number = (flag: string): number =>
        Number(execFileSync('id', [flag, name], { stdio: ['ignore', 'pipe', 'ignore'] }).toString())
      return { uid: number('-u'), gid: number('-g') }
    } catch {
      // There is no such user here.
    }
  }
  return {}
}

/** A process and its children. */
function signalAll(pid: number, signal: NodeJS.Signals): void {
  const path = `/proc/${pid}/task/${pid}/children`
  if (!existsSync(path)) return
  const children = readFileSync(path, 'utf8').trim().split(' ')
  // The parent first, so that no child is added.
  for (const one of [pid, ...children.map(Number)]) {
    if (one <= 0) continue
    try {
      process.kill(one, signal)
    } catch (error) {
      // A child ends by itself.
      if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error
    }
  }
}

export interface PostgresServer {
  readonly url: string
  readonly folder: string
  /** A database of its own. */
  database(name: string): Promise<string>
  stop(): Promise<void>
  /** Again, after `stop`: with everything that it has. */
  start(): Promise<void>
  /** All its processes stand still, or go on. */
  hang(): void
  wake(): void
}

/**
 * A copy of the folder of a server that never ran, with this owner: to make one takes a second of processor time. The runner of
 * the tests names a place where the first one is kept for all files.
 */
function copyOfNew(data: string, command: (program: string, words: readonly string[]) => void): void {
  const place = process.env.TEST_SHARED_FOLDER ?? ownPlace()
  const kept = join(place, 'postgres')
  if (!existsSync(kept)) {
    const draft = `${kept}.${process.pid}`
    mkdirSync(draft, { mode: 0o777 })
    chmodSync(draft, 0o777)
    const made = join(draft, 'data')
    const initdb = join(postgresFolder ?? '', 'initdb')
    command(initdb, ['-D', made, '-U', 'sluice', '-A', 'trust', '--no-sync', '-E', 'UTF8'])
    try {
      renameSync(draft, kept)
    } catch (error) {
      // Another file has just made it.
      if ((error as NodeJS.ErrnoException).code !== 'ENOTEMPTY') throw error
    }
  }
  command('cp', ['-a', `${kept}/data/.`, data])
}

let own: string | undefined

/** For a file that runs alone. */
function ownPlace(): string {
  own ??= scratch('new-postgres')
  chmodSync(own, 0o711)
  return own
}

/** A server of its own on a free port, without a disk that is flushed unless `durable`. */
export async function startPostgres(durable = false): Promise<PostgresServer> {
  if (postgresFolder === undefined) throw new Error('no PostgreSQL here')
  const as = user()
  const root = scratch('postgres')
  const data = join(root, 'data')
  mkdirSync(data)
  for (const path of [root, data]) {
    chmodSync(path, 0o700)
    if (as.uid !== undefined && as.gid !== undefined) chownSync(path, as.uid, as.gid)
  }
  const env = { PATH: process.env.PATH ?? '', LC_ALL: 'C' }
  const command = (program: string, words: readonly string[]): void => {
    execFileSync(program, words, { ...as, env, cwd: root, stdio: 'ignore' })
  }
  copyOfNew(data, command)
  const port = await findPort('127.0.0.1', 0, 'PostgreSQL')
  const settings = [
    `port=${port}`,
    'listen_addresses=127.0.0.1',
    `unix_socket_directories=${root}`,
    'max_connections=100',
    ...(durable ? [] : ['fsync=off']),
  ]
  const words = settings.flatMap((one) => ['-c', one])
  const program = join(postgresFolder, 'postgres')
  const begun = (): { readonly server: ReturnType<typeof spawn>; readonly gone: Promise<unknown> } => {
    const server = spawn(program, ['-D', data, ...words], { ...as, env, cwd: root, stdio: 'ignore' })
    return { server, gone: once(server, 'close') }
  }
  let running = begun()
  const url = `postgres://sluice@127.0.0.1:${port}/postgres`
  const ask = async (text: string): Promise<void> => {
    const client = new Client({ connectionString: url, connectionTimeoutMillis: 20_000 })
    try {
      await client.connect()
      await client.query(text)
    } finally {
      await client.end()
    }
  }
  const answers = (): Promise<boolean> =>
    eventually('PostgreSQL answers', async () => {
      try {
        await ask('SELECT 1')
        return true
      } catch {
        if (running.server.exitCode !== null) throw new Error('PostgreSQL has ended')
        return false
      }
    })
  await answers()
  return {
    url,
    folder: root,
    async database(name) {
      await ask(`CREATE DATABASE "${name}"`)
      return url.replace(/postgres$/, name)
    },
    hang: () => signalAll(running.server.pid ?? 0, 'SIGSTOP'),
    wake: () => signalAll(running.server.pid ?? 0, 'SIGCONT'),
    async stop() {
      signalAll(running.server.pid ?? 0, 'SIGCONT')
      // Without waiting for clients.
      running.server.kill('SIGINT')
      await running.gone
    },
    async start() {
      running = begun()
      await answers()
    },
  }
}
