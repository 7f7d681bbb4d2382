/**
 * By hand, when a release is made: `node dist/test/cluster/former-release.js STATEMENTS` writes test/cluster/former-release.json,
 * so that the next release is compared with this one. STATEMENTS: the file that statement-log.ts wrote while the tests of several
 * machines ran.
 */
import { readFileSync, writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { clusterMigrations } from '../../src/cluster/cluster-schema.js'
import { migrations } from '../../src/ledger/postgres-schema.js'

/** What a release expects of PostgreSQL. */
export interface FormerRelease {
  /** Steps of its tables. */
  readonly cluster: readonly string[]
  readonly ledger: readonly string[]
  /** All that it sends, but for what makes or removes tables. */
  readonly statements: readonly string[]
}

export const formerPath = fileURLToPath(new URL('../../../test/cluster/former-release.json', import.meta.url))

const [statements] = process.argv.slice(2)
if (statements !== undefined && process.argv[1] === fileURLToPath(import.meta.url)) {
  const sent = readFileSync(statements, 'utf8').trimEnd().split('\n')
  const texts = sent.map((line) => (JSON.parse(line) as string).replace(/\s+/g, ' ').trim())
  const isOfTables = (text: string): boolean =>
    /\b(?:cluster|ledger)_[a-z]+/.test(text) && !/^(?:CREATE|DROP|ALTER|TRUNCATE)\b/.test(text)
  const former: FormerRelease = {
    cluster: clusterMigrations.map(({ forward }) => forward),
    ledger: migrations,
    statements: [...new Set(texts)].filter(isOfTables).sort(),
  }
  writeFileSync(formerPath, `${JSON.stringify(former, undefined, 2)}\n`)
}
