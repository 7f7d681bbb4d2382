import { type Clock, withinTime } from '../actor/clock.js'
import { FairSlots } from '../actor/fair-slots.js'
import { isRefusal, refuse } from '../format/refusal.js'
import { GroupCommit } from '../ledger/group.js'
import { type AskDatabase, PostgresSessions } from '../ledger/postgres-session.js'
import { DatabaseCalls } from './database-calls.js'
import { EngineAway } from './engine-away.js'
import {
  type DatabaseRow,
  type UploadCounts,
  type UploadFacts,
  type UploadPart,
  type UploadRow,
  uploadColumns,
  uploadRowOf,
} from './upload-rows.js'

const begin = 'BEGIN ISOLATION LEVEL READ COMMITTED'
const connectionsMax = 6
/** Connections that changes by clients may have; the others are for lookups, and for what this machine does by itself. */
const clientsMax = 4
/** Changes by clients that wait for one of these connections. */
const waitingMax = 2000
/** Lookups of one statement. */
const looksMax = 50
const usualAnswerMs = 3000
/** A process that is silent for so long does not put it together any more. */
const claimSeconds = 10
/** After a failure requests are refused at once for so long. */
const restMs = 500
/** An object that was named so long ago becomes no part any more: those that are no parts after twice the time are removed. */
export const namedMaxMs = 1_800_000

/** A lookup. Parts up to `seq` are known, of an upload that was cut so often. */
interface Look {
  readonly id: string
  readonly cut: number
  readonly seq: number
}

/**
 * Uploads in several requests, in the PostgreSQL of a cluster: records, parts, who adds parts and who puts them together. Every
 * change states what it goes by, so that a machine that was slow, or stood still, changes nothing any more. All methods
 * reject with `EngineAway` where the database does not answer.
 *
 * Anybody may look for any id, so lookups that come at the same time are one statement. Changes by clients have turns by their
 * address ranges (`client`).
 */
export class PostgresUploads {
  readonly #sessions: PostgresSessions
  readonly #calls: DatabaseCalls
  readonly #looks = new GroupCommit<Look, UploadRow | undefined>((looks) => this.#look(looks), looksMax)
  readonly #clients = new FairSlots({ max: clientsMax, waitingMax })

  /** `process`: a UUID of this process. */
  constructor(
    databaseUrl: string,
    readonly process: string,
    private readonly clock: Clock,
    private readonly answerMs = usualAnswerMs,
  ) {
    this.#sessions = new PostgresSessions(databaseUrl, connectionsMax, answerMs, answerMs)
    // The client of the database has its own times, but none for a line of others who wait.
    this.#calls = new DatabaseCalls({ clock, limitMs: 2 * answerMs, restMs })
  }

  /** Undefined: there is no such upload. `cut`, `seq`: parts up to there are known. */
  load(id: string, cut: number, seq: number): Promise<UploadRow | undefined> {
    return this.#looks.add({ id, cut, seq })
  }

