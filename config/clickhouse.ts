import { custom, maybeText, readUrl, secret, text, whole } from './setting.js'

/** The index of stable heights in ClickHouse, which several machines share. */
export const clickhouse = {
  url: custom<string | undefined>({
    env: 'CLICKHOUSE_URL',
    allowed: 'http(s) address',
    defaultText: '',
    default: undefined,
    read: readUrl,
    why:
      'ClickHouse with the index of stable heights, in the tables of ar-io-node; its path names the database ' +
      '(default). Unset: GraphQL is answered by the index of this machine alone.',
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
  timeoutMs: whole({
    env: 'CLICKHOUSE_TIMEOUT_MS',
    default: 2000,
    min: 50,
    max: 60_000,
    why: 'Until an answer of ClickHouse to a query. After three failures in a row it is left alone for 1 to 30 seconds.',
  }),
}

/** What contradicts itself. */
export function clickhouseFaults({
  url,
  password,
  passwordFile,
}: {
  readonly url: string | undefined
  readonly password: string | undefined
  readonly passwordFile: string | undefined
}): string[] {
  const isBoth = password !== undefined && passwordFile !== undefined
  return [
    ...(isBoth ? ['CLICKHOUSE_PASSWORD and CLICKHOUSE_PASSWORD_FILE exclude each other: set one'] : []),
    ...(url === undefined && passwordFile !== undefined
      ? ['CLICKHOUSE_PASSWORD_FILE needs CLICKHOUSE_URL']
      : []),
  ]
}
