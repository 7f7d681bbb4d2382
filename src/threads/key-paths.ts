import { join, resolve } from 'node:path'
import type { KeyPlaces } from '../attest/keys.js'
import { folders } from './folders.js'
import type { Settings } from './thread-settings.js'

/** File of the admin key; not used where ADMIN_API_KEY is set. */
export function adminKeyPath(config: Settings<'moderation' | 'server'>): string {
  const { adminApiKeyFile } = config.moderation
  return adminApiKeyFile === undefined ? join(folders(config).keys, 'admin.key') : resolve(adminApiKeyFile)
}

/** File of the key that signs heads of the ledger. */
export function headKeyPath(config: Settings<'server'>): string {
  return join(folders(config).keys, 'ledger.pem')
}

/** File of the upload service's wallet. */
export function uploadWalletPath(config: Settings<'server' | 'uploads'>): string {
  const { walletFile } = config.uploads
  return walletFile === undefined ? join(folders(config).keys, 'upload.json') : resolve(walletFile)
}

/** Where the key is that signs answers. */
export function signingKey(config: Settings<'server'>): KeyPlaces {
  const { root, keys } = folders(config)
  const { observerKeypairPath, observerPrivateKey, httpsigKeyFile } = config.server
  return {
    keyFile: httpsigKeyFile === undefined ? join(keys, 'httpsig.pem') : resolve(root, httpsigKeyFile),
    ...(observerKeypairPath === undefined ? {} : { observerKeypairPath: resolve(observerKeypairPath) }),
    ...(observerPrivateKey === undefined ? {} : { observerPrivateKey }),
  }
}

/** Path of the key that signs items whose uploader has signed nothing. */
export function itemKeyPath(config: Settings<'server'>): string {
  return join(folders(config).keys, 'unsigned-items.key')
}
