import { type ChildProcess, spawn } from 'node:child_process'
import { existsSync, openSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { findPort } from '../../src/actor/claim.js'
import { systemClock } from '../../src/actor/clock.js'
import { ClickhouseClient, type ClickhouseOptions } from '../../src/clickhouse/clickhouse-client.js'
import { eventually } from '../eventually.js'
import { scratch } from '../scratch.js'

/** ClickHouse's own engine behind an HTTP interface (clickhouse-server.ts); one statement at a time. */
export interface ClickhouseEngine {
  readonly url: string
  readonly password: string
  readonly child: ChildProcess
  /** A client, closed with the engine. */
  client(options?: Partial<Pick<ClickhouseOptions, 'timeoutMs' | 'writeMs' | 'password'>>): ClickhouseClient
  stop(): Promise<void>
}

const home = process.env.CHDB_HOME ?? '/var/cache/sluice-chdb'
const module = join(home, 'node_modules', 'chdb')

/** For tests that need it: skipped where it is not installed, but not in CI. */
export const clickhouseAbsent =
  existsSync(module) || process.env.CI === 'true'
    ? {}
    : {
        skip: `chdb is not installed (npm install --prefix ${home} chdb@3.4.0; 546 MB; CHDB_HOME: where else)`,
      }

const program = fileURLToPath(new URL('./clickhouse-server.js', import.meta.url))

/** Starts an empty one, or one over the folder of an earlier one. Rejects where it does not come up. */
export async function startClickhouse(folder = scratch('clickhouse'), at = 0): Promise<ClickhouseEngine> {
  const port = at === 0 ? await findPort('127.0.0.1', 0, 'ClickHouse') : at
  const password = 'a-secret-of-tests'
  const out = openSync(join(folder, 'out'), 'a')
  const child = spawn(process.execPath, [program, module, folder, String(port), password], {
    stdio: ['ignore', out, out],
  })
  // Nobody leaves a server behind, however the test ends.
  process.once('exit', () => child.kill('SIGKILL'))
  const url = `http://127.0.0.1:${port}`
  await eventually('ClickHouse comes up', async () => {
    if (child.exitCode !== null) throw new Error('ClickHouse did not come up: see `out` in its folder')
    return fetch(`${url}/ping`).then(
      ({ ok }) => ok,
      () => false,
    )
  })
  const clients: ClickhouseClient[] = []
  return {
    url,
    password,
    child,
    client(options = {}) {
      const about = {
        url,
        database: 'default',
        user: 'default',
        password,
        slots: 4,
        waitingMax: 64,
        clientMax: 64,
      }
      const client = new ClickhouseClient(
        { ...about, timeoutMs: 60_000, writeMs: 60_000, ...options },
        systemClock,
      )
      clients.push(client)
      return client
    },
    async stop() {
      for (const client of clients) await client.close()
      const gone = new Promise((resolve) => child.once('exit', resolve))
      if (child.exitCode !== null || child.signalCode !== null) return
      child.kill('SIGKILL')
      await gone
    },
  }
}
