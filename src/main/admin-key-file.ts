import { randomBytes } from 'node:crypto'
import type { Config } from '../../config/read.js'
import type { Log } from '../actor/log.js'
import { readSmall } from '../store/folder.js'
import { keptSecret } from '../store/secret-file.js'
import { adminKeyPath } from '../threads/key-paths.js'

const keyShape = /^[\x21-\x7e]{8,512}$/

/** 256 bits of chance, and a line feed. */
export function newAdminKey(): string {
  return `${randomBytes(32).toString('base64url')}\n`
}

/**
 * The key of the admin routes: from its file, else from its setting. Without both, a key is made at the first start and kept
 * below the folder of keys, readable by its owner only. The log names the file, never the key. Throws an error for the operator
 * where a file holds no key.
 */
export function adminKey(config: Config, log?: Log): string {
  const { adminApiKey, adminApiKeyFile } = config.moderation
  const path = adminKeyPath(config)
  if (adminApiKeyFile !== undefined) return readKey(path, 'ADMIN_API_KEY_FILE', () => readSmall(path))
  if (adminApiKey !== undefined) return adminApiKey
  const key = readKey(path, 'the admin key', () => keptSecret(path, newAdminKey))
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
