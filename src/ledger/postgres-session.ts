import { type ClientBase, Pool, type PoolClient, type QueryResultRow } from 'pg'

/** A statement that is prepared once for each connection, under its name. */
export interface PreparedStatement {
  readonly name: string
  readonly text: string
}

/** A statement that each connection prepares once, by its name. */
export function statement(name: string, text: string): PreparedStatement {
  return { name: `ledger_${name}`, text }
}

/** Rows of an answer. Numbers of 64 bits are decimal text. */
export type AskDatabase = <Row extends QueryResultRow>(
  statement: PreparedStatement | string,
  values?: readonly unknown[],
) => Promise<Row[]>

/** Messages of the client without a code, where a connection was lost or could not be made. */
const lostWords =
  /connection terminated|not queryable|timeout (?:exceeded when trying to connect|expired)|client was closed|query read timeout/i

/** A failure with the code that the rest of the program goes by. */
export function postgresFault(error: unknown): unknown {
  if (!(error instanceof Error) || 'code' in error || !lostWords.test(error.message)) return error
  return Object.assign(error, { code: 'CONNECTION_CLOSED' })
}

/** A connection that cannot be made, whatever the server or TLS states as the reason, is a database that is away. */
function connectFault(error: unknown): unknown {
  return error instanceof Error ? Object.assign(error, { code: 'CONNECTION_CLOSED' }) : error
}

/** What a client wrote was refused (SQLSTATE class 22): that says nothing about the database. */
export function isRefusedData(error: unknown): boolean {
  return error instanceof Error && 'code' in error && String(error.code).startsWith('22')
}

function asking(client: Pick<ClientBase, 'query'>): AskDatabase {
  return async <Row extends QueryResultRow>(
    statement: PreparedStatement | string,
    values: readonly unknown[] = [],
  ) => {
    const wanted = typeof statement === 'string' ? { text: statement } : statement
    try {
      const { rows } = await client.query<Row>({ ...wanted, values: [...values] })
      return rows
    } catch (error) {
      throw postgresFault(error)
    }
  }
}

/** Connections to one database. A connection that was lost is never used again. */
export class PostgresSessions {
  readonly #pool: Pool
  #closing: Promise<void> | undefined
  readonly ask: AskDatabase

  /**
   * `answerMs`: a database that does not answer for so long is gone. `idleMs`: a transaction of ours that asks nothing for
   * so long is ended by the server, because a process that stands still must not hold its locks (0: never).
   */
  constructor(url: string, connectionsMax: number, answerMs: number, idleMs = 0) {
    this.#pool = new Pool({
      ...(idleMs > 0 ? { idle_in_transaction_session_timeout: idleMs } : {}),
      connectionString: url,
      max: connectionsMax,
      keepAlive: true,
      connectionTimeoutMillis: Math.min(10_000, answerMs),
      query_timeout: answerMs,
    })
    // A broken connection fails the query that is under way, or the next one. Between two queries nobody waits for it: then only
    // this event is emitted, and the pool makes another connection.
    this.#pool.on('error', () => undefined)
    this.#pool.on('connect', (client) => client.on('error', () => undefined))
    this.ask = async (statement, values) => {
      const client = await this.#connected()
      try {
        const rows = await asking(client)(statement, values)
        client.release()
        return rows as never
      } catch (error) {
        client.release(true)
        throw error
      }
    }
  }

  async #connected(): Promise<PoolClient> {
    try {
      return await this.#pool.connect()
    } catch (error) {
      throw connectFault(error)
    }
  }

  /** Runs `act` between `begin` and COMMIT, on one connection; ROLLBACK where it rejects. */
  async transaction<T>(begin: string, act: (ask: AskDatabase) => Promise<T>): Promise<T> {
    const client = await this.#connected()
    const ask = asking(client)
    try {
      await ask(begin)
      const done = await act(ask)
      await ask('COMMIT')
      client.release()
      return done
    } catch (error) {
      // Without its connection a transaction is rolled back by the server, also where the connection takes no more queries.
      const isWell = await ask('ROLLBACK').then(
        () => true,
        () => false,
      )
      client.release(!isWell)
      throw error
    }
  }

  /** Closes once; repeated calls share the promise. */
  close(): Promise<void> {
    this.#closing ??= this.#pool.end()
    return this.#closing
  }
}
