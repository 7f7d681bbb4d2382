import t, { type Test } from 'tap'
import { type PostgresServer, postgresFolder, startPostgres } from './postgres-server.js'

/** For tests that need a database: skipped where there is none. */
export const postgresAbsent = { skip: postgresFolder === undefined ? 'no PostgreSQL here' : false }

/** A server for one test, stopped at its end. */
export async function postgresFor(t: Test, durable = false): Promise<PostgresServer> {
  const server = await startPostgres(durable)
  t.teardown(() => server.stop())
  return server
}

/** What is shared holds for two machines and one PostgreSQL, too. `more`: what else the machines need, in words. */
export function twoMachines(
  act: (t: Test, server: PostgresServer) => Promise<void>,
  more = '',
): Promise<unknown> {
  return t.test(`two machines and PostgreSQL${more}`, postgresAbsent, async (t) => {
    await act(t, await postgresFor(t))
  })
}
