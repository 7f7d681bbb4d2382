import type { Change } from '../actor/log-ring.js'
import { parsedJson } from '../format/json.js'
import type { HistoryStore } from './history-store.js'

/** What a start says of itself. */
export interface ProgramStart {
  /** Versions of the program and of Node. */
  readonly versions: string
  /** Settings that are not their defaults: name to value. Secrets have no values here. */
  readonly settings: Readonly<Record<string, string>>
}

const settingsKey = 'settings'
/** There from a start on until a stop. */
const runningKey = 'running'

type Store = Pick<HistoryStore, 'putLine' | 'remember' | 'remembered'>

/** Notes a start, whether the run before was stopped, and which settings are others than then. Only inside `write`. */
export function noteStart(store: Store, { versions, settings }: ProgramStart, nowMs: number): void {
  const known = store.remembered(settingsKey)
  const before = (parsedJson(known ?? '{}') ?? {}) as Record<string, string>
  const wasEnded = store.remembered(runningKey) === 'yes' ? '; the run before had ended without a stop' : ''
  note(store, { kind: 'start', what: `started: ${versions}${wasEnded}` }, nowMs)
  if (known !== undefined)
    for (const what of settingChanges(before, settings)) note(store, { kind: 'start', what }, nowMs)
  store.remember(settingsKey, JSON.stringify(settings))
  store.remember(runningKey, 'yes')
}

/** Only inside `write`. */
export function noteStop(store: Store, nowMs: number): void {
  note(store, { kind: 'stop', what: 'stopped' }, nowMs)
  store.remember(runningKey, 'no')
}

function note(store: Store, change: Change, nowMs: number): void {
  store.putLine('changes', nowMs, 30, JSON.stringify({ time: new Date(nowMs).toISOString(), change }))
}

/** A line for each setting that is another one now. */
export function settingChanges(
  before: Readonly<Record<string, string>>,
  now: Readonly<Record<string, string>>,
): string[] {
  const names = [...new Set([...Object.keys(before), ...Object.keys(now)])].sort()
  return names
    .filter((name) => before[name] !== now[name])
    .map((name) => `${name}: ${before[name] ?? 'default'} -> ${now[name] ?? 'default'}`)
}
