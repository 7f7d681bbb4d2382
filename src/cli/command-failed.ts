import type { Refusal } from '../format/refusal.js'
import { exitCode } from './exit-code.js'

/** How a command fails: reports the reasons on standard error, one a line, and gives its exit code. */
export type Failed = (code: number, ...reasons: readonly string[]) => number

/** Reports failures of the command with these words, behind `sluice`. */
export function failedAs(command: string): Failed {
  return (code, ...reasons) => {
    for (const reason of reasons) process.stderr.write(`sluice ${command}: ${reason}\n`)
    return code
  }
}

/** The exit code for a refusal of a server: it answered something wrong (`upstream`), or not at all. */
export function serverExitCode({ refused }: Refusal): number {
  return refused === 'upstream' ? exitCode.failed : exitCode.unreachable
}
