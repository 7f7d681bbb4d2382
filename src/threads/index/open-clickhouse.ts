import { systemClock } from '../../actor/clock.js'
import { ClickhouseClient } from '../../clickhouse/clickhouse-client.js'
import { readSmall } from '../../store/folder.js'
import type { Settings } from '../thread-settings.js'

/** A batch of rows may take so long to be written. */
const writeMs = 120_000
/** Statements of one thread at once, of which ClickHouse has 100 for all by default; that wait; and of one client. */
const [slots, waitingMax, clientMax] = [8, 256, 64] as const
const passwordShape = /^[\x20-\x7e]{1,512}$/

/** The ClickHouse that the settings name; undefined: none. Throws where its password cannot be read. */
export function openClickhouse({ clickhouse }: Settings<'clickhouse'>): ClickhouseClient | undefined {
  const { url, user, timeoutMs } = clickhouse
  if (url === undefined) return undefined
  const { origin, pathname } = new URL(url)
  const database = decodeURIComponent(pathname.replaceAll('/', '')) || 'default'
  const password = passwordOf(clickhouse)
  return new ClickhouseClient(
    { url: origin, database, user, password, timeoutMs, writeMs, slots, waitingMax, clientMax },
    systemClock,
  )
}

function passwordOf({ password, passwordFile }: Settings<'clickhouse'>['clickhouse']): string {
  if (passwordFile === undefined) return password ?? ''
  let text: string
  try {
    text = readSmall(passwordFile).replace(/\r?\n$/, '')
  } catch (error) {
    throw new Error(
      `CLICKHOUSE_PASSWORD_FILE: ${passwordFile} cannot be read (${(error as NodeJS.ErrnoException).code})`,
    )
  }
  if (!passwordShape.test(text))
    throw new Error(`CLICKHOUSE_PASSWORD_FILE: ${passwordFile} must hold one line of printable characters`)
  return text
}
