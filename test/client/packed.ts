import { execFileSync } from 'node:child_process'
import { mkdirSync, symlinkSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

const root = fileURLToPath(new URL('../../..', import.meta.url))

export interface PackedClient {
  readonly tarball: string
  /** The package within `node_modules` of the folder. */
  readonly place: string
}

/** Packs the client and puts it into a folder's `node_modules` as npm would, with its dependencies beside it. */
export function installPacked(folder: string): PackedClient {
  mkdirSync(join(folder, 'node_modules'), { recursive: true })
  // The test runner sets the variable at each spawn, and the compiler cannot be loaded with what stands in it.
  const line = ['-u', 'NODE_OPTIONS', process.execPath, join(root, 'bin/pack-client.mjs'), folder]
  const tarball = execFileSync('env', line, { encoding: 'utf8' }).trim()
  execFileSync('tar', ['xzf', tarball, '-C', folder])
  const place = join(folder, 'node_modules/sluice-client')
  execFileSync('mv', [join(folder, 'package'), place])
  for (const name of ['@noble', 'ignore'])
    symlinkSync(join(root, 'node_modules', name), join(folder, 'node_modules', name))
  return { tarball, place }
}
