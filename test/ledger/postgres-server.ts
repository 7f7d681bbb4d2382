import { execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { chmodSync, chownSync, existsSync, mkdirSync, readdirSync } from 'node:fs'
import { createServer } from 'node:net'
import { join } from 'node:path'
import postgres from 'postgres'
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

async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const address = server.address()
  server.close()
  await once(server, 'close')
  return typeof address === 'object' && address !== null ? address.port : 0
}

export interface PostgresServer {
  readonly url: string
  readonly folder: string
  /** A database of its own. */
  database(name: string): Promise<string>
  stop(): Promise<void>
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
  execFileSync(
    join(postgresFolder, 'initdb'),
    ['-D', data, '-U', 'sluice', '-A', 'trust', '--no-sync', '-E', 'UTF8'],
    { ...as, env, cwd: root, stdio: 'ignore' },
  )
  const port = await freePort()
  const settings = [
    `port=${port}`,
    'listen_addresses=127.0.0.1',
    `unix_socket_directories=${root}`,
    'max_connections=100',
    ...(durable ? [] : ['fsync=off']),
  ]
  const words = settings.flatMap((one) => ['-c', one])
  const server = spawn(join(postgresFolder, 'postgres'), ['-D', data, ...words], {
    ...as,
    env,
    cwd: root,
    stdio: 'ignore',
  })
  const gone = once(server, 'close')
  const url = `postgres://sluice@127.0.0.1:${port}/postgres`
  const ask = async (text: string): Promise<void> => {
    const sql = postgres(url, { max: 1, connect_timeout: 5, onnotice: () => undefined })
    try {
      await sql.unsafe(text)
    } finally {
      await sql.end({ timeout: 1 })
    }
  }
  await eventually(async () => {
    try {
      await ask('SELECT 1')
      return true
    } catch {
      if (server.exitCode !== null) throw new Error('PostgreSQL has ended')
      return false
    }
  })
  return {
    ...{ url, folder: root },
    async database(name) {
      await ask(`CREATE DATABASE "${name}"`)
      return url.replace(/postgres$/, name)
    },
    async stop() {
      // Without waiting for clients.
      server.kill('SIGINT')
      await gone
    },
  }
}
