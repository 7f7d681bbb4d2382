import { type Refusal, refuse } from '../format/refusal.js'
import { PostgresSessions } from '../ledger/postgres-session.js'
import type { MachineState } from './machines.js'

const answerMs = 3000

/**
 * Names of machines with an upload service that have not sent a heartbeat for so many seconds, by the clock of the database, and
 * have not stopped by themselves.
 */
async function goneMachines({ ask }: Pick<PostgresSessions, 'ask'>, seconds: number): Promise<string[]> {
  const rows = await ask<{ readonly node: string; readonly body: string }>(
    `SELECT node, body FROM (
       SELECT DISTINCT ON (node) node, ended, body, seen_at FROM cluster_machines ORDER BY node, seen_at DESC
     ) AS newest WHERE NOT ended AND seen_at < clock_timestamp() - make_interval(secs => $1)`,
    [seconds],
  )
  return rows.flatMap(({ node, body }) =>
    (JSON.parse(body) as MachineState).services.includes('upload') ? [node] : [],
  )
}

/** Looks at the heartbeats of the cluster. */
export class GoneMachines {
  readonly #sessions: PostgresSessions

  constructor(
    databaseUrl: string,
    private readonly seconds: number,
  ) {
    this.#sessions = new PostgresSessions(databaseUrl, 1, answerMs, answerMs)
  }

  /** Names of machines that are gone. A refusal: the database does not answer. */
  async look(): Promise<readonly string[] | Refusal> {
    try {
      return await goneMachines(this.#sessions, this.seconds)
    } catch (error) {
      const reason = error instanceof Error ? error.message : String(error)
      return refuse('busy', 'self', `the database of the cluster does not answer: ${reason}`)
    }
  }

  close(): Promise<void> {
    return this.#sessions.close()
  }
}
