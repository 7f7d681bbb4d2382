import { spawnSync } from 'node:child_process'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import t from 'tap'
import { scratch } from '../scratch.js'

/** The environment of a process whose calls go to `test/native/{name}.cc` first; undefined where there is no compiler. */
export function preloading(name: string): NodeJS.ProcessEnv | undefined {
  const source = fileURLToPath(new URL(`../../../test/native/${name}.cc`, import.meta.url))
  const library = join(scratch(name), `${name}.so`)
  const compiled = spawnSync('c++', ['-shared', '-fPIC', source, '-o', library], { encoding: 'utf8' })
  if (compiled.error !== undefined || compiled.status !== 0) {
    t.comment(`no compiler: ${compiled.stderr ?? ''}`)
    return undefined
  }
  // A sanitizer's library must stay the first.
  const before = process.env.LD_PRELOAD
  return { ...process.env, LD_PRELOAD: before === undefined ? library : `${before}:${library}` }
}
