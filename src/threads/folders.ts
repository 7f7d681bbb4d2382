import { join, resolve } from 'node:path'
import { moderationPath } from '../moderation/moderation-messages.js'
import type { Settings } from './thread-settings.js'

/** Folders below DATA_PATH, each with one owner. */
export function folders({
  server,
}: Settings<'server'>): Record<
  | 'root'
  | 'catalog'
  | 'blobs'
  | 'segments'
  | 'pins'
  | 'manifests'
  | 'agenda'
  | 'proofs'
  | 'webhooks'
  | 'exports'
  | 'moderation'
  | 'devnet'
  | 'history'
  | 'tier'
  | 'neighbours'
  | 'keys'
  | 'tls',
  string
> {
  const root = resolve(server.dataPath)
  return {
    root,
    catalog: join(root, 'catalog'),
    blobs: join(root, 'blobs'),
    segments: join(root, 'segments'),
    pins: join(root, 'pins'),
    manifests: join(root, 'manifests'),
    agenda: join(root, 'agenda'),
    proofs: join(root, 'proofs'),
    webhooks: join(root, 'webhooks'),
    exports: join(root, 'parquet'),
    moderation: moderationPath(root),
    devnet: join(root, 'devnet'),
    history: join(root, 'history'),
    tier: join(root, 'tier'),
    neighbours: join(root, 'neighbours'),
    keys: join(root, 'keys'),
    tls: join(root, 'tls'),
  }
}
