import { closeSync, openSync, readFileSync, readSync } from 'node:fs'
import { createRequire } from 'node:module'

/** All addons, and what the program does without each. */
const addons = {
  client: 'undici sends the requests to other gateways, which takes twice the processor time',
  server: 'requests are answered by its slower TypeScript fallback',
  mapped: 'files are read by its slower TypeScript fallback',
  digest: 'digests are made by its slower TypeScript fallback',
  ed25519: 'Ed25519 signatures are checked and made by node:crypto, which takes twice the time',
  secp256k1: 'signatures of Ethereum wallets are checked by noble, which takes twenty times as long',
  crash: 'a start after a crash looks at the upper pages of each database only',
  database: 'a disk that refuses a write to a database may end the program',
  words: 'imports in bulk and flushes of the index take a quarter more time',
  schedule: 'threads of the background are nice only, and may delay requests',
} as const

export type AddonName = keyof typeof addons

export interface MissingAddon {
  readonly addon: AddonName
  readonly reason: string
  readonly without: string
}

/** Builds with sanitizers are loaded where Node was started so; then a missing addon is an error. */
const sanitized = process.execArgv.includes('--conditions=sanitized')
/** With this condition no addon is loaded: for tests of the whole program with the fallbacks. */
const without = process.execArgv.includes('--conditions=fallback')
const place = `${process.platform}-${process.arch}`

/**
 * Whether this Node runs on musl: its file names the loader that it wants in its first bytes. An addon made for glibc may
 * load there, because the libraries have the same names, and crash later.
 */
function isMusl(): boolean {
  const head = Buffer.alloc(4096)
  const file = openSync(process.execPath, 'r')
  try {
    return head.toString('latin1', 0, readSync(file, head)).includes('ld-musl-')
  } finally {
    closeSync(file)
  }
}

/** Where the addon may lie: what was built here, else what the package brought along. */
function pathsOf(name: AddonName): string[] {
  if (sanitized) return [`../../native/${name}/build/${place}.sanitized.node`]
  const built = `../../native/${name}/build/${place}.node`
  return isMusl() ? [built] : [built, `../../native/${name}/prebuilt/${place}-glibc.node`]
}

/** The addon of the folder `name` beside this file's source; undefined where it was not built for this machine. */
export function loadAddon<Addon>(name: AddonName): Addon | undefined {
  // Bundlers that write CommonJS leave no place of the file behind: no addon can lie beside it.
  const url: string | undefined = import.meta.url
  if (without || url === undefined) return undefined
  const load = createRequire(url)
  for (const path of pathsOf(name)) {
    try {
      return load(path) as Addon
    } catch (error) {
      const { code } = error as NodeJS.ErrnoException
      if (sanitized || (code !== 'MODULE_NOT_FOUND' && code !== 'ERR_DLOPEN_FAILED')) throw error
    }
  }
  return undefined
}

/** Missing addons, each with the reason that the build or the loader gave. */
export function missingAddons(): MissingAddon[] {
  const names = Object.keys(addons) as AddonName[]
  return names.flatMap((addon) => {
    if (loadAddon(addon) !== undefined) return []
    return [{ addon, reason: reasonOf(addon), without: addons[addon] }]
  })
}

function reasonOf(name: AddonName): string {
  if (without) return 'Node was started with --conditions=fallback'
  try {
    const beside = new URL(`../../native/${name}/build/${place}.failed`, import.meta.url)
    return readFileSync(beside, 'utf8').trim()
  } catch {
    // No reason was written: the build did not run, or its result does not load here.
  }
  const load = createRequire(import.meta.url)
  for (const path of pathsOf(name)) {
    try {
      load(path)
    } catch (error) {
      const { code, message } = error as NodeJS.ErrnoException
      if (code !== 'MODULE_NOT_FOUND') return message.split('\n')[0] ?? ''
    }
  }
  return 'it was not built here'
}
