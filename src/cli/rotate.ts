import { generateKeyPairSync } from 'node:crypto'
import { existsSync } from 'node:fs'
import { type Config, readConfig } from '../../config/read.js'
import { systemClock } from '../actor/clock.js'
import { loadSigningKey } from '../attest/keys.js'
import { rotateHeadKey } from '../ledger/head-key.js'
import { adminKey, newAdminKey } from '../main/admin-key-file.js'
import { claimDataFolder } from '../main/data-folder.js'
import { newRsaKey } from '../proof/new-key.js'
import { normalizedAddress } from '../proof/owner-address.js'
import { replaceSecret } from '../store/secret-file.js'
import { folders } from '../threads/folders.js'
import { adminKeyPath, headKeyPath, itemKeyPath, signingKey, uploadWalletPath } from '../threads/key-paths.js'
import { itemKey, newItemKey } from '../upload/records/item-key.js'
import { readServiceKey } from '../upload/records/service-key.js'
import { commandWords } from './command-words.js'
import { exitCode } from './exit-code.js'

const help = `sluice rotate: replaces a key of the services by a new one

Usage: sluice rotate admin|signing|ledger|upload|items

  admin    of the console and the admin routes. The program may run: \`sluice reload\` then has it use the new key, and the
           old one opens nothing any more
  signing  of answers and of the publication of indexes. What it signed verifies on: signatures name their key. Those who
           subscribe to the indexes of this gateway must be given the new key
  ledger   of the heads of the ledger. What it signed until now counts on; its public half is kept for that
  upload   wallet of the upload service. The old one stays as FILE.old-TIME, because it may hold money. Receipts name their
           key, so that old ones verify on. The new wallet pays for bundles: fund it before the start (on devnet none is needed)
  items    of uploads that nobody has signed. Later ones have the new key as their owner, earlier ones keep the old one

For all others the program must not run: threads that have the old key and threads that have the new one would contradict each
other. Where a key is a setting (ADMIN_API_KEY, OBSERVER_KEYPAIR_PATH, OBSERVER_PRIVATE_KEY), change the setting. See "Keys" in
deploy/OPERATING.md.

Examples:
  sluice rotate admin && sluice reload
  systemctl stop sluice && sluice rotate signing && systemctl start sluice
`

/** The report of a rotation: lines for people. Or why it cannot be done. */
type Outcome = { readonly lines: readonly string[] } | { readonly refused: string }

const kinds: Readonly<Record<string, (config: Config) => Outcome | Promise<Outcome>>> = {
  admin(config) {
    if (config.moderation.adminApiKey !== undefined && config.moderation.adminApiKeyFile === undefined)
      return { refused: 'ADMIN_API_KEY is set: change the setting' }
    const path = adminKeyPath(config)
    if (!existsSync(path)) return missing(path)
    adminKey(config)
    replaceSecret(path, newAdminKey())
    return { lines: [`the new admin key is in ${path}; a program that runs uses it after sluice reload`] }
  },
  signing(config) {
    const { keyFile, ...others } = signingKey(config)
    if (others.observerKeypairPath !== undefined || others.observerPrivateKey !== undefined)
      return { refused: 'OBSERVER_KEYPAIR_PATH or OBSERVER_PRIVATE_KEY is set: change the setting' }
    if (!existsSync(keyFile)) return missing(keyFile)
    const old = loadSigningKey({ keyFile })
    const { privateKey } = generateKeyPairSync('ed25519')
    replaceSecret(keyFile, privateKey.export({ format: 'pem', type: 'pkcs8' }) as string)
    const { keyId, solanaAddress } = loadSigningKey({ keyFile })
    return { lines: [`${keyId} signs now, ${solanaAddress} in base58; before it ${old.keyId}`] }
  },
  ledger(config) {
    const path = headKeyPath(config)
    if (!existsSync(path)) return missing(path)
    rotateHeadKey(path, systemClock.now())
    return { lines: [`the new key is in ${path}; what the old one signed counts on`] }
  },
  async upload(config) {
    const path = uploadWalletPath(config)
    if (!existsSync(path)) return missing(path)
    readServiceKey(path)
    const oldPath = `${path}.old-${new Date(systemClock.now()).toISOString().replaceAll(':', '-')}`
    replaceSecret(path, JSON.stringify(await newRsaKey(4096)), oldPath)
    return {
      lines: [`the new wallet is in ${path}: fund it before the start`, `the old one is in ${oldPath}`],
    }
  },
  items(config) {
    const path = itemKeyPath(config)
    if (!existsSync(path)) return missing(path)
    replaceSecret(path, newItemKey())
    return { lines: [`${normalizedAddress(itemKey(path).owner)} owns unsigned uploads from now on`] }
  },
}

function missing(path: string): Outcome {
  return { refused: `there is no key in ${path}: the first start makes it` }
}

/** Rotates one key. Exit codes: 0 done, 1 refused or the program runs, 2 wrong words or settings. */
export async function rotate(words: readonly string[]): Promise<number> {
  const positionals = commandWords(words, help)
  if (positionals === undefined) return exitCode.done
  const [what = '', ...more] = positionals
  const act = Object.hasOwn(kinds, what) ? kinds[what] : undefined
  if (act === undefined || more.length > 0)
    return no('give admin, signing, ledger, upload or items', exitCode.usage)
  const config = readConfig()
  if (Array.isArray(config)) return no(config.join('\n  '), exitCode.usage)
  const { root } = folders(config)
  if (!existsSync(root)) return no(`there is no folder ${root}: set DATA_PATH`, exitCode.failed)
  let outcome: Outcome
  try {
    // Of the keys only this one can be given to a running program.
    const claim = what === 'admin' ? undefined : await claimDataFolder(root)
    try {
      outcome = await act(config)
    } finally {
      await claim?.release()
    }
  } catch (error) {
    return no((error as Error).message, exitCode.failed)
  }
  if ('refused' in outcome) return no(outcome.refused, exitCode.failed)
  for (const line of outcome.lines) process.stdout.write(`${line}\n`)
  return exitCode.done
}

function no(message: string, code: number): number {
  process.stderr.write(`sluice rotate: ${message}\n`)
  return code
}
