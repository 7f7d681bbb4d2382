import { execFileSync } from 'node:child_process'
import { cpus, release, totalmem } from 'node:os'
import { mappedBy } from '../../native/mapped/mapped.js'
import { servedBy } from '../../native/server/server.js'
import { versionOf } from './child.js'
import { benchFolder } from './folders.js'

/** The machine and the version that a result belongs to. */
export interface Machine {
  readonly at: string
  /** Short hash; with a + behind it where files were changed since. */
  readonly commit: string
  readonly processor: string
  readonly memoryGib: number
  readonly kernel: string
  readonly node: string
  readonly nginx: string
  /** Which variants of native parts ran: the addons, or their slower fallbacks. */
  readonly files: string
  readonly sockets: string
}

function commit(): string {
  const git = (...words: string[]): string =>
    execFileSync('git', words, { cwd: benchFolder, stdio: ['ignore', 'pipe', 'ignore'] })
      .toString()
      .trim()
  try {
    const changed = git('status', '--porcelain', '--untracked-files=no', '--', '..') !== ''
    return git('rev-parse', '--short=10', 'HEAD') + (changed ? '+' : '')
  } catch {
    return 'unknown' // not a clone
  }
}

export function thisMachine(): Machine {
  return {
    at: new Date().toISOString(),
    commit: commit(),
    processor: `${cpus().length} x ${cpus()[0]?.model ?? 'unknown'}`,
    memoryGib: Math.round(totalmem() / 2 ** 30),
    kernel: release(),
    node: process.version,
    nginx: versionOf('nginx', '-v')?.replace('nginx version: ', '') ?? 'none',
    files: mappedBy,
    sockets: servedBy,
  }
}
