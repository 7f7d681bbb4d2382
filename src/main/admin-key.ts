import { randomBytes } from 'node:crypto'
import { join, resolve } from 'node:path'
import type { Config } from '../../config/read.js'
import type { Log } from '../actor/log.js'
import { readSmall } from '../store/folder.js'
import { keptSecret } from '../store/secret-file.js'
import { folders } from './folders.js'

const keyShape = /^[\x21-\x7e]{8,512}$/

/**
 * The key of the admin routes: from its file, else from its setting, else one of this machine's own, made at the
 * first start and kept below the folder of keys, readable by nobody else. The log says in which file it is, never the
 * key itself. Throws an error for the operator where a file holds no key.
 */
export function adminKey(config: Config, log?: Log): string {
  const { adminApiKey, adminApiKeyFile } = config.moderation
  if (adminApiKeyFile !== undefined) {
    const path = resolve(adminApiKeyFile)
    return readKey(path, 'ADMIN_API_KEY_FILE', () => readSmall(path))
  }
  if (adminApiKey !== undefined) return adminApiKey
  const path = join(folders(config).keys, 'admin.key')
  const make = (): string => `${randomBytes(32).toString('base64url')}\n`
  const key = readKey(path, 'the admin key', () => keptSecret(path, make))
  log?.info({ path }, 'the admin key is in this file; ADMIN_API_KEY or ADMIN_API_KEY_FILE would replace it')
  return key
}

function readKey(path: string, what: string, read: () => string): string {
  let text: string
  try {
    text = read().trim()
  } catch (error) {
    throw new Error(`${what}: ${path} cannot be read (${(error as NodeJS.ErrnoException).code})`)
  }
  if (!keyShape.test(text))
    throw new Error(`${what}: ${path} must hold 8 to 512 printable characters without blanks`)
  return text
}
