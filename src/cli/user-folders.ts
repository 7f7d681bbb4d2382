import { homedir } from 'node:os'
import { isAbsolute, join } from 'node:path'

const kinds = {
  config: { variable: 'XDG_CONFIG_HOME', below: ['.config'] },
  state: { variable: 'XDG_STATE_HOME', below: ['.local', 'state'] },
} as const

/**
 * A folder of ours for this user (XDG Base Directory Specification 0.8): it need not exist. Undefined where the user has no home,
 * as a user without an entry in the list of users has none in a container.
 */
export function userFolder(kind: keyof typeof kinds): string | undefined {
  const { variable, below } = kinds[kind]
  const given = process.env[variable]
  // A relative path is invalid there, and ignored.
  if (given !== undefined && isAbsolute(given)) return join(given, 'sluice')
  try {
    return join(homedir(), ...below, 'sluice')
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ERR_SYSTEM_ERROR') return undefined
    throw error
  }
}
