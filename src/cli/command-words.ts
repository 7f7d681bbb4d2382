import { parseArgs } from 'node:util'

/**
 * The words behind a command that has no option but `--help`. Undefined: `help` was printed, and the command is done. Throws a
 * TypeError with a text for the user where there is another option.
 */
export function commandWords(words: readonly string[], help: string): readonly string[] | undefined {
  const { values, positionals } = parseArgs({
    args: [...words],
    options: { help: { type: 'boolean' } },
    allowPositionals: true,
  })
  if (values.help !== true) return positionals
  process.stdout.write(help)
  return undefined
}
