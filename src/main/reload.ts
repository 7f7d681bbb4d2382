import { isDeepStrictEqual } from 'node:util'
import { type Config, listTables, type SettingsTable } from '../../config/read.js'
import type { Setting } from '../../config/setting.js'
import { type Log, setLogLevel } from '../actor/log.js'
import type { RefusedPair } from '../certificates/current.js'
import type { SettingsNews } from '../threads/thread-news.js'
import { settingsOf, type ThreadKind } from '../threads/thread-settings.js'
import { adminKey } from './admin-key-file.js'
import type { RunningThreads } from './running-threads.js'
import type { TlsPlaces } from './tls-place.js'

/** What became of settings that were read again. Plain: it is written into a file. */
export interface ReloadOutcome {
  /** Names of settings that differ from those in use before, and are in use now. */
  readonly used: readonly string[]
  /** Names of settings that differ from those of the start, and are used from the next start on. */
  readonly waiting: readonly string[]
  /** Why the settings cannot be used, each with its name. Not empty: all settings are as they were. */
  readonly wrong: readonly string[]
  /** Certificates that cannot be used. What was in use in their place stays. */
  readonly refused: readonly RefusedPair[]
  /** Other certificates are in use than before. */
  readonly isOtherCertificate: boolean
}

/** The kinds of threads that use new settings, each by the file of `workers/` that has its name. */
const usingKinds: readonly ThreadKind[] = ['admission', 'edge', 'cashier', 'upload', 'payment']
/** Those that have orders for the operator: they get the key that opens these. */
const operatedKinds: ReadonlySet<ThreadKind> = new Set(['edge', 'upload', 'payment'])

type Values = Readonly<Record<string, unknown>>

function valuesIn(config: Config, table: string): Values {
  return config[table as SettingsTable] as Values
}

function allSettings(): {
  readonly table: string
  readonly key: string
  readonly setting: Setting<unknown>
}[] {
  return Object.entries(listTables()).flatMap(([table, rows]) =>
    Object.entries(rows).map(([key, setting]) => ({ table, key, setting })),
  )
}

/** The names of settings that differ, in two groups. */
export function changedSettings(
  before: Config,
  after: Config,
): { readonly reloadable: readonly string[]; readonly others: readonly string[] } {
  const changed = allSettings().filter(
    ({ table, key }) => !isDeepStrictEqual(valuesIn(before, table)[key], valuesIn(after, table)[key]),
  )
  const names = (isReloadable: boolean): string[] =>
    changed.filter(({ setting }) => setting.reloadable === isReloadable).map(({ setting }) => setting.env)
  return { reloadable: names(true), others: names(false) }
}

/** The settings in use, with the reloadable ones of those that were read now. */
export function withReloadable(inUse: Config, read: Config): Config {
  const tables = Object.entries(listTables()).map(([table, rows]) => {
    const keys = Object.entries(rows).flatMap(([key, setting]) => (setting.reloadable ? [key] : []))
    const fresh = keys.map((key) => [key, valuesIn(read, table)[key]])
    return [table, { ...valuesIn(inUse, table), ...Object.fromEntries(fresh) }]
  })
  return Object.fromEntries(tables) as unknown as Config
}

/** Makes `Program.reload`. */
export function reloading(parts: ReloadingParts): Reloading['reload'] {
  const one = new Reloading(parts)
  return (settings) => one.reload(settings)
}

export interface ReloadingParts {
  /** The settings as they were read at the start. */
  readonly started: Config
  /** The settings that the threads have, reduced to what this machine allows; and the key of the operator's orders. */
  readonly live: { config: Config; key: string }
  readonly threads: Pick<RunningThreads, 'tell' | 'setLogLevel'>
  readonly tls: Pick<TlsPlaces, 'reload'>
  readonly log: Pick<Log, 'info' | 'warn' | 'error'>
}

/**
 * Takes up certificates and settings while the program runs. Settings that are `reloadable` in their definition are sent to the
 * threads that use them; the others wait for the next start. One wrong setting keeps all of them from being used.
 */
export class Reloading {
  #read: Config

  constructor(private readonly parts: ReloadingParts) {
    this.#read = parts.started
  }

  /** `settings`: as they were read now, or every error in them. */
  reload(settings: Config | readonly string[]): ReloadOutcome {
    const { tls, log, started } = this.parts
    const certificates = tls.reload()
    const taken = 'server' in settings ? this.#take(settings) : { wrong: settings }
    if ('wrong' in taken || !('server' in settings)) {
      const wrong = 'wrong' in taken ? taken.wrong : []
      log.error({ wrong }, 'the settings are wrong: none of them was changed')
      return { used: [], waiting: [], wrong, ...certificates }
    }
    const { used } = taken
    const waiting = changedSettings(started, settings).others
    log.info({ used }, 'certificates and settings were read again')
    if (waiting.length > 0) log.warn({ settings: waiting }, 'these settings are used from the next start on')
    return { used, waiting, wrong: [], ...certificates }
  }

  /** Nothing is changed before all that may be wrong was read. */
  #take(settings: Config): { readonly used: readonly string[] } | { readonly wrong: readonly string[] } {
    const { live } = this.parts
    const next = withReloadable(live.config, settings)
    let text: string
    try {
      text = adminKey(next)
    } catch (error) {
      // Only what the operator has to know is thrown there.
      return { wrong: [(error as Error).message] }
    }
    const named = changedSettings(this.#read, settings).reloadable
    const isNamed = named.some((name) => name.startsWith('ADMIN_API_KEY'))
    const used = text === live.key || isNamed ? named : [...named, 'the admin key']
    live.key = text
    live.config = next
    this.#read = settings
    this.#tell()
    return { used }
  }

  #tell(): void {
    const { threads, live } = this.parts
    for (const kind of usingKinds) {
      const settings = settingsOf(live.config, kind)
      const opening = operatedKinds.has(kind) ? { adminKey: live.key } : {}
      threads.tell(kind, 'settings', { settings, ...opening } satisfies SettingsNews<ThreadKind>)
    }
    const { logLevel } = live.config.server
    threads.setLogLevel(logLevel)
    setLogLevel(logLevel)
  }
}
