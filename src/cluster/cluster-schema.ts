import type { PostgresSessions } from '../ledger/postgres-session.js'

/** One step of the tables, and its way back. A step that has been released never changes. */
export interface ClusterMigration {
  readonly forward: string
  /** What a release before this step does not need is removed. */
  readonly back: string
}

/**
 * The tables of a cluster. Machines are updated one after the other, so a step adds only what the release before it does not
 * mind: it runs with one step more than it knows.
 */
export const clusterMigrations: readonly ClusterMigration[] = [
  {
    forward: `
      CREATE TABLE cluster_state (
        one boolean PRIMARY KEY CHECK (one),
        cluster text NOT NULL,
        version bigint NOT NULL
      );
      INSERT INTO cluster_state VALUES (true, gen_random_uuid()::text, 0);
      CREATE TABLE cluster_versions (
        version bigint PRIMARY KEY,
        stamp text NOT NULL
      );
      CREATE TABLE cluster_entries (
        list text COLLATE "C" NOT NULL,
        key text COLLATE "C" NOT NULL,
        body text,
        rank bigint NOT NULL,
        version bigint NOT NULL UNIQUE,
        node text NOT NULL,
        PRIMARY KEY (list, key)
      );
      CREATE TABLE cluster_changes (
        token uuid PRIMARY KEY,
        at timestamptz NOT NULL DEFAULT now()
      );
      CREATE INDEX cluster_changes_at ON cluster_changes (at);
      CREATE TABLE cluster_machines (
        node text COLLATE "C" NOT NULL,
        process uuid NOT NULL,
        seen_at timestamptz NOT NULL,
        started_ms bigint NOT NULL,
        clock_ms bigint NOT NULL,
        ended boolean NOT NULL,
        body text NOT NULL,
        PRIMARY KEY (node, process)
      );
    `,
    back: `
      DROP TABLE cluster_machines, cluster_changes, cluster_entries, cluster_versions, cluster_state;
    `,
  },
  {
    forward: `
      CREATE TABLE cluster_free (
        key text COLLATE "C" NOT NULL,
        store uuid NOT NULL,
        used bigint NOT NULL,
        PRIMARY KEY (key, store)
      );
      CREATE INDEX cluster_free_store ON cluster_free (store, key);
    `,
    back: 'DROP TABLE cluster_free;',
  },
  {
    forward: `
      CREATE TABLE cluster_uploads (
        id text COLLATE "C" PRIMARY KEY,
        body text NOT NULL,
        version bigint NOT NULL DEFAULT 1,
        kind smallint NOT NULL,
        due_ms bigint NOT NULL,
        takes boolean NOT NULL,
        ordered boolean NOT NULL,
        owes boolean NOT NULL,
        client text,
        paid boolean NOT NULL,
        bytes bigint NOT NULL DEFAULT 0,
        files integer NOT NULL DEFAULT 0,
        cut integer NOT NULL DEFAULT 0,
        seq bigint NOT NULL DEFAULT 0,
        writer bigint NOT NULL DEFAULT 0,
        claim bigint NOT NULL DEFAULT 0,
        claimed_by uuid,
        claimed_until timestamptz,
        stage text
      );
      CREATE INDEX cluster_uploads_due ON cluster_uploads (kind, due_ms);
      CREATE INDEX cluster_uploads_left ON cluster_uploads (id) WHERE ordered OR claimed_by IS NOT NULL OR owes;
      CREATE TABLE cluster_upload_parts (
        upload text COLLATE "C" NOT NULL,
        start bigint NOT NULL,
        size bigint NOT NULL,
        object text NOT NULL,
        seq bigint NOT NULL,
        PRIMARY KEY (upload, start)
      );
      CREATE INDEX cluster_upload_parts_seq ON cluster_upload_parts (upload, seq);
    `,
    back: 'DROP TABLE cluster_upload_parts, cluster_uploads;',
  },
  {
    forward: `
      CREATE TABLE cluster_drains (
        node text COLLATE "C" PRIMARY KEY,
        ordered_at timestamptz NOT NULL DEFAULT clock_timestamp()
      );
    `,
    back: 'DROP TABLE cluster_drains;',
  },
  {
    // Accepted items, and items in accepted bundles: ids of 32 bytes.
    forward: `
      CREATE TABLE cluster_items (
        id bytea PRIMARY KEY,
        bundle bytea NOT NULL,
        store uuid NOT NULL,
        at timestamptz NOT NULL DEFAULT now()
      );
    `,
    back: 'DROP TABLE cluster_items;',
  },
  {
    // What the receipts of items that were accepted alone state, as JSON.
    forward: 'ALTER TABLE cluster_items ADD COLUMN receipt text;',
    back: 'ALTER TABLE cluster_items DROP COLUMN receipt;',
  },
  {
    // Bundles that are being paid for one by one, and the items in them: they are not accepted yet. A sale without a bundle is
    // over, and its rows are removed by and by.
    forward: `
      CREATE TABLE cluster_sales (
        sale bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
        store uuid NOT NULL,
        bundle bytea,
        until timestamptz NOT NULL,
        UNIQUE (store, bundle)
      );
      CREATE TABLE cluster_sale_items (
        id bytea NOT NULL,
        sale bigint NOT NULL REFERENCES cluster_sales,
        PRIMARY KEY (id, sale)
      );
      CREATE INDEX cluster_sale_items_sale ON cluster_sale_items (sale);
    `,
    back: 'DROP TABLE cluster_sale_items, cluster_sales;',
  },
]

