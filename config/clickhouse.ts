import { custom, flag, maybeText, readUrl, secret, text, whole } from './setting.js'

/** The index of stable heights in ClickHouse, which several machines share. */
export const clickhouse = {
  url: custom<string | undefined>({
    env: 'CLICKHOUSE_URL',
    allowed: 'http(s) address',
    defaultText: '',
    default: undefined,
    read: readUrl,
    why:
      'ClickHouse with the index of older blocks, in the tables of ar-io-node; its path names the database (default). ' +
      'GraphQL reads from it the heights that sluice index push has recorded there, and all others from the index of ' +
      'this machine. Unset: from that index alone.',
  }),
  user: text({
    env: 'CLICKHOUSE_USER',
    default: 'default',
    shape: /^[\x21-\x7e]{1,128}$/,
    allowed: 'one word',
    why: 'The user at ClickHouse. To answer GraphQL it needs SELECT on the tables; to fill them INSERT and CREATE, too.',
  }),
  password: secret(
    maybeText({
      env: 'CLICKHOUSE_PASSWORD',
      shape: /^[\x20-\x7e]{1,512}$/,
      allowed: '1 to 512 printable characters',
      why: 'Its password; without it and CLICKHOUSE_PASSWORD_FILE an empty one. It is never logged.',
    }),
  ),
  passwordFile: maybeText({
    env: 'CLICKHOUSE_PASSWORD_FILE',
    allowed: 'a path',
    why: 'A file with the password, instead of CLICKHOUSE_PASSWORD.',
  }),
  push: flag({
    env: 'CLICKHOUSE_PUSH',
    default: false,
    why:
      'true: this gateway writes the stable heights of its index into ClickHouse as they come. With CLUSTER_DATABASE_URL one ' +
      'gateway of all that have it does, and another one goes on within ten seconds where it ends.',
  }),
  timeoutMs: whole({
    env: 'CLICKHOUSE_TIMEOUT_MS',
    default: 2000,
    min: 50,
    max: 60_000,
    why:
      'Until an answer of ClickHouse to a query; ClickHouse itself ends it after 0.7 of that. After three failures in a row ' +
      'it is left alone for 1 to 30 seconds, and queries that need it are answered 503.',
  }),
}

/** What contradicts itself. */
export function clickhouseFaults({
  url,
  push,
  password,
  passwordFile,
}: {
  readonly push: boolean
  readonly url: string | undefined
  readonly password: string | undefined
  readonly passwordFile: string | undefined
}): string[] {
  const isBoth = password !== undefined && passwordFile !== undefined
  return [
    ...(url === undefined && push ? ['CLICKHOUSE_PUSH needs CLICKHOUSE_URL'] : []),
    ...(isBoth ? ['CLICKHOUSE_PASSWORD and CLICKHOUSE_PASSWORD_FILE exclude each other: set one'] : []),
    ...(url === undefined && passwordFile !== undefined
      ? ['CLICKHOUSE_PASSWORD_FILE needs CLICKHOUSE_URL']
      : []),
  ]
}
