import type { CertificateNews } from './service-listeners.js'
import type { SettingsOf, ThreadKind } from './thread-settings.js'

/**
 * What the main thread says to a thread after settings were read again: all settings of this kind of thread. Those that are not
 * `reloadable` are as they were at the start of the program.
 */
export interface SettingsNews<Kind extends ThreadKind> {
  readonly settings: SettingsOf<Kind>
  /** Opens the orders for the operator. Only for threads that have some. */
  readonly adminKey?: string
}

/** What the main thread says to a thread that listens. */
export type ThreadNews<Kind extends ThreadKind> = CertificateNews | SettingsNews<Kind>
