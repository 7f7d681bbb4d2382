/**
 * The tables of the ledger in PostgreSQL, as steps that are taken once, in order. A step that has been released never changes.
 * Names sort by their bytes, as in the embedded ledger.
 */
export const migrations: readonly string[] = [
  `
  CREATE TABLE ledger_state (
    one boolean PRIMARY KEY CHECK (one),
    sequence bigint NOT NULL,
    version bigint NOT NULL,
    head bytea NOT NULL,
    time_ms bigint NOT NULL
  );
  INSERT INTO ledger_state VALUES (true, 0, 0, decode(repeat('00', 32), 'hex'), 0);
  CREATE TABLE ledger_transfers (
    sequence bigint PRIMARY KEY,
    id text COLLATE "C" NOT NULL UNIQUE,
    until_ms bigint NOT NULL,
    body text NOT NULL
  );
  CREATE INDEX ledger_due ON ledger_transfers (until_ms) WHERE until_ms > 0;
  CREATE TABLE ledger_endings (
    pending text COLLATE "C" PRIMARY KEY,
    sequence bigint NOT NULL
  );
  CREATE TABLE ledger_entries (
    account text COLLATE "C" NOT NULL,
    sequence bigint NOT NULL,
    PRIMARY KEY (account, sequence)
  );
  CREATE TABLE ledger_accounts (
    name text COLLATE "C" PRIMARY KEY,
    body text NOT NULL
  );
  CREATE TABLE ledger_records (
    kind text COLLATE "C" NOT NULL,
    key text COLLATE "C" NOT NULL,
    version bigint NOT NULL,
    value text NOT NULL,
    PRIMARY KEY (kind, key)
  );
  CREATE TABLE ledger_heads (
    sequence bigint PRIMARY KEY,
    body text NOT NULL
  );
  `,
  `
  ALTER TABLE ledger_state ADD COLUMN records bytea, ADD COLUMN records_version bigint;
  `,
]
