import { existsSync, readdirSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { isRegularFile } from '../store/regular-file.js'

/** Where a certificate and its key lie. One file may hold both. */
export interface PairPlace {
  readonly certFile: string
  readonly keyFile: string
}

/** Pairs of one folder at most. */
export const pairsMax = 1000

/**
 * The pairs of a folder, sorted by name: `NAME/fullchain.pem` with `NAME/privkey.pem` (as certbot writes them), `NAME.crt` or
 * `NAME.pem` with `NAME.key`, and `NAME.pem` alone, which then holds both. Throws the system's error, or that there are too many.
 */
export function pairsIn(folder: string): PairPlace[] {
  const names = readdirSync(folder).sort()
  const places = names.flatMap((name) => placeOf(folder, name) ?? [])
  if (places.length > pairsMax) throw new Error(`${folder} holds more than ${pairsMax} certificates`)
  return places
}

/** Undefined where either is something that cannot be read as a file. A key that is missing is reported where it is read. */
function pairOf(certFile: string, keyFile: string): PairPlace | undefined {
  const isWell = isRegularFile(certFile) && (isRegularFile(keyFile) || !existsSync(keyFile))
  return isWell ? { certFile, keyFile } : undefined
}

function placeOf(folder: string, name: string): PairPlace | undefined {
  // Drafts of tools that write in steps, and what Kubernetes keeps beside a mounted secret.
  if (name.startsWith('.')) return undefined
  const path = join(folder, name)
  const certFile = join(path, 'fullchain.pem')
  if (statSync(path, { throwIfNoEntry: false })?.isDirectory() === true)
    return pairOf(certFile, join(path, 'privkey.pem'))
  const [, stem] = /^(.+)\.(?:crt|pem)$/.exec(name) ?? []
  if (stem === undefined) return undefined
  const keyFile = join(folder, `${stem}.key`)
  if (existsSync(keyFile)) return pairOf(path, keyFile)
  return name.endsWith('.pem') ? pairOf(path, path) : undefined
}
