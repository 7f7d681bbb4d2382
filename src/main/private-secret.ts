import { randomBytes } from 'node:crypto'
import { join } from 'node:path'
import type { Config } from '../../config/read.js'
import { keptSecret } from '../store/secret-file.js'
import { folders } from '../threads/folders.js'

/** The secret that services of one operator have in common: as it is set, or as it was made at the first start. */
export function privateSecret(config: Config): string {
  const path = join(folders(config).keys, 'private-route.secret')
  return config.services.privateRouteSecret ?? keptSecret(path, () => randomBytes(32).toString('base64url'))
}
