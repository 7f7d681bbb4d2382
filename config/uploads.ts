import { custom, flag, list, maybeText, maybeWhole, readUrl, reloadable, secret, whole } from './setting.js'

/** 32 bytes in base64url: the last letter has two bits that are 0, else no address would ever be equal to it. Or Ethereum's. */
const walletShape = /^(?:[\w-]{42}[AEIMQUYcgkosw048]|0x[0-9a-fA-F]{40})$/
const walletAllowed = 'wallet addresses (base64url SHA-256 of the key, or 0x.. of Ethereum)'

/** What the upload service takes, from whom, and for how much. */
export const uploads = {
  walletFile: maybeText({
    env: 'UPLOAD_WALLET_FILE',
    allowed: 'a file',
    why: 'JSON Web Key (RSA, 4096 bits) that signs receipts and bundles. Unset: <DATA_PATH>/keys/upload.json, made if missing.',
  }),
  itemMaxBytes: whole({
    env: 'UPLOAD_MAX_ITEM_BYTES',
    default: 10 * 2 ** 30,
    min: 1024,
    max: 2 ** 40,
    why: 'Larger items are refused (413). Bytes of the whole signed item.',
  }),
  partsMaxBytes: whole({
    env: 'UPLOAD_PARTS_MAX_BYTES',
    default: 2 ** 37,
    min: 2 ** 20,
    max: 2 ** 50,
    why:
      'Bytes of parts that wait until their uploads are finalized, and at most half of what the disk has left: then who ' +
      'holds most gives some up. One client may hold a quarter.',
  }),
  freeItemBytes: whole({
    env: 'UPLOAD_FREE_ITEM_BYTES',
    default: 107_520,
    min: 0,
    max: 2 ** 40,
    why: 'Items up to this size may be free, bytes of the whole signed item; 0: none is, but of UPLOAD_FREE_WALLETS.',
  }),
  freeWalletBytes: whole({
    env: 'UPLOAD_FREE_WALLET_BYTES',
    default: 10_485_760,
    min: 0,
    max: 2 ** 50,
    why: 'Free for one wallet, ever.',
  }),
  freeRangeBytes: whole({
    env: 'UPLOAD_FREE_RANGE_BYTES',
    default: 10_485_760,
    min: 0,
    max: 2 ** 50,
    why:
      'Free for clients of one address (IPv6: of one /64; 256 times that for a /48, 65,536 times for a /32), ever. ' +
      'Each item counts 3 KiB more, for its records. This machine itself is not counted.',
  }),
  freeWallets: reloadable(
    list({
      env: 'UPLOAD_FREE_WALLETS',
      default: [],
      allowed: walletAllowed,
      shape: walletShape,
      why: 'Wallets whose items are all free: any number, and any size up to UPLOAD_MAX_ITEM_BYTES.',
    }),
  ),
  blockedOwners: reloadable(
    list({
      env: 'UPLOAD_BLOCKED_OWNERS',
      default: [],
      allowed: walletAllowed,
      shape: walletShape,
      why: 'Wallets whose items are refused (403).',
    }),
  ),
  bundleItemsMax: whole({
    env: 'UPLOAD_BUNDLE_MAX_ITEMS',
    default: 10_000,
    min: 1,
    max: 100_000,
    why: 'Items of one bundle.',
  }),
  bundleMaxBytes: whole({
    env: 'UPLOAD_BUNDLE_MAX_BYTES',
    default: 2 ** 31,
    min: 1,
    max: 2 ** 40,
    why: 'Bytes of the items of one bundle; a larger item rides alone.',
  }),
  bundleWaitSeconds: maybeWhole({
    env: 'UPLOAD_BUNDLE_WAIT_SECONDS',
    min: 0,
    max: 86_400,
    why: 'No item waits longer for others to share its bundle. Unset: 1 on devnet, 300 on mainnet.',
  }),
  sandbox: flag({
    env: 'UPLOAD_SANDBOX',
    default: false,
    why:
      'Takes uploads for trying out, whatever the settings of sizes say: up to 10 MiB, free up to 5 MiB and 100 MiB for a ' +
      'wallet; nothing is posted, and items are gone after UPLOAD_SANDBOX_KEEP_SECONDS.',
  }),
  sandboxKeepSeconds: whole({
    env: 'UPLOAD_SANDBOX_KEEP_SECONDS',
    default: 259_200,
    min: 1,
    max: 31_536_000,
    why: 'How long a sandbox keeps items.',
  }),
  gatewayAdminUrl: custom<string | undefined>({
    env: 'UPLOAD_GATEWAY_ADMIN_URL',
    allowed: 'an http(s) address',
    defaultText: '',
    default: undefined,
    read: readUrl,
    why: 'Where a gateway elsewhere takes orders (…/gateway/admin): accepted items and bundles in blocks are reported to it.',
  }),
  gatewayAdminKey: secret(
    maybeText({
      env: 'UPLOAD_GATEWAY_ADMIN_KEY',
      allowed: 'a key',
      why: 'ADMIN_API_KEY of that gateway.',
    }),
  ),
  durability: maybeText({
    env: 'UPLOAD_DURABILITY',
    shape: /^(disk|store|disk,store|store,disk)$/,
    allowed: 'disk, store, or disk,store',
    why:
      'Where an item is kept before its receipt leaves: on the disk of this machine, in the object store of CONTENT_STORE, or ' +
      'in both. Unset: disk,store where there is such a store, else disk.',
  }),
  diskMinBytes: maybeWhole({
    env: 'UPLOAD_DISK_MIN_BYTES',
    min: 0,
    max: 2 ** 50,
    why: 'Uploads are refused (503) while the disk of DATA_PATH has less left. Unset: 1 GiB, or an eighth of a smaller disk.',
  }),
}

/** What is wrong with these settings taken together. */
export function uploadFaults(
  given: {
    readonly gatewayAdminUrl: string | undefined
    readonly gatewayAdminKey: string | undefined
    readonly durability: string | undefined
  },
  hasStore: boolean,
): string[] {
  const isStored = given.durability?.includes('store') === true
  return [
    ...((given.gatewayAdminUrl === undefined) === (given.gatewayAdminKey === undefined)
      ? []
      : ['UPLOAD_GATEWAY_ADMIN_URL and UPLOAD_GATEWAY_ADMIN_KEY need each other']),
    ...(isStored && !hasStore
      ? [`UPLOAD_DURABILITY=${given.durability} needs a store: set CONTENT_STORE=s3`]
      : []),
  ]
}
