import { homedir } from 'node:os'
import { isAbsolute, join } from 'node:path'
import { userBaseFolders } from '../../config/read.js'

/** Where they are unless the environment says otherwise, below the user's home. */
const below = { config: ['.config'], state: ['.local', 'state'] } as const

/**
 * A folder of ours for this user (XDG Base Directory Specification 0.8): it need not exist. Undefined where the user has no home,
 * as a user without an entry in the list of users has none in a container.
 */
export function userFolder(kind: keyof typeof below): string | undefined {
  const given = userBaseFolders()[kind]
  // A relative path is invalid there, and ignored.
  if (given !== undefined && isAbsolute(given)) return join(given, 'sluice')
  try {
    return join(homedir(), ...below[kind], 'sluice')
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ERR_SYSTEM_ERROR') return undefined
    throw error
  }
}
