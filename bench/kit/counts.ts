import { parseArgs } from 'node:util'
import { say } from './say.js'

/**
 * Whole numbers above zero from the command line of a claim, or `defaults` where none is given. `--help` prints `help` and ends
 * the program; anything else ends it with exit code 2 and a line that names what was wrong.
 */
export function countsFromCommandLine(help: string, defaults: readonly number[]): readonly number[] {
  const { values, positionals } = parseArgs({
    options: { help: { type: 'boolean' } },
    allowPositionals: true,
  })
  if (values.help === true) {
    say(help)
    process.exit(0)
  }
  const wrong = positionals.find((given) => !/^[1-9]\d{0,11}$/.test(given))
  if (wrong !== undefined) {
    process.stderr.write(`'${wrong}' is no whole number above zero; --help says what is meant\n`)
    process.exit(2)
  }
  return positionals.length === 0 ? defaults : positionals.map(Number)
}

/** The first of {@link countsFromCommandLine}, for claims that take one number. */
export function countFromCommandLine(help: string, byDefault: number): number {
  return countsFromCommandLine(help, [byDefault])[0] ?? byDefault
}