/** Steps that this release knows. */
export const clusterSteps: number = clusterMigrations.length

/** The database has steps that this release does not know how to live with. */
export class UnknownSchema extends Error {
  constructor(readonly steps: number) {
    super(
      `the database of the cluster has step ${steps} of its tables, and this release knows ${clusterSteps}: ` +
        'a release works with one step more than it knows. Update this machine',
    )
    this.name = 'UnknownSchema'
  }
}

/** Any number of ours: who makes tables holds this lock. */
const migrationLock = 718_281_830
const begin = 'BEGIN ISOLATION LEVEL READ COMMITTED'

/** Steps that the database has. */
export async function schemaSteps({ ask }: Pick<PostgresSessions, 'ask'>): Promise<number> {
  const [there] = await ask<{ found: boolean }>(
    "SELECT to_regclass('cluster_migrations') IS NOT NULL AS found",
  )
  if (there?.found !== true) return 0
  const [row] = await ask<{ steps: string }>('SELECT count(*) AS steps FROM cluster_migrations')
  return Number(row?.steps ?? 0)
}

/**
 * Makes what tables are missing; a database that has them is only read. Rejects with `UnknownSchema` where it is too new.
 * `migrations`: other steps than those of this release, for tests.
 */
export async function migrateCluster(
  sessions: PostgresSessions,
  migrations: readonly ClusterMigration[] = clusterMigrations,
): Promise<void> {
  const steps = await schemaSteps(sessions)
  if (steps > migrations.length + 1) throw new UnknownSchema(steps)
  if (steps >= migrations.length) return
  await sessions.transaction(begin, async (ask) => {
    await ask('SELECT pg_advisory_xact_lock($1)', [migrationLock])
    await ask('CREATE TABLE IF NOT EXISTS cluster_migrations (step integer PRIMARY KEY)')
    const [row] = await ask<{ steps: string }>('SELECT count(*) AS steps FROM cluster_migrations')
    for (let step = Number(row?.steps ?? 0); step < migrations.length; step += 1) {
      await ask(migrations[step]?.forward ?? '')
      await ask('INSERT INTO cluster_migrations VALUES ($1)', [step])
    }
  })
}

/**
 * Takes the last step back, for a release that is older by two. Resolves with the steps that are left; undefined: this release
 * knows no last step.
 */
export function takeStepBack(
  sessions: PostgresSessions,
  migrations: readonly ClusterMigration[] = clusterMigrations,
): Promise<number | undefined> {
  return sessions.transaction(begin, async (ask) => {
    await ask('SELECT pg_advisory_xact_lock($1)', [migrationLock])
    const steps = await schemaSteps({ ask })
    const last = migrations[steps - 1]
    if (last === undefined) return undefined
    await ask(last.back)
    await ask('DELETE FROM cluster_migrations WHERE step = $1', [steps - 1])
    return steps - 1
  })
}
