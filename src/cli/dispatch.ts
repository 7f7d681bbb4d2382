import { programVersion } from '../actor/version.js'
import { parseId } from '../format/id.js'
import type { Command } from './command.js'
import { exitCode } from './exit-code.js'

/** Commands by name. Each is loaded when it is used: loading all would double the time to start. */
export type Commands = Readonly<Record<string, () => Promise<Command>>>

/** A program of several commands. */
export interface CommandProgram {
  readonly name: string
  readonly commands: Commands
  /** Printed for `--help`, and where no command is named. */
  readonly help: string
  /** A failure that is printed as one line; undefined for a bug, which ends the program with its stack. */
  readonly messageOf?: (error: unknown) => string | undefined
}

/** Runs the command that the first word names. Resolves with the exit code. */
export async function dispatch(program: CommandProgram, words: readonly string[]): Promise<number> {
  const [name = '', ...rest] = words
  if (name === '--version' || name === '-v') {
    process.stdout.write(`${program.name} ${programVersion()}\n`)
    return exitCode.done
  }
  const load = Object.hasOwn(program.commands, name) ? program.commands[name] : undefined
  if (load !== undefined) return run(program, name, await load(), rest)
  if (name === '--help' || name === '-h' || name === 'help') {
    process.stdout.write(program.help)
    return exitCode.done
  }
  const unknown = `${program.name}: no command '${name}'; see ${program.name} --help\n`
  process.stderr.write(name === '' ? program.help : unknown)
  return exitCode.usage
}

/** Runs a command. An option that it does not have ends with the code for wrong usage and a line that names it. */
async function run(
  { name: program, messageOf }: CommandProgram,
  name: string,
  command: Command,
  words: readonly string[],
): Promise<number> {
  try {
    return await command(idsLast(words.map((word) => (word === '-h' ? '--help' : word))))
  } catch (error) {
    const message = messageOf?.(error)
    if (message !== undefined) {
      process.stderr.write(`${program} ${name}: ${message}\n`)
      return exitCode.failed
    }
    const { code } = error as NodeJS.ErrnoException
    if (!(error instanceof Error) || code?.startsWith('ERR_PARSE_ARGS') !== true) throw error
    process.stderr.write(
      `${program} ${name}: ${error.message.split('. ')[0]}; see ${program} ${name} --help\n`,
    )
    return exitCode.usage
  }
}

/** One id in 64 starts with a dash: such ids, and what is below them, are moved behind `--`, or they would be read as options. */
function idsLast(words: readonly string[]): readonly string[] {
  const isId = (word: string): boolean =>
    word.startsWith('-') && parseId(word.split('/')[0] ?? '') !== undefined
  if (words.includes('--') || !words.some(isId)) return words
  return [...words.filter((word) => !isId(word)), '--', ...words.filter(isId)]
}
