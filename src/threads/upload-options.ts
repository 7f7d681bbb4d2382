import { join } from 'node:path'
import { draining } from '../actor/stopping.js'
import { listedAddress } from '../proof/owner-address.js'
import type { BundlingRules } from '../upload/bundling/bundler-parts.js'
import type { FreeRules } from '../upload/records/free-pools.js'
import { folders } from './folders.js'
import type { Settings } from './thread-settings.js'

/** Messages under way from the upload service to one thread at most. */
export const uploadMailboxMax = 4096

/** Folders of the upload service: tables, the log of accepted items, parts of items that are not whole yet, waiting webhooks. */
export function uploadFolders(
  config: Settings<'server'>,
): Readonly<Record<'tables' | 'log' | 'parts' | 'webhooks', string>> {
  const { root } = folders(config)
  return {
    tables: join(root, 'uploads'),
    log: join(root, 'uploads', 'log'),
    parts: join(root, 'upload-parts'),
    webhooks: join(root, 'webhooks-uploads'),
  }
}

/** What a sandbox takes, and gives for free. */
const sandboxSizes = { item: 10 * 2 ** 20, freeItem: 5 * 2 ** 20, freeWallet: 100 * 2 ** 20 }

/** Log, tables, index and catalog of a small item take 2.7 KB on disk beyond its bytes. */
const itemOverheadBytes = 3072

/** Largest item that is taken. */
export function itemMaxBytes({ uploads }: Settings<'uploads'>): number {
  return uploads.sandbox ? sandboxSizes.item : uploads.itemMaxBytes
}

/** What is free. */
export function freeRules({ uploads }: Settings<'uploads'>): FreeRules {
  const { freeItem, freeWallet } = sandboxSizes
  const isSandbox = uploads.sandbox
  return {
    itemMaxBytes: isSandbox ? freeItem : uploads.freeItemBytes,
    walletBytes: isSandbox ? freeWallet : uploads.freeWalletBytes,
    rangeBytes: isSandbox ? freeWallet : uploads.freeRangeBytes,
    itemOverheadBytes,
    exemptWallets: uploads.freeWallets.map(listedAddress),
  }
}

/** A sandbox posts nothing, and keeps items for `keepMs`; undefined: the service is none. */
export function sandboxRules({
  uploads,
}: Settings<'uploads'>): { readonly keepMs: number; readonly everyMs: number } | undefined {
  if (!uploads.sandbox) return undefined
  const keepMs = uploads.sandboxKeepSeconds * 1000
  return { keepMs, everyMs: Math.min(600_000, Math.max(250, keepMs / 10)) }
}

/** A gateway on another machine gets news of items and bundles where both its address and its key are set. */
export function newsRules({
  uploads,
}: Settings<'uploads'>): { readonly url: string; readonly key: string } | undefined {
  const { gatewayAdminUrl: url, gatewayAdminKey: key } = uploads
  return url === undefined || key === undefined ? undefined : { url: url.replace(/\/$/, ''), key }
}

/** How items are bundled. On devnet nobody waits for minutes. */
export function bundlingRules({
  server,
  uploads,
  indexing,
}: Settings<'indexing' | 'server' | 'uploads'>): BundlingRules {
  const isDevnet = server.network === 'devnet'
  const waitMs = 1000 * (uploads.bundleWaitSeconds ?? (isDevnet ? 1 : 300))
  return {
    itemsMax: uploads.bundleItemsMax,
    bytesMax: uploads.bundleMaxBytes,
    // No others come that it could wait for.
    get waitMs() {
      return draining() === 'no' ? waitMs : 0
    },
    everyMs: isDevnet ? 250 : 5000,
    depth: indexing.forkDepthMax,
    lookMs: isDevnet ? 500 : 60_000,
  }
}

/** Where an item is kept before its receipt leaves. */
export function durabilityOf({ uploads, contentStore }: Settings<'uploads' | 'contentStore'>): {
  readonly isOnDisk: boolean
  readonly isStored: boolean
} {
  const words = uploads.durability ?? (contentStore.kind === 'none' ? 'disk' : 'disk,store')
  return { isOnDisk: words.includes('disk'), isStored: words.includes('store') }
}
