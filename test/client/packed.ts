import { execFileSync } from 'node:child_process'
import { copyFileSync, existsSync, mkdirSync, renameSync, symlinkSync } from 'node:fs'
import { basename, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { scratch } from '../scratch.js'

const root = fileURLToPath(new URL('../../..', import.meta.url))

export interface PackedClient {
  readonly tarball: string
  /** The package within `node_modules` of the folder. */
  readonly place: string
}

/**
 * A copy of the packed client in a folder. Packing takes two seconds of processor time: the runner of the tests names a place
 * where the first package is kept for all files. A file that runs alone packs once.
 */
export function packedClient(folder: string): string {
  const kept = join(keptIn(), 'sluice-client.tgz')
  if (!existsSync(kept)) {
    const draft = scratch('packed')
    // The test runner sets the variable at each spawn, and the compiler cannot be loaded with what stands in it.
    const line = ['-u', 'NODE_OPTIONS', process.execPath, join(root, 'bin/pack-client.mjs'), draft]
    const made = execFileSync('env', line, { encoding: 'utf8' }).trim()
    const next = `${kept}.${process.pid}`
    copyFileSync(made, next)
    renameSync(next, kept)
  }
  const tarball = join(folder, basename(kept))
  copyFileSync(kept, tarball)
  return tarball
}

let own: string | undefined

function keptIn(): string {
  const shared = process.env.TEST_SHARED_FOLDER
  if (shared !== undefined) return shared
  own ??= scratch('packed-client')
  return own
}

/** Puts the packed client into a folder's `node_modules` as npm would, with its dependencies beside it. */
export function installPacked(folder: string): PackedClient {
  mkdirSync(join(folder, 'node_modules'), { recursive: true })
  const tarball = packedClient(folder)
  execFileSync('tar', ['xzf', tarball, '-C', folder])
  const place = join(folder, 'node_modules/sluice-client')
  execFileSync('mv', [join(folder, 'package'), place])
  for (const name of ['@noble', 'ignore'])
    symlinkSync(join(root, 'node_modules', name), join(folder, 'node_modules', name))
  return { tarball, place }
}
