import { absentHere, foreign } from './foreign.js'
import { foreignSettings, listSettings, readConfig } from './read.js'

/** What becomes of a setting of the network's reference gateway here. */
export type PeerSettingFate =
  /** It has the same name and meaning here. */
  | 'same'
  /** Nothing here needs it. */
  | 'not needed'
  /** What it does cannot be done here. */
  | 'not there'
  /** No table knows it: it is for something beside the gateway, or misspelt. */
  | 'unknown'

/** Names that are often set for other programs, too: they are named where an operator moves over, and not at each start. */
const beside: readonly (readonly [names: RegExp, fate: PeerSettingFate, why: string])[] = [
  [/^AWS_/, 'not there', 'of buckets only that of CONTENT_STORE=s3 is read'],
  [/^CLICKHOUSE_/, 'not needed', 'it is for the importer or the server; sluice index push fills the tables'],
  [
    /^(LOCAL_DATASETS_PATH|PARQUET_DATA_PATH|ETL_STAGING_PATH)$/,
    'not needed',
    'exports lie below DATA_PATH/parquet',
  ],
  [
    /^(CORE|ENVOY|REDIS|OBSERVER|COMPOSE|WATCHTOWER|GRAFANA|PROMETHEUS)_/,
    'not needed',
    'it is for another container',
  ],
]

export interface PeerSetting {
  readonly name: string
  readonly value: string
  readonly fate: PeerSettingFate
  /** The reason, where the fate is not `same`. */
  readonly why?: string
}

export interface AdoptedSettings {
  /** In the order of the file; each name once, with its last value. */
  readonly settings: readonly PeerSetting[]
  /** What is wrong with them as settings of this program, one error a line; the values of secrets are not in it. */
  readonly wrong: readonly string[]
  /** Words of settings that have no effect here, with the reason. */
  readonly ignored: readonly { readonly setting: string; readonly why: string }[]
}

/**
 * Reads a file of environment variables as Docker Compose does: NAME=VALUE a line, `#` comments, quotes around a value, and
 * `export` in front. Lines that are none of these are named in `faults` by their numbers (from 1).
 */
export function readEnvironmentFile(text: string): { values: Map<string, string>; faults: number[] } {
  const values = new Map<string, string>()
  const faults: number[] = []
  for (const [at, line] of text
    .replace(/^\uFEFF/, '')
    .split(/\r?\n/)
    .entries()) {
    if (/^\s*(#|$)/.test(line)) continue
    const [, name, rest = ''] = /^\s*(?:export\s+)?([A-Za-z_][A-Za-z0-9_]*)\s*=(.*)$/.exec(line) ?? []
    if (name === undefined) faults.push(at + 1)
    else values.set(name, plainValue(rest.trim()))
  }
  return { values, faults }
}

function plainValue(text: string): string {
  const [, , quoted] = /^(["'])(.*?)\1\s*(?:#.*)?$/.exec(text) ?? []
  return quoted ?? text.replace(/(^|\s+)#.*$/, '').trim()
}

/** What each variable of the reference gateway is here, and whether the result is a configuration. */
export function adoptSettings(values: ReadonlyMap<string, string>): AdoptedSettings {
  const known = new Set(listSettings().map(({ env }) => env))
  const settings = [...values].map(([name, value]): PeerSetting => {
    if (known.has(name)) return { name, value, fate: 'same' }
    const why = foreign.get(name)
    if (why !== undefined)
      return { name, value, fate: absentHere.has(name) ? 'not there' : 'not needed', why }
    const [, fate = 'unknown', besideWhy = 'no setting has this name'] =
      beside.find(([names]) => names.test(name)) ?? []
    return { name, value, fate, why: besideWhy }
  })
  const ours = ownSettings(settings)
  const read = readConfig(ours, {})
  const ignored = foreignSettings(ours)
  return { settings, wrong: Array.isArray(read) ? read : [], ignored }
}

/** The settings that mean something here, with the network that the reference gateway is always on. */
export function ownSettings(settings: readonly PeerSetting[]): Record<string, string> {
  const same = settings.filter(({ fate, value }) => fate === 'same' && value !== '')
  return { NETWORK: 'mainnet', ...Object.fromEntries(same.map(({ name, value }) => [name, value])) }
}