  async #look(looks: readonly Look[]): Promise<readonly (UploadRow | undefined)[]> {
    const rows = await this.#rows(
      `SELECT w.place, ${uploadColumns}, (SELECT json_agg(json_build_array(start, size) ORDER BY p.seq)
         FROM cluster_upload_parts p
         WHERE p.upload = u.id AND p.seq > CASE WHEN u.cut = w.known_cut THEN w.known_seq ELSE -1 END) AS parts
       FROM unnest($1::text[], $2::bigint[], $3::bigint[]) WITH ORDINALITY AS w(id, known_cut, known_seq, place)
         JOIN cluster_uploads u ON u.id = w.id`,
      [looks.map(({ id }) => id), looks.map(({ cut }) => cut), looks.map(({ seq }) => seq)],
    )
    const found = new Map(rows.map((row) => [Number(row.place), uploadRowOf(row)]))
    return looks.map((_, at) => found.get(at + 1))
  }

  /** From now on only who knows the number adds parts. Undefined: none are taken. */
  async takeOver(id: string, client: string | undefined): Promise<number | undefined> {
    const [row] = await this.#rowsFor(
      client,
      'UPDATE cluster_uploads SET writer = writer + 1 WHERE id = $1 AND takes RETURNING writer',
      [id],
    )
    return row === undefined ? undefined : Number(row.writer)
  }

  /** False: there is another one of this name. */
  async insert(id: string, facts: UploadFacts): Promise<boolean> {
    // The same record is ours: its answer was lost.
    const rows = await this.#rowsFor(
      facts.client,
      `INSERT INTO cluster_uploads (id, body, kind, due_ms, takes, ordered, owes, client, paid)
       VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)
       ON CONFLICT (id) DO UPDATE SET body = excluded.body WHERE cluster_uploads.body = excluded.body RETURNING id`,
      [id, ...valuesOf(facts)],
    )
    return rows.length > 0
  }

  /** Resolves with the new version; undefined: the record is not that of this version any more, or is being put together. */
  async update(id: string, version: number, facts: UploadFacts): Promise<number | undefined> {
    const [row] = await this.#rowsFor(
      facts.client,
      `${updated} WHERE id = $1 AND version = $10 AND claimed_by IS NULL RETURNING version`,
      [id, ...valuesOf(facts), version],
    )
    return row === undefined ? undefined : Number(row.version)
  }

  /** The same by who puts it together, under the number of `claim`. */
  async updateClaimed(id: string, claim: number, facts: UploadFacts): Promise<number | undefined> {
    const [row] = await this.#rows(
      `${updated} WHERE id = $1 AND claim = $10 AND claimed_by = $11 RETURNING version`,
      [id, ...valuesOf(facts), claim, this.process],
    )
    return row === undefined ? undefined : Number(row.version)
  }

  /** `version`: of the record that this goes by; 0: only one that is not over. False: it is another one, or is put together. */
  async remove(id: string, version: number): Promise<boolean> {
    const [row] = await this.#rows(
      `WITH gone AS (DELETE FROM cluster_uploads WHERE id = $1 AND (claimed_by IS NULL OR claimed_by = $2)
         AND CASE WHEN $3::bigint = 0 THEN kind = 0 ELSE version = $3 END RETURNING id)
       SELECT (SELECT count(*) FROM gone) AS gone, (SELECT count(*) FROM cluster_uploads WHERE id = $1) AS there`,
      [id, this.process, version],
    )
    return Number(row?.gone) > 0 || Number(row?.there) === 0
  }

  /** Takes it, to put it together. Resolves with a number of this claim alone; undefined: another process does, or it is over. */
  async claim(id: string): Promise<number | undefined> {
    const [row] = await this.#rows(
      `UPDATE cluster_uploads SET claim = claim + 1, claimed_by = $2, stage = 'ASSEMBLING',
         claimed_until = clock_timestamp() + interval '${claimSeconds} s'
       WHERE id = $1 AND kind = 0 AND (claimed_by IS NULL OR claimed_until < clock_timestamp()) RETURNING claim`,
      [id, this.process],
    )
    return row === undefined ? undefined : Number(row.claim)
  }

  /** This process goes on with what it has claimed. Resolves with the claims that are still its own. */
  async stay(ids: readonly string[]): Promise<void> {
    await this.#rows(
      `UPDATE cluster_uploads SET claimed_until = clock_timestamp() + interval '${claimSeconds} s'
       WHERE id = ANY($1) AND claimed_by = $2`,
      [ids, this.process],
    )
  }

  /** Whether the claim still holds; then for another time, with this stage. */
  async confirm(id: string, claim: number, stage: string): Promise<boolean> {
    const rows = await this.#rows(
      `UPDATE cluster_uploads SET stage = $3, claimed_until = clock_timestamp() + interval '${claimSeconds} s'
       WHERE id = $1 AND claim = $2 AND claimed_by = $4 RETURNING id`,
      [id, claim, stage, this.process],
    )
    return rows.length > 0
  }

  /** Ends a claim, with the record where it is given. False: the claim was lost, and nothing changed. */
  async release(id: string, claim: number, facts: UploadFacts | undefined): Promise<boolean> {
    const free = 'claimed_by = NULL, claimed_until = NULL, stage = NULL'
    const rows =
      facts === undefined
        ? await this.#rows(
            `UPDATE cluster_uploads SET ${free} WHERE id = $1 AND claim = $2 AND claimed_by = $3 RETURNING id`,
            [id, claim, this.process],
          )
        : await this.#rows(
            `${updated}, ${free} WHERE id = $1 AND claim = $10 AND claimed_by = $11 RETURNING id`,
            [id, ...valuesOf(facts), claim, this.process],
          )
    return rows.length > 0
  }

  /**
   * Adds a part that the store has; it replaces the one that begins there. `namedMs`: when its object was named, by the time of
   * the database. Resolves with the object that is a part no more, or null; undefined: this writer adds no parts any more.
   */
  addPart(
    id: string,
    part: UploadPart,
    writer: number,
    namedMs: number,
    client: string | undefined,
  ): Promise<string | null | undefined> {
    return this.#callFor(client, () =>
      this.#sessions.transaction(begin, async (ask) => {
        const [row] = await ask<DatabaseRow>(
          `SELECT (SELECT object FROM cluster_upload_parts WHERE upload = $1 AND start = $4) AS known
           FROM cluster_uploads WHERE id = $1 AND takes AND claimed_by IS NULL AND writer = $2
             AND extract(epoch FROM clock_timestamp()) * 1000 < $3::double precision FOR UPDATE`,
          [id, writer, namedMs + namedMaxMs, part.start],
        )
        if (row === undefined) return undefined
        // Its commit was not answered before.
        if (row.known === part.object) return null
        return put(ask, id, part)
      }),
    )
  }

  /** Parts from a place on are gone. Resolves with their objects. */
  cutParts(id: string, from: number, writer: number, client: string | undefined): Promise<string[]> {
    return this.#callFor(client, () =>
      this.#sessions.transaction(begin, async (ask) => {
        const locked = 'SELECT id FROM cluster_uploads WHERE id = $1 AND takes AND writer = $2 FOR UPDATE'
        if ((await ask(locked, [id, writer])).length === 0) return []
        const gone = await ask<{ object: string; size: string }>(
          'DELETE FROM cluster_upload_parts WHERE upload = $1 AND start >= $2 RETURNING object, size',
          [id, from],
        )
        const bytes = gone.reduce((sum, { size }) => sum + Number(size), 0)
        await ask(
          'UPDATE cluster_uploads SET cut = cut + 1, bytes = bytes - $2, files = files - $3 WHERE id = $1',
          [id, bytes, gone.length],
        )
        return gone.map(({ object }) => object)
      }),
    )
  }

  /** All parts, in their order. */
  async parts(id: string): Promise<UploadPart[]> {
    const rows = await this.#rows(
      'SELECT start, size, object FROM cluster_upload_parts WHERE upload = $1 ORDER BY start',
      [id],
    )
    return rows.map(({ start, size, object }) => ({
      start: Number(start),
      size: Number(size),
      object: String(object),
    }))
  }

  /** Parts of one upload, or of all, that are needed no more because it is over or gone. Resolves with their objects. */
  async dropParts(id?: string): Promise<{ readonly upload: string; readonly object: string }[]> {
    const rows = await this.#rows(
      `DELETE FROM cluster_upload_parts p WHERE ($1::text IS NULL OR upload = $1)
         AND NOT EXISTS (SELECT FROM cluster_uploads u WHERE u.id = p.upload AND u.kind = 0) RETURNING upload, object`,
      [id ?? null],
    )
    return rows.map(({ upload, object }) => ({ upload: String(upload), object: String(object) }))
  }

  /** Which of these objects are parts. */
  async areParts(
    uploads: readonly string[],
  ): Promise<{ readonly objects: ReadonlySet<string>; readonly nowMs: number }> {
    const rows = await this.#rows(
      `SELECT object, extract(epoch FROM clock_timestamp()) * 1000 AS now_ms FROM cluster_upload_parts WHERE upload = ANY($1)
       UNION ALL SELECT '', extract(epoch FROM clock_timestamp()) * 1000`,
      [uploads],
    )
    return { objects: new Set(rows.map(({ object }) => String(object))), nowMs: Number(rows[0]?.now_ms) }
  }

  /** All that are not over. */
  async open(): Promise<UploadCounts[]> {
    const rows = await this.#rows('SELECT id, client, paid, bytes, files FROM cluster_uploads WHERE kind = 0')
    return rows.map(({ id, client, paid, bytes, files }) => ({
      id: String(id),
      client: client === null ? undefined : String(client),
      paid: paid === true,
      bytes: Number(bytes),
      files: Number(files),
    }))
  }

  /** Those whose end was ordered, or begun by a process that is silent: nobody else ends them. By their ids, from one on. */
  async left(limit: number, after: string): Promise<string[]> {
    const rows = await this.#rows(
      `SELECT id FROM cluster_uploads WHERE (ordered OR claimed_by IS NOT NULL) AND kind = 0
         AND (claimed_until IS NULL OR claimed_until < clock_timestamp()) AND id > $2 ORDER BY id LIMIT $1`,
      [limit, after],
    )
    return rows.map(({ id }) => String(id))
  }

  /** Uploads of a kind that are due now or, with `isAll`, ever; the first due first. Those being put together are left out. */
  async due(kind: number, limit: number, isAll = false): Promise<UploadRow[]> {
    const rows = await this.#rows(
      `SELECT ${uploadColumns} FROM cluster_uploads u WHERE kind = $1 AND claimed_by IS NULL
         AND ($3 OR due_ms < extract(epoch FROM clock_timestamp()) * 1000) ORDER BY due_ms LIMIT $2`,
      [kind, limit, isAll],
    )
    return rows.map(uploadRowOf)
  }

  /** Whose money is under way; by their ids, from one on. */
  async owing(limit: number, after: string): Promise<UploadRow[]> {
    const rows = await this.#rows(
      `SELECT ${uploadColumns} FROM cluster_uploads u
       WHERE owes AND claimed_by IS NULL AND id > $2 ORDER BY id LIMIT $1`,
      [limit, after],
    )
    return rows.map(uploadRowOf)
  }

  async count(kind: number): Promise<number> {
    const [row] = await this.#rows('SELECT count(*) AS count FROM cluster_uploads WHERE kind = $1', [kind])
    return Number(row?.count)
  }

  close(): Promise<void> {
    return withinTime(this.clock, 1000, this.#sessions.close(), undefined)
  }

  #rows(text: string, values: readonly unknown[] = []): Promise<DatabaseRow[]> {
    return this.#call(() => this.#sessions.ask<DatabaseRow>(text, values))
  }

  #rowsFor(client: string | undefined, text: string, values: readonly unknown[]): Promise<DatabaseRow[]> {
    return this.#callFor(client, () => this.#sessions.ask<DatabaseRow>(text, values))
  }

  /** In a turn of this client. Who waits for it for too long is refused, which says nothing about the database. */
  async #callFor<T>(client: string | undefined, run: () => Promise<T>): Promise<T> {
    const slot = await this.#clients.waitFor(client, 2 * this.answerMs, this.clock)
    if (isRefusal(slot)) throw crowded
    try {
      return await this.#call(run)
    } finally {
      slot()
    }
  }

  async #call<T>(run: () => Promise<T>): Promise<T> {
    const outcome = await this.#calls.call(run)
    if (outcome === undefined) throw away
    return outcome.answer
  }
}

