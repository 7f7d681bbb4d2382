import { join, resolve } from 'node:path'
import type { Config } from '../../config/read.js'
import { folders } from './folders.js'

/** File of the admin key; not used where ADMIN_API_KEY is set. */
export function adminKeyPath(config: Config): string {
  const { adminApiKeyFile } = config.moderation
  return adminApiKeyFile === undefined ? join(folders(config).keys, 'admin.key') : resolve(adminApiKeyFile)
}

/** File of the key that signs heads of the ledger. */
export function headKeyPath(config: Config): string {
  return join(folders(config).keys, 'ledger.pem')
}

/** File of the upload service's wallet. */
export function uploadWalletPath(config: Config): string {
  const { walletFile } = config.uploads
  return walletFile === undefined ? join(folders(config).keys, 'upload.json') : resolve(walletFile)
}
