import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'

/** All addons, and what the program does without each. */
const addons = {
  server: 'requests are answered by its slower TypeScript twin',
  mapped: 'files are read by its slower TypeScript twin',
  digest: 'digests are made by its slower TypeScript twin',
  schedule: 'threads of the background are nice only, and may delay requests',
} as const

export type AddonName = keyof typeof addons

export interface MissingAddon {
  readonly addon: AddonName
  readonly reason: string
  readonly without: string
}

/** Builds with sanitizers are loaded where Node was started so; then there is no doing without. */
const sanitized = process.execArgv.includes('--conditions=sanitized')
/** Where Node was started so, everything is done without: for tests of the whole program. */
const without = process.execArgv.includes('--conditions=twin')
const place = `${process.platform}-${process.arch}`

function pathOf(name: AddonName): string {
  return `../../native/${name}/build/${place}${sanitized ? '.sanitized' : ''}.node`
}

/** The addon of the folder `name` beside this file's source; undefined where it was not built for this machine. */
export function loadAddon<Addon>(name: AddonName): Addon | undefined {
  if (without) return undefined
  try {
    return createRequire(import.meta.url)(pathOf(name)) as Addon
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    if (!sanitized && (code === 'MODULE_NOT_FOUND' || code === 'ERR_DLOPEN_FAILED')) return undefined
    throw error
  }
}

/** Those that this machine does without, and why: what the build said, or what the loader says now. */
export function missingAddons(): MissingAddon[] {
  const names = Object.keys(addons) as AddonName[]
  return names.flatMap((addon) => {
    if (loadAddon(addon) !== undefined) return []
    return [{ addon, reason: reasonOf(addon), without: addons[addon] }]
  })
}

function reasonOf(name: AddonName): string {
  if (without) return 'Node was started with --conditions=twin'
  try {
    const beside = new URL(`../../native/${name}/build/${place}.failed`, import.meta.url)
    return readFileSync(beside, 'utf8').trim()
  } catch {
    // The build said nothing: it did not run, or what it made does not load here.
  }
  try {
    createRequire(import.meta.url)(pathOf(name))
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException
    return code === 'MODULE_NOT_FOUND' ? 'it was not built here' : (message.split('\n')[0] ?? '')
  }
  return ''
}
