import type { PostgresSessions } from '../ledger/postgres-session.js'
import type { NewsHealth } from './cluster-news.js'
import type { DrainState } from './drain.js'

/** The index that one machine of those that may writes into ClickHouse. */
export interface IndexWork {
  readonly leads: boolean
  /** For the machine that leads: up to which height all is there, and how many stable ones are not. */
  readonly height: number
  readonly lag: number
}

/** What a machine states about itself, with each heartbeat. */
export interface MachineState {
  readonly version: string
  readonly services: readonly string[]
  /** Where it answers, by name of the service. */
  readonly urls: Readonly<Record<string, string>>
  /** Version of the lists up to which it has followed. */
  readonly listVersion: number
  /** Changes of its own that the database does not have yet. */
  readonly unshared: number
  /** Milliseconds of the last question to each engine, or why it gave no answer. */
  readonly engines: Readonly<Record<string, NewsHealth>>
  /** Steps of the tables that its release knows. */
  readonly steps: number
  /** Absent: it does not write the index into ClickHouse, and would not. */
  readonly index?: IndexWork
  /** Absent: it is not being drained. */
  readonly drain?: DrainState
}

/** A machine as the database has it. */
export interface Machine extends MachineState {
  readonly node: string
  /** A UUID of its process. */
  readonly process: string
  readonly startedMs: number
  /** Seconds since its last heartbeat, by the clock of the database. */
  readonly ageSeconds: number
  /** Seconds that its clock was ahead of the database's. */
  readonly aheadSeconds: number
  /** It was stopped, and has not ended by itself. */
  readonly isStopped: boolean
}

/** Records of machines that were not seen for so long are removed. */
const keptDays = 7
/** Stamps that are kept: who has missed more versions compares his lists from the beginning. */
const stampsMax = 100_000

interface MachineRow {
  readonly node: string
  readonly process: string
  readonly started_ms: string
  readonly age: string
  readonly ahead: string
  readonly ended: boolean
  readonly body: string
}

/** The heartbeats of all machines. */
export class Machines {
  constructor(private readonly sessions: Pick<PostgresSessions, 'ask'>) {}

  /** Resolves with how long ago it was ordered that this machine is drained, milliseconds; undefined: it is not. */
  async beat(
    machine: Pick<Machine, 'node' | 'process' | 'startedMs' | 'isStopped'>,
    clockMs: number,
    state: MachineState,
  ): Promise<number | undefined> {
    const { node, process, startedMs, isStopped } = machine
    const [row] = await this.sessions.ask<{ readonly ordered_ms: string | null }>(
      `INSERT INTO cluster_machines (node, process, seen_at, started_ms, clock_ms, ended, body)
       VALUES ($1, $2, clock_timestamp(), $3, $4, $5, $6)
       ON CONFLICT (node, process) DO UPDATE
       SET seen_at = excluded.seen_at, clock_ms = excluded.clock_ms, ended = excluded.ended, body = excluded.body
       RETURNING (SELECT extract(epoch FROM clock_timestamp() - ordered_at) * 1000 FROM cluster_drains d
         WHERE d.node = $1) AS ordered_ms`,
      [node, process, startedMs, Math.round(clockMs), isStopped, JSON.stringify(state)],
    )
    const orderedMs = row?.ordered_ms ?? null
    return orderedMs === null ? undefined : Number(orderedMs)
  }

  /** Orders that a machine is drained, also while it does not run. False: no machine of this name was seen. */
  async drain(node: string): Promise<boolean> {
    const rows = await this.sessions.ask(
      `INSERT INTO cluster_drains (node) SELECT node FROM cluster_machines WHERE node = $1 LIMIT 1
       ON CONFLICT (node) DO UPDATE SET node = excluded.node RETURNING node`,
      [node],
    )
    return rows.length > 0
  }

  /** Ends that. False: it was not ordered. */
  async resume(node: string): Promise<boolean> {
    const rows = await this.sessions.ask('DELETE FROM cluster_drains WHERE node = $1 RETURNING node', [node])
    return rows.length > 0
  }

  /** All processes that were seen in the last days, those of one machine with the newest first. */
  async list(): Promise<Machine[]> {
    const rows = await this.sessions.ask<MachineRow>(
      `SELECT node, process, started_ms, ended, body,
         extract(epoch FROM clock_timestamp() - seen_at) AS age,
         clock_ms / 1000.0 - extract(epoch FROM seen_at) AS ahead
       FROM cluster_machines ORDER BY node, seen_at DESC`,
    )
    return rows.map(({ node, process, started_ms, age, ahead, ended, body }) => ({
      ...(JSON.parse(body) as MachineState),
      node,
      process,
      startedMs: Number(started_ms),
      ageSeconds: Number(age),
      aheadSeconds: Number(ahead),
      isStopped: ended,
    }))
  }

  /** Removes what nobody needs any more. */
  async prune(): Promise<void> {
    const { ask } = this.sessions
    await ask(`DELETE FROM cluster_machines WHERE seen_at < now() - interval '${keptDays} days'`)
    await ask(`DELETE FROM cluster_changes WHERE at < now() - interval '${keptDays} days'`)
    await ask('DELETE FROM cluster_versions WHERE version < (SELECT version FROM cluster_state) - $1', [
      stampsMax,
    ])
  }
}