const away = new EngineAway(refuse('busy', 'self', 'the database of the cluster does not answer'))

const crowded = new EngineAway(refuse('busy', 'self', 'too many changes of uploads wait: try again'))

const updated = `UPDATE cluster_uploads SET body = $2, kind = $3, due_ms = $4, takes = $5, ordered = $6, owes = $7, client = $8,
  paid = $9, version = version + 1`

function valuesOf({ body, kind, dueMs, takes, ordered, owes, client, paid }: UploadFacts): unknown[] {
  return [body, kind, Math.floor(dueMs), takes, ordered, owes, client ?? null, paid]
}

/** Changes the rows of a part. The upload is locked. */
async function put(
  ask: AskDatabase,
  id: string,
  { start, size, object }: UploadPart,
): Promise<string | null> {
  const [before] = await ask<{ object: string; size: string }>(
    'SELECT object, size FROM cluster_upload_parts WHERE upload = $1 AND start = $2',
    [id, start],
  )
  await ask(
    `WITH counted AS (
       UPDATE cluster_uploads SET seq = seq + 1, bytes = bytes + $4, files = files + $5 WHERE id = $1 RETURNING seq)
     INSERT INTO cluster_upload_parts (upload, start, size, object, seq) SELECT $1, $2, $3, $6, seq FROM counted
     ON CONFLICT (upload, start) DO UPDATE SET size = excluded.size, object = excluded.object, seq = excluded.seq`,
    [id, start, size, size - Number(before?.size ?? 0), before === undefined ? 1 : 0, object],
  )
  return before?.object ?? null
}
