import { resolve } from 'node:path'
import { parseArgs } from 'node:util'
import { dataPathOf } from '../../config/read.js'
import { tryClaimFolder } from '../actor/claim.js'
import { pause, systemClock } from '../actor/clock.js'
import { beganOf, type ProgramState, programState } from '../main/program-note.js'
import type { ReloadOutcome } from '../main/reload.js'
import { exitCode } from './exit-code.js'

const help = `sluice reload: has the running program read its settings and certificates again

Usage: sluice reload [--json]

  --json  for programs: {used, waiting, wrong, refused, isOtherCertificate}

The program that runs on DATA_PATH reads SETTINGS_FILE, its certificates and the file of the admin key. Nothing that is open is
dropped. Settings that \`sluice settings\` marks with "sluice reload" are used at once; others that were changed are named, and
used from the next start on. A file with a wrong setting changes none. The environment of a running program cannot be changed: a
setting that is there must move into SETTINGS_FILE before.

Exit codes: 0 done, 1 a setting or a certificate was refused, 3 no program runs there, 5 it did not answer.

Examples:
  sluice reload
  DATA_PATH=/var/lib/sluice sluice reload --json
  systemctl reload sluice                          the same by the service manager; the log says what came of it
`

/** Reloading itself takes milliseconds; a program that swaps or is stopped takes longer. */
const answerMs = 30_000
const lookMs = 50

/** Signals the program of DATA_PATH, and prints what came of it. */
export async function reloadCommand(words: readonly string[]): Promise<number> {
  const options = { help: { type: 'boolean' }, json: { type: 'boolean' } } as const
  const { values } = parseArgs({ args: [...words], options })
  if (values.help === true) {
    process.stdout.write(help)
    return exitCode.done
  }
  const root = resolve(dataPathOf())
  const found = await runningOn(root)
  if ('code' in found) {
    process.stderr.write(`sluice reload: ${found.why}\n`)
    return found.code
  }
  const state = await reloadedBy(found, root)
  if (state?.last === undefined) {
    const why = `the program (process ${found.pid}) gave no answer for ${answerMs / 1000} s: see its log`
    process.stderr.write(`sluice reload: ${why}\n`)
    return exitCode.unreachable
  }
  const { last } = state
  process.stdout.write(values.json === true ? `${JSON.stringify(last)}\n` : linesOf(last, state))
  return last.wrong.length + last.refused.length > 0 ? exitCode.failed : exitCode.done
}

/** The program that runs on a folder, where it can be signalled; else why not. */
async function runningOn(
  root: string,
): Promise<ProgramState | { readonly code: number; readonly why: string }> {
  try {
    const state = programState(root)
    if (state !== undefined && state.began !== '' && beganOf(state.pid) === state.began) return state
    // What a program left that was killed is no program.
    const claimed = await tryClaimFolder(root)
    await claimed?.release()
    if (claimed === undefined) {
      const why = `the program on ${root} is starting, or runs in another container: run this there when it is up`
      return { code: exitCode.unreachable, why }
    }
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException
    if (code !== 'ENOENT') return { code: exitCode.failed, why: `${root} cannot be read: ${message}` }
  }
  return {
    code: exitCode.notFound,
    why: `no program runs on ${root}: set DATA_PATH to its folder, or start one`,
  }
}

async function reloadedBy(
  { pid, signal, reloads }: ProgramState,
  root: string,
): Promise<ProgramState | undefined> {
  process.kill(pid, signal)
  const untilMs = systemClock.monotonic() + answerMs
  while (systemClock.monotonic() < untilMs) {
    const now = programState(root)
    if (now === undefined || now.pid !== pid) return undefined
    if (now.reloads > reloads) return now
    await pause(lookMs)
  }
  return undefined
}

function linesOf(
  { used, waiting, wrong, refused, isOtherCertificate }: ReloadOutcome,
  { settingsFile }: ProgramState,
): string {
  const lines = [
    ...(settingsFile === undefined
      ? ['SETTINGS_FILE is not set: only files of certificates and keys were read']
      : []),
    ...wrong.map((why) => `refused: ${why}`),
    ...(wrong.length > 0 ? ['All settings stay as they were.'] : []),
    ...(used.length > 0 ? [`used now: ${used.join(', ')}`] : []),
    ...(waiting.length > 0 ? [`used from the next start on: ${waiting.join(', ')}`] : []),
    ...(wrong.length + used.length + waiting.length === 0 ? ['No setting was changed.'] : []),
    ...(isOtherCertificate ? ['new certificates are in use'] : []),
    ...refused.map(({ file, why }) => `certificate refused, what was in use stays: ${file}: ${why}`),
  ]
  return `${lines.join('\n')}\n`
}
