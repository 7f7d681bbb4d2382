import { randomUUID } from 'node:crypto'
import type { AskDatabase, PostgresSessions } from '../ledger/postgres-session.js'
import type {
  SharedChange,
  SharedEntries,
  SharedEntry,
  SharedHead,
  SharedListName,
} from './shared-entries.js'

const begin = 'BEGIN ISOLATION LEVEL READ COMMITTED'
const columns = 'list, key, body, rank, version, node'

interface EntryRow {
  readonly list: SharedListName
  readonly key: string
  readonly body: string | null
  readonly rank: string
  readonly version: string
  readonly node: string
}

function entryOf({ body, rank, version, ...rest }: EntryRow): SharedEntry {
  return { ...rest, body: body ?? undefined, rank: Number(rank), version: Number(version) }
}

function nameOf({ list, key }: Pick<SharedEntry, 'list' | 'key'>): string {
  return `${list} ${key}`
}

/**
 * The lists in PostgreSQL. Changes are serial: each transaction locks the row of the state first, so versions become visible in
 * their order, and who has read up to one has missed none before it.
 */
export class PostgresEntries implements SharedEntries {
  constructor(
    private readonly sessions: PostgresSessions,
    /** This machine. */
    private readonly node: string,
  ) {}

  async head(version: number): Promise<SharedHead> {
    const [row] = await this.sessions.ask<{
      cluster: string
      version: string
      stamp: string | null
      stamp_then: string | null
    }>(
      `SELECT s.cluster, s.version,
         (SELECT v.stamp FROM cluster_versions v WHERE v.version = s.version) AS stamp,
         (SELECT v.stamp FROM cluster_versions v WHERE v.version >= $1 ORDER BY v.version LIMIT 1) AS stamp_then
       FROM cluster_state s`,
      [version],
    )
    if (row === undefined) throw new Error('the database of the cluster has no state: cluster_state is empty')
    return {
      cluster: row.cluster,
      version: Number(row.version),
      stamp: row.stamp ?? '',
      stampThen: row.stamp_then ?? undefined,
    }
  }

  push(changes: readonly SharedChange[]): Promise<SharedEntry[]> {
    return this.sessions.transaction(begin, (ask) => this.#push(ask, changes))
  }

  async since(
    lists: readonly SharedListName[],
    after: number,
    until: number,
    limit: number,
  ): Promise<SharedEntry[]> {
    const rows = await this.sessions.ask<EntryRow>(
      `SELECT ${columns} FROM cluster_entries
       WHERE version > $2 AND version <= $3 AND list = ANY($1) ORDER BY version LIMIT $4`,
      [lists, after, until, limit],
    )
    return rows.map(entryOf)
  }

  async #push(ask: AskDatabase, changes: readonly SharedChange[]): Promise<SharedEntry[]> {
    const [state] = await ask<{ version: string }>('SELECT version FROM cluster_state FOR UPDATE')
    const done = await ask<{ token: string }>('SELECT token FROM cluster_changes WHERE token = ANY($1)', [
      changes.map(({ token }) => token),
    ])
    const doneTokens = new Set(done.map(({ token }) => token))
    const rows = await ask<EntryRow>(
      `SELECT ${columns} FROM cluster_entries JOIN unnest($1::text[], $2::text[]) AS w(list, key) USING (list, key)`,
      [changes.map(({ list }) => list), changes.map(({ key }) => key)],
    )
    const there = new Map(rows.map(entryOf).map((entry) => [nameOf(entry), entry]))
    const instead: SharedEntry[] = []
    const counted: SharedChange[] = []
    for (const change of changes) {
      const before = there.get(nameOf(change))
      // Carried out already, though this machine did not hear of it. What holds now may be newer.
      if (doneTokens.has(change.token)) instead.push(...(before === undefined ? [] : [before]))
      else if (before === undefined || counts(change, before)) counted.push(change)
      else instead.push(before)
    }
    if (counted.length > 0) await this.#write(ask, counted, Number(state?.version ?? 0))
    return instead
  }

  async #write(ask: AskDatabase, counted: readonly SharedChange[], version: number): Promise<void> {
    const last = version + counted.length
    await ask(
      `INSERT INTO cluster_entries (list, key, body, rank, version, node)
       SELECT w.*, $6 FROM unnest($1::text[], $2::text[], $3::text[], $4::bigint[], $5::bigint[]) AS w
       ON CONFLICT (list, key) DO UPDATE
       SET body = excluded.body, rank = excluded.rank, version = excluded.version, node = excluded.node`,
      [
        counted.map(({ list }) => list),
        counted.map(({ key }) => key),
        counted.map(({ body }) => body ?? null),
        counted.map(({ rank }) => rank),
        counted.map((_, at) => version + at + 1),
        this.node,
      ],
    )
    await ask('INSERT INTO cluster_changes (token) SELECT unnest($1::uuid[])', [
      counted.map(({ token }) => token),
    ])
    await ask('INSERT INTO cluster_versions VALUES ($1, $2)', [last, randomUUID()])
    await ask('UPDATE cluster_state SET version = $1', [last])
  }
}

/** Whether a change goes over what is there. */
function counts({ isInitial, rank }: SharedChange, before: SharedEntry): boolean {
  // What a machine had before it joined is compared by its time, and where it has none the cluster is right.
  if (rank > 0) return rank > before.rank
  return !isInitial
}
