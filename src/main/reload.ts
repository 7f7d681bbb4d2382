import { isDeepStrictEqual } from 'node:util'
import { type Config, listTables, type SettingsTable } from '../../config/read.js'

/** Settings that differ, by whether this program can use them without a new start. */
export interface SettingChanges {
  /** In use now. */
  readonly used: readonly string[]
  /** In use after the next start. */
  readonly waiting: readonly string[]
}

/** What takes effect while the program runs. */
const reloadable: ReadonlySet<string> = new Set(['LOG_LEVEL'])

/** Compares the settings that are in use with those that were read now. */
export function reloadedSettings(inUse: Config, read: Config): SettingChanges {
  const changed = Object.entries(listTables()).flatMap(([table, rows]) =>
    Object.entries(rows).flatMap(([key, { env }]) => {
      const [before, after] = [inUse, read].map(
        (one) => (one[table as SettingsTable] as Record<string, unknown>)[key],
      )
      return isDeepStrictEqual(before, after) ? [] : [env]
    }),
  )
  return {
    used: changed.filter((name) => reloadable.has(name)),
    waiting: changed.filter((name) => !reloadable.has(name)),
  }
}
